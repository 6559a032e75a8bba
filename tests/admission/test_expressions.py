"""Which expressions admission accepts, in Kubernetes' words."""

from __future__ import annotations

import pytest

from kcp.admission.expressions import Scope, check_expression, compile_expression, variable_type

PLAIN = Scope()


@pytest.mark.parametrize(
    ("expression", "returns", "complaint"),
    [
        ("object.spec.n < 5", ("bool",), ""),
        ("'text'", (), ""),
        (
            "object.",
            ("bool",),
            "compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n"
            " | object.\n | .......^",
        ),
        ("'text'", ("bool",), "must evaluate to bool but got string"),
        ("object.spec.n", ("bool",), "must evaluate to bool but got dyn"),
        ("1", ("string", "null"), "must evaluate to one of [string null_type] but got int"),
        ("duration('1s')", ("string",), "must evaluate to string but got google.protobuf.Duration"),
        ("['a']", ("bool",), "must evaluate to bool but got list(string)"),
        (
            "request.nothing == 1",
            ("bool",),
            "compilation failed: ERROR: <input>:1:8: undefined field 'nothing'\n | request.nothing == 1\n | .......^",
        ),
        ("request.userInfo.groups.exists(g, g == 'x') && request.dryRun", ("bool",), ""),
        ("namespaceObject.metadata.labels['a'] == 'b'", ("bool",), ""),
        ("namespaceObject.status.conditions.all(c, c.type == 'x')", ("bool",), ""),
    ],
)
def test_complaints_about_expressions(expression: str, returns: tuple[str, ...], complaint: str) -> None:
    assert check_expression(expression, PLAIN, returns) == complaint


@pytest.mark.parametrize(
    ("expression", "scope"),
    [
        ("params.x == 1", Scope(params=True)),
        ("authorizer.requestResource.check('get').allowed()", Scope(authorizer=True)),
        ("variables.x == 1", Scope(variables=(("x", "int"),))),
    ],
    ids=["params", "authorizer", "variables"],
)
def test_variables_must_be_in_scope(expression: str, scope: Scope) -> None:
    assert "undeclared reference to" in check_expression(expression, PLAIN, ("bool",))
    assert check_expression(expression, scope, ("bool",)) == ""


def test_unknown_variables_of_a_policy_are_undefined_fields() -> None:
    complaint = check_expression("variables.y == 1", Scope(variables=(("x", "int"),)), ("bool",))
    assert "undefined field 'y'" in complaint


def test_types_of_variables_are_tracked_if_simple() -> None:
    assert variable_type(compile_expression("1 + 1", PLAIN)) == "int"
    assert variable_type(compile_expression("['a']", PLAIN)) == "dyn"
