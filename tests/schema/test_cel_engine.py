"""Expressions: what compiles, what it evaluates to, and how errors are worded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.schema.cel.engine import CompileError, Environment, EvaluationError, activate, time_value
from kcp.schema.cel.functions import Overload, function
from kcp.schema.cel.types import (
    BYTES,
    DURATION,
    DYN,
    INT,
    MAX_FIELDS,
    QUANTITY,
    STRING,
    TIMESTAMP,
    CelType,
    ListType,
    MapType,
    ObjectType,
)

INNER = ObjectType("x.Self.inner", {"a": STRING})
SELF = ObjectType(
    "x.Self",
    {
        "n": INT,
        "s": STRING,
        "labels": MapType(STRING),
        "inner": INNER,
        "items": ListType(INNER),
        "named": MapType(INNER),
        "matrix": ListType(ListType(INT)),
        "groups": MapType(ListType(STRING)),
        "any": DYN,
        "at": TIMESTAMP,
        "span": DURATION,
        "raw": BYTES,
        "fooBar": INT,
        "foo_bar": INT,
        "size": QUANTITY,
    },
)
ENVIRONMENT = Environment({"self": SELF, "object": DYN, "n": INT, "names": ListType(STRING)})
VALUES: dict[str, Any] = {
    "self": {"n": 2, "s": "text", "labels": {"a": "b"}, "items": [{"a": "x"}], "matrix": [[1, 2]], "foo_bar": 3},
    "object": {"spec": {"n": 9, "list": [3, 1, 2], "nothing": None, "half": 0.5}},
    "n": 3,
    "names": ["b", "a"],
}


def evaluate(expression: str, **more: Any) -> Any:  # noqa: ANN401 - any value of the language
    return ENVIRONMENT.compile(expression).evaluate(activate(VALUES | more))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("object.spec.n < 10 && n == 3", True),
        ("object.spec.list.all(x, x > 0) && object.spec.list.exists_one(x, x == 2)", True),
        ("object.spec.list.map(x, x * 2)", [6, 2, 4]),
        ("object.spec.?none.orValue('q')", "q"),
        ("has(object.spec.n) && !has(object.spec.none)", True),
        ("object.spec.nothing == null", True),
        ("object.spec.half", 0.5),
        ("'%s-%d'.format([dyn('a'), 1])", "a-1"),
        ("'a,b'.split(',')", ["a", "b"]),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("[1, 2].transformList(i, v, i * v)", [0, 2]),
        ("[1, 2].all(i, v, v > i)", True),
        ("sets.contains([1, 2], [1])", True),
        ("[3, 1].sort()", [1, 3]),
        ("names.first().value()", "b"),
        ("1 < 1.5 && 2u >= 1 && 1.5 <= 2", True),
        ("self.foo_bar + 1", 4),
        ("{'a': 1}.transformMapEntry(k, v, {k + '!': v, k: v})", {"a!": 1, "a": 1}),
        ("[timestamp('2021-01-01T00:00:00Z'), timestamp('2020-01-01T00:00:00Z')].min().getFullYear()", 2020),
        ("self.labels['a'] + self.items[0].a", "bx"),
        ("self.matrix[0][1]", 2),
        ("b'ab'", bytearray(b"ab")),
        ("timestamp('2020-01-01T00:00:00Z').getFullYear()", 2020),
        ("dyn(1) == 'a'", False),
    ],
)
def test_results(expression: str, result: object) -> None:
    assert evaluate(expression) == result


@pytest.mark.parametrize(
    ("expression", "complaints"),
    [
        ("self.none", ["1:5: undefined field 'none'"]),
        ("self.n.x", ["1:7: type 'int' does not support field selection"]),
        ("nope", ["1:1: undeclared reference to 'nope' (in container '')"]),
        ("n + 'a'", ["1:3: found no matching overload for '_+_' applied to '(int, string)'"]),
        ("n.startsWith('a')", ["1:13: found no matching overload for 'startsWith' applied to 'int.(string)'"]),
        ("self.labels.startsWith('a')", ["applied to 'map(string, string).(string)'"]),
        ("duration('1h') == 1", ["1:16: found no matching overload for '_==_' applied to '(duration, int)'"]),
        ("self.inner == 1", ["applied to '(x.Self.inner, int)'"]),
        ("for", ["1:1: reserved identifier: for"]),
        (
            "'unclosed",
            ["1:1: Syntax error: token recognition error at: ''unclosed'", "1:10: Syntax error: mismatched input"],
        ),
        ("cel.bind(x, 1, x)", ["undeclared reference to 'bind'"]),
        ("'a'.reverse()", ["found no matching overload for 'reverse' applied to 'string.()'"]),
        ("n +\n none", ["2:2: undeclared reference to 'none'"]),
    ],
)
def test_complaints_of_the_compiler(expression: str, complaints: list[str]) -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(expression)
    text = str(caught.value)
    assert text.startswith("ERROR: <input>:")
    assert "[" not in text.rpartition("\n")[2]
    for complaint in complaints:
        assert complaint in text


def test_a_complaint_shows_the_line_and_points_at_the_place() -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile("self.none > 1")
    assert str(caught.value) == "ERROR: <input>:1:5: undefined field 'none'\n | self.none > 1\n | ....^"


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("object.spec.none", "no such key: none"),
        ("{1: 2}[3]", "no such key: 3"),
        ("has(object.none.more)", "no such key: none"),
        ("1 / (n - 3)", "division by zero"),
        ("1 % (n - 3)", "modulus by zero"),
        ("9223372036854775807 + n", "integer overflow"),
        ("object.spec.list[5]", "index out of bounds: 5"),
        ("object.spec.list['a']", "unsupported index type 'string' in list"),
        ("object.spec.n.startsWith('a')", "no such overload"),
        ("object.spec.n.size() > 1", "no such overload: size"),
        ("object.spec.n + 'a'", "no such overload"),
        ("object.spec.n && true", "no such overload"),
        ("int('x' + string(n))", "type conversion error from 'string' to 'int'"),
        ("duration('x' + string(n))", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("optional.none().value()", "optional.none() dereference"),
        ("{'a': 1, 'b': 2}.transformMapEntry(k, v, {'x': v}).size() > n", "insert failed: key x already exists"),
    ],
)
def test_errors_of_evaluation(expression: str, why: str) -> None:
    program = ENVIRONMENT.compile(expression)
    with pytest.raises(EvaluationError) as caught:
        program.evaluate(activate(VALUES))
    assert str(caught.value) == why


def test_times_are_given_as_values_of_their_own() -> None:
    moment, span = time_value(datetime(2020, 1, 2, tzinfo=UTC)), time_value(timedelta(hours=2))
    assert evaluate("object.at.getDayOfMonth() + object.span.getHours()", object={"at": moment, "span": span}) == 3
    assert time_value(5) == 5


def test_a_variable_without_value_is_missing() -> None:
    with pytest.raises(EvaluationError, match=r"no such attribute\(s\): n"):
        ENVIRONMENT.compile("n > 1").evaluate(activate({}))


def test_an_optional_is_no_result() -> None:
    with pytest.raises(EvaluationError):
        evaluate("optional.of(1)")


def test_a_loop_without_end_is_cut() -> None:
    with pytest.raises(EvaluationError, match="operation cancelled: actual cost limit exceeded"):
        evaluate("object.all(a, object.all(b, object.all(c, a + b + c >= 0)))", object=list(range(120)))


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("1", "int"),
        ("1u", "uint"),
        ("null", "null"),
        ("object", "dyn"),
        ("names", "list(string)"),
        ("{'a': [1.5]}", "map(string, list(double))"),
        ("self.inner", "x.Self.inner"),
        ("url('https://x')", "kubernetes.URL"),
        ("duration('1s')", "duration"),
    ],
)
def test_names_of_result_types(expression: str, name: str) -> None:
    assert ENVIRONMENT.compile(expression).result_type == name


def test_programs_tell_what_they_mention() -> None:
    program = ENVIRONMENT.compile("self.n > 1 && [self.s, object.x.y].size() > 0 && {'a': names}.size() > 0")
    assert program.selected >= {("self", "n"), ("self", "s"), ("object", "x")}
    assert program.identifiers >= {"self", "object", "names"}


def test_a_program_is_compiled_once() -> None:
    assert ENVIRONMENT.compile("n > 1") is ENVIRONMENT.compile("n > 1")


def test_the_least_used_programs_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcp.schema.cel.engine._CACHED_PROGRAMS", 2)
    environment = Environment({"n": INT})
    first = environment.compile("n + 1")
    environment.compile("n + 2")
    environment.compile("n + 3")
    assert environment.compile("n + 1") is not first


def test_an_environment_may_have_more_functions() -> None:
    environment = Environment({"n": INT}, [function("twice", Overload("twice_int", (INT,), INT, lambda n: 2 * n))])
    assert environment.compile("twice(n)").result_type == "int"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text("abcé\n"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_values_pass_through_unchanged(value: object) -> None:
    assert evaluate("object", object=value) == value


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("[1, 'a', 2]", "1:5: expected type 'int' but found 'string'\n | [1, 'a', 2]\n | ....^"),
        ("n > 1 &&\n [[1], ['a']].size() > 0", "2:8: expected type 'list(int)' but found 'list(string)'"),
        ("{'a': 1, 2: 3}", "1:10: expected type 'string' but found 'int'"),
        ("{'a': 1, 'b': 1.5}", "1:15: expected type 'int' but found 'double'"),
        ("[self.inner, self]", "1:14: expected type 'x.Self.inner' but found 'x.Self'"),
        ("[{'a': 1}, {'a': 'b'}]", "expected type 'map(string, int)' but found 'map(string, string)'"),
        ("duration('1 hour') > duration('1s')", "1:10: invalid duration argument"),
        ("timestamp('yesterday') < timestamp('2020-01-01T00:00:00Z')", "1:11: invalid timestamp argument"),
        ("self.s.matches('(')", "1:16: invalid matches argument"),
        ("[duration('1s'), 1]", "expected type 'duration' but found 'int'"),
    ],
)
def test_literals_must_be_of_one_kind_and_readable(expression: str, complaint: str) -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(expression)
    assert f"ERROR: <input>:{complaint}" in str(caught.value) or complaint in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "[1, object.x]",
        "[dyn(1), 'a']",
        "[null, self.inner]",
        "[?object.?x, 1]",
        "[?optional.of('a'), 'b']",
        "{?'a': object.?x, 'b': 1}",
        "duration('1h30m') > duration('-1.5s')",
        "'a'.matches('^a+$')",
        "[]",
        "{}",
    ],
)
def test_literals_that_are_fine(expression: str) -> None:
    ENVIRONMENT.compile(expression)


def test_awkward_names_of_fields_do_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    fields: dict[str, CelType] = {
        "a_b": MapType(INT),
        "aB": MapType(STRING),
        "x": MapType(INT),
        "XEntry": INT,
        "not-a-name": INT,
        "in": INT,
    }
    environment = Environment({"self": ObjectType("t.Self", fields)})
    for expression in ("self.a_b['k'] == 1", "self.aB['k'] == 'v'", "self.x['k'] + self.XEntry == 3"):
        program = environment.compile(expression)
        assert program.evaluate(activate({"self": {"a_b": {"k": 1}, "aB": {"k": "v"}, "x": {"k": 1}, "XEntry": 2}}))
    assert capfd.readouterr().err == ""


def test_an_object_with_very_many_fields_is_not_checked() -> None:
    huge = ObjectType("t.Huge", {f"f{n}": INT for n in range(70_000)})
    environment = Environment({"self": huge, "other": ObjectType("t.Other", {"huge": huge, "many": ListType(huge)})})
    for expression in ("self", "self.f69999", "other.huge.f1", "other.many[0].f1"):
        assert environment.compile(expression).result_type == "dyn"
    largest = ObjectType("t.Large", {f"f{n}": STRING for n in range(MAX_FIELDS)})
    assert Environment({"self": largest}).compile(f"self.f{MAX_FIELDS - 1}").result_type == "string"
