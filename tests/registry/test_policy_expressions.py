"""CEL expressions of policies and webhooks, compiled when they are written."""

from __future__ import annotations

import pytest

from kcp.registry.policy_expressions import compile_expression
from kcp.registry.strategies.expressions import Expression, ExpressionKind

VALIDATION, MATCH = ExpressionKind.VALIDATION, ExpressionKind.MATCH_CONDITION
MESSAGE, AUDIT = ExpressionKind.MESSAGE, ExpressionKind.AUDIT_ANNOTATION
VARIABLE = ExpressionKind.VARIABLE


@pytest.mark.parametrize(
    "expression",
    [
        Expression("object.metadata.name == 'a'", VALIDATION),
        Expression("params.max > 3", VALIDATION, has_params=True),
        Expression("authorizer.group('').resource('pods').check('get').allowed()", VALIDATION),
        Expression("'name: ' + object.metadata.name", MESSAGE),
        Expression("null", AUDIT),
        Expression("'x'", AUDIT),
        Expression("object.spec", VARIABLE),
        Expression("variables.big && object.x", VALIDATION, variables=(("big", "object.n > 3"),)),
        Expression("variables.bigger", VALIDATION, variables=(("big", "object.n > 3"), ("bigger", "variables.big"))),
        Expression("variables.broken > 3", VALIDATION, variables=(("broken", "1 +"),)),
        Expression("request.operation == 'CREATE'", MATCH),
    ],
    ids=lambda expression: expression.text,
)
def test_expressions_that_are_right(expression: Expression) -> None:
    assert compile_expression(expression) == []


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        (Expression("1 +", VALIDATION), "compilation failed: ERROR: <input>:1:4: Syntax error"),
        (Expression("'text'", VALIDATION), "must evaluate to bool"),
        (Expression("true", MESSAGE), "must evaluate to string"),
        (Expression("3", AUDIT), "must evaluate to one of [string null_type]"),
        (Expression("params.max > 3", VALIDATION), "undeclared reference to 'params"),
        (Expression("authorizer.path('/').check('get').allowed()", VALIDATION, has_authorizer=False), "'authorizer'"),
        (Expression("variables.none", VALIDATION), "undefined field 'none'"),
        (Expression("variables.n", MATCH, variables=(("n", "3"),)), "undeclared reference to 'variables"),
        (Expression("variables.n", VALIDATION, variables=(("n", "3"),)), "must evaluate to bool"),
        (Expression("nothing", VARIABLE), "undeclared reference to 'nothing'"),
    ],
    ids=lambda value: value.text if isinstance(value, Expression) else None,
)
def test_expressions_that_are_wrong(expression: Expression, complaint: str) -> None:
    (found,) = compile_expression(expression)
    assert complaint in found
