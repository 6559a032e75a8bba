"""Rules of schemas: how they see values, and what they cannot be asked. `test_crd_rules` has the recorded behaviour."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.schema.cel.bounded import EXCEEDED
from kcp.schema.cel.escaping import escape, reserved_in
from kcp.schema.cel.evaluation import SchemaRules
from kcp.schema.cel.unordered import is_equal, merge
from kcp.schema.cel.views import compile_selection, compile_view, parse_duration
from kcp.schema.structural.nodes import make_node

SET = '{"set":true}'
TAGGED = {"name": "x", "tags": ["p", "q"]}
NO_BOOL = "expected type 'bool' but found"
STOPPED = "no further validation rules will be run due to call cost exceeds limit for"
BY_NAME = '{"keys":["name"],"element":{"fields":{"tags":{"set":true}}}}'


def ask(schema: dict[str, Any], value: object, **rule: object) -> list[str]:
    """What is wrong with the field `f` under one rule."""
    field = {**schema, "x-kubernetes-validations": [rule]}
    rules = SchemaRules({"type": "object", "properties": {"f": field}})
    return [str(error) for error in rules({"f": value}, None)]


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("a", "a"),
        ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
        ("a__b", "a__underscores__b"),
        ("a___b", "a__underscores___b"),
        ("for", "__for__"),
        ("namespace", "__namespace__"),
        ("-", "__dash__"),
        ("", None),
        ("1a", None),
        ("a b", None),
        ("ä", None),
    ],
)
def test_names_are_escaped(name: str, identifier: str | None) -> None:
    assert escape(name) == identifier


@pytest.mark.parametrize(
    ("identifier", "word"), [("__namespace__", "namespace"), ("__true__", ""), ("a", ""), ("__x__", "")]
)
def test_reserved_words_that_are_no_tokens_may_stand_for_themselves(identifier: str, word: str) -> None:
    assert reserved_in(identifier) == word


@given(st.text("ab_.-/", min_size=1), st.text("ab_.-/", min_size=1))
def test_different_names_have_different_identifiers(left: str, right: str) -> None:
    assert (escape(left) == escape(right)) == (left == right)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("1h2m3s4ms", 3_723_004_000_000),
        ("-1.5s", -1_500_000_000),
        ("+.5us", 500),
        ("2 days", 2 * 24 * 3600 * 10**9),
        ("1 week 1 hr", (7 * 24 + 1) * 3600 * 10**9),
        ("5 bananas", None),
        ("", None),
    ],
)
def test_durations_are_read_as_go_and_scala_do(text: str, nanoseconds: int | None) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        {"type": "array", "items": {"type": "boolean"}},
    ],
    ids=str,
)
def test_most_values_are_their_own_view(schema: dict[str, Any]) -> None:
    assert compile_view(make_node(schema), is_resource=False) is None


def test_a_view_has_what_expressions_see() -> None:
    properties = {"a-b": {"type": "number"}, "n": {"type": "integer", "nullable": True}, "t": {"type": "string"}}
    values = {"type": "object", "properties": properties}
    node = make_node({"type": "object", "additionalProperties": {"type": "array", "items": values}})
    view = compile_view(node, is_resource=False)
    assert view is not None
    assert view({"k": [{"a-b": 1, "n": None, "t": "x"}, None], "z": None}) == {
        "k": [{"a-b": 1.0, "a__dash__b": 1.0, "t": "x"}, None],
        "z": None,
    }


def test_a_selection_has_only_what_is_looked_at() -> None:
    properties = {"namespace": {"type": "string"}, "a-b": {"type": "number"}, "z": {"type": "string"}}
    node = make_node({"type": "object", "properties": properties})
    view = compile_selection(node, frozenset({"namespace", "__namespace__", "a__dash__b", "y"}), is_resource=False)
    assert view is not None
    seen = view({"namespace": "n", "a-b": 1, "z": "z"})
    assert seen == {"namespace": "n", "__namespace__": "n", "a__dash__b": 1.0}
    assert view({"namespace": None}) == {}


@pytest.mark.parametrize("string_format", ["date-time", "duration", "byte"])
def test_what_does_not_read_as_its_format_stays_a_string(string_format: str) -> None:
    view = compile_view(make_node({"type": "string", "format": string_format}), is_resource=False)
    assert view is not None
    assert view("+?") == "+?"


@pytest.mark.parametrize(
    ("left", "right", "shape", "same"),
    [
        (["a", "b"], ["b", "a"], SET, True),
        (["a", "b"], ["b"], SET, False),
        (["a", "b"], ["b", "c"], SET, False),
        ([TAGGED, {"name": "y"}], [{"name": "y"}, {"name": "x", "tags": ["q", "p"]}], BY_NAME, True),
        ([{"name": "x"}], [{"name": "y"}], BY_NAME, False),
        ([{"name": "x", "v": 1}], [{"name": "x", "v": 2}], BY_NAME, False),
        ([["a", "b"], ["c"]], [["b", "a"], ["c"]], '{"element":{"set":true}}', True),
        ([["a"], ["c"]], [["c"], ["a"]], '{"element":{"set":true}}', False),
        ({"k": ["a", "b"]}, {"k": ["b", "a"]}, '{"element":{"set":true}}', True),
        ({"k": ["a"]}, {"l": ["a"]}, '{"element":{"set":true}}', False),
        ({"k": "a"}, ["a"], '{"element":{"set":true}}', False),
        ("a", "a", SET, True),
    ],
)  # fmt: skip
def test_lists_without_order_are_equal_in_any_order(left: object, right: object, shape: str, same: bool) -> None:
    assert is_equal(left, right, shape) is same


@given(st.lists(st.integers(0, 5), unique=True), st.lists(st.integers(0, 5), unique=True))
def test_the_sum_of_sets_is_their_union(left: list[int], right: list[int]) -> None:
    merged = merge(left, right, SET)
    assert merged[: len(left)] == left
    assert sorted(merged) == sorted({*left, *right})


def test_the_sum_of_lists_with_keys_takes_values_from_the_right() -> None:
    left, right = [{"name": "x", "v": 1}, {"name": "y"}], [{"name": "z"}, {"name": "x", "v": 2}]
    assert merge(left, right, BY_NAME) == [{"name": "x", "v": 2}, {"name": "y"}, {"name": "z"}]


def test_the_sum_of_lists_of_sets_is_one_after_the_other() -> None:
    assert merge([["a"]], [["a"]], '{"element":{"set":true}}') == [["a"], ["a"]]


@pytest.mark.parametrize(
    ("count", "errors"),
    [
        (20, []),
        (150, []),
        (450, [f"f: Invalid value: \"array\": '{EXCEEDED}': {STOPPED} rule: once"]),
    ],
    ids=["at once", "in pieces", "too many"],
)  # fmt: skip
def test_long_loops_are_evaluated_in_pieces(count: int, errors: list[str]) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    rule = "self.all(x, self.exists_one(y, x == y))"
    assert ask(schema, list(range(count)), rule=rule, message="once") == errors


@pytest.mark.parametrize(
    ("condition", "errors"),
    [
        ("x < 14999", ["f: Invalid value: no"]),
        ("1 / x < 2", ['f: Invalid value: "array": division by zero evaluating rule: no']),
        ("1 / x < 2 && x < 14999", ["f: Invalid value: no"]),
        ("x >= 0", []),
    ],
)
def test_loops_in_pieces_fail_as_whole_ones(condition: str, errors: list[str]) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    assert ask(schema, list(range(15_000)), rule=f"self.all(x, {condition})", message="no") == errors


@pytest.mark.parametrize(
    ("rule", "errors"),
    [
        ("self.charAt(3) == '' && self.charAt(1) == 'b'", []),
        ("self.substring(1) == 'bc' && self.substring(0, 1) == 'a' && self.substring(3) == ''", []),
        ("self.charAt(4) == ''", ["index out of range: 4"]),
        ("self.substring(-1) == ''", ["index out of range: -1"]),
        ("self.substring(0, 4) == ''", ["index out of range: 4"]),
        ("self.substring(2, 1) == ''", ["invalid substring range. start: 2, end: 1"]),
        ("self.matches(self + '(')", ["error parsing regexp: missing closing ): `abc(`"]),
    ],
)
def test_strings_fail_in_cel_gos_words(rule: str, errors: list[str]) -> None:
    shown = [f'f: Invalid value: "string": {error} evaluating rule: r' for error in errors]
    assert ask({"type": "string"}, "abc", rule=rule, message="r") == shown


def test_a_rule_that_is_stopped_stops_all_others() -> None:
    stopped = {"rule": "lists.range(2000000).size() == 1"}
    item = {"type": "integer", "x-kubernetes-validations": [stopped]}
    rules = SchemaRules({"type": "object", "properties": {"f": {"type": "array", "items": item}}})
    assert len(rules({"f": [1, 2, 3]}, None)) == 1


def test_a_message_that_is_stopped_stops_all_others() -> None:
    rule = {"rule": "false", "messageExpression": "string(lists.range(2000000).size())"}
    item = {"type": "integer", "x-kubernetes-validations": [rule, {"rule": "false"}]}
    rules = SchemaRules({"type": "object", "properties": {"f": item}})
    assert [str(error) for error in rules({"f": 1}, None)] == [
        f'f: Invalid value: "integer": {STOPPED} messageExpression: "string(lists.range(2000000).size())"'
    ]


@pytest.mark.parametrize(
    ("rule", "errors"),
    [
        ("", []),
        ("self >", ["f: Invalid value: \"integer\": rule compile error: compilation failed: ERROR: <input>:1:7: "]),
    ],
)  # fmt: skip
def test_rules_that_were_stored_without_a_check_are_reported(rule: str, errors: list[str]) -> None:
    found = ask({"type": "integer"}, 1, rule=rule)
    assert [text.partition("Syntax error")[0] for text in found] == errors


def test_a_field_path_that_leads_nowhere_is_left_out() -> None:
    field = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert ask(field, {}, rule="false", fieldPath=".b", message="m") == ["f: Invalid value: m"]


def test_a_schema_without_rules_finds_nothing() -> None:
    assert SchemaRules({"type": "object"})({"a": 1}, None) == []


@pytest.mark.parametrize(
    ("rule", "complaints"),
    [
        ("self.n && self.b", ["1:5: expected type 'bool' but found 'int'"]),
        ("self.b || (self.s)", ["1:16: expected type 'bool' but found 'string'"]),
        ("(self.b ? self.b : (true && self.n)) && true", ["1:33: expected type 'bool' but found 'int'"]),
        ("self.n ||\nself.s", [f"1:5: {NO_BOOL} 'int'", f"2:5: {NO_BOOL} 'string'"]),
        ("[1].all(x, x && true)", ["1:14: found no matching overload for '_&&_' applied to '(int, bool)'"]),
        ("self.s == '&&' && self.n", ["1:23: expected type 'bool' but found 'int'"]),
        ("nope.field", ["1:1: undeclared reference to 'nope' (in container '')"]),
        ("self.n.a.b", ["1:7: type 'int' does not support field selection"]),
        ("self.`n` > 1", ["1:6: unsupported syntax: '`'"]),
        ("self.s == '`'", []),
    ],
)  # fmt: skip
def test_operands_and_names_are_reported_where_cel_go_reports_them(rule: str, complaints: list[str]) -> None:
    properties = {"n": {"type": "integer"}, "b": {"type": "boolean"}, "s": {"type": "string"}}
    text = "".join(ask({"type": "object", "properties": properties}, {"n": 1, "s": "`", "b": True}, rule=rule))
    heads = [line.partition("ERROR: <input>:")[2] for line in text.split("\n") if "ERROR" in line]
    assert heads == complaints
