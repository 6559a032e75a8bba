"""CEL expressions in policies and webhooks, and the seam through which they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from kcp.meta.field import invalid

if TYPE_CHECKING:
    from kcp.meta.field import FieldError, FieldPath


class ExpressionKind(StrEnum):
    """What an expression is for decides what it may return."""

    VALIDATION = "validation"  # bool
    MATCH_CONDITION = "matchCondition"  # bool
    MESSAGE = "messageExpression"  # string
    AUDIT_ANNOTATION = "auditAnnotation"  # string or null
    VARIABLE = "variable"  # anything
    APPLY_CONFIGURATION = "applyConfiguration"  # an Object
    JSON_PATCH = "jsonPatch"  # a list of JSONPatch


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression and what it may refer to besides `object`, `oldObject`, `request` and `namespaceObject`."""

    text: str
    kind: ExpressionKind
    has_params: bool = False
    has_authorizer: bool = True
    variables: tuple[tuple[str, str], ...] = ()  # names and expressions of the variables declared before


# What is wrong with an expression, in the words of Kubernetes ("compilation failed: ERROR: ..."); empty if right.
CompileExpression: TypeAlias = Callable[[Expression], list[str]]


def trust_expression(expression: Expression) -> list[str]:
    """Where there is no compiler, every expression passes."""
    return []


def validate_expression(
    compile_expression: CompileExpression, expression: Expression, path: FieldPath, *, shown: str | None = None
) -> list[FieldError]:
    """The compiler's complaints as field errors. `shown` is the text as the user wrote it, if it was trimmed."""
    bad_value = expression.text if shown is None else shown
    return [invalid(path, bad_value, why) for why in compile_expression(expression)]
