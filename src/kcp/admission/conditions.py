"""Match conditions: expressions that decide whether a webhook or policy is to act at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kcp.admission.expressions import compile_expression
from kcp.schema.cel.engine import CompileError, EvaluationError
from kcp.schema.cel.types import BOOL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kcp.admission.expressions import Scope
    from kcp.meta.codec import Object
    from kcp.schema.cel.engine import Program

    Evaluate = Callable[["Expression"], object]


class ConditionsFailed(Exception):
    """At least one condition could not be evaluated and none is false; the text names them all."""


class Expression(NamedTuple):
    """An expression of an object that was accepted once; should it not compile now, evaluating it tells why."""

    text: str
    program: Program | None
    error: str = ""


def prepare(text: str, scope: Scope, returns: tuple[str, ...] = ()) -> Expression:
    try:
        return Expression(text, compile_expression(text, scope, returns))
    except CompileError as error:
        return Expression(text, None, f"compilation error: {error}")


def prepare_conditions(conditions: Iterable[Object], scope: Scope) -> tuple[Expression, ...]:
    return tuple(prepare(condition["expression"], scope, (BOOL,)) for condition in conditions)


def are_met(conditions: tuple[Expression, ...], evaluate: Evaluate, failure_policy: str) -> bool:
    """Whether all are true. One that is false decides, errors or not; otherwise errors go by the failure policy.

    Raises ConditionsFailed.
    """
    failures = []
    for condition in conditions:
        try:
            if evaluate(condition) is False:
                return False
        except EvaluationError as error:
            failures.append(str(error))
    if failures and failure_policy != "Ignore":
        distinct = list(dict.fromkeys(failures))
        raise ConditionsFailed(distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]")
    return not failures
