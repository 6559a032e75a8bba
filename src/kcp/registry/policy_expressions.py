"""Compiling the CEL expressions of policies and webhooks when they are written, so that mistakes show at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.admission.expressions import Scope, check_expression, variable_type
from kcp.registry.strategies.expressions import ExpressionKind
from kcp.schema.cel.engine import CompileError
from kcp.schema.cel.types import DYN

if TYPE_CHECKING:
    from kcp.registry.strategies.expressions import Expression
    from kcp.schema.cel.types import CelType

_RETURNS: Final = {
    ExpressionKind.VALIDATION: ("bool",),
    ExpressionKind.MATCH_CONDITION: ("bool",),
    ExpressionKind.MESSAGE: ("string",),
    ExpressionKind.AUDIT_ANNOTATION: ("string", "null"),
}
_ANY: Final[tuple[str, ...]] = ()


def compile_expression(expression: Expression) -> list[str]:
    """What is wrong with it, in the words of Kubernetes."""

    scope = Scope(expression.has_params, expression.has_authorizer, _variables(expression))
    complaint = check_expression(expression.text, scope, _RETURNS.get(expression.kind, _ANY))
    return [complaint] if complaint else []


def _variables(expression: Expression) -> tuple[tuple[str, CelType], ...] | None:
    if expression.kind is ExpressionKind.MATCH_CONDITION:
        return None
    from kcp.admission.expressions import compile_expression as compile_variable

    known: list[tuple[str, CelType]] = []
    for name, text in expression.variables:
        scope = Scope(expression.has_params, expression.has_authorizer, tuple(known))
        try:
            known.append((name, variable_type(compile_variable(text, scope))))
        except CompileError:
            known.append((name, DYN))  # its own field says what is wrong with it
    return tuple(known)
