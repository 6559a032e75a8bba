"""Patterns in Go's syntax, and paths to fields."""

from __future__ import annotations

import pytest

from kcp.schema.structural.fieldpaths import FieldPathError, find_field
from kcp.schema.structural.nodes import make_node
from kcp.schema.structural.regexps import PatternError, compile_pattern

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"a.b": {"type": "string"}, "it's": {"type": "string"}}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {"type": "object"},
    },
}


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing closing ): `(`"),
        ("[", "missing closing ]: `[`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("(?<!a)>b", "invalid named capture: `(?<!a)>`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("a)", "unexpected ): `a)`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("\\C", "invalid escape sequence: `\\C`"),
    ],
)
def test_bad_patterns_are_explained_in_gos_words(pattern: str, why: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == f"error parsing regexp: {why}"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [("b", "abc", True), ("^b", "abc", False), (r"^\d+$", "１２", False), ("^.$", "é", True), ("a$", "a\n", False)],
)
def test_patterns_match_as_in_go(pattern: str, text: str, found: bool) -> None:
    assert compile_pattern(pattern)(text) is found


def test_no_pattern_takes_exponential_time() -> None:
    assert not compile_pattern("^(a+)+$")("a" * 5000 + "b")


@pytest.mark.parametrize(
    ("path", "found", "kind"),
    [
        (".spec['a.b']", "spec.a.b", "string"),
        (r".spec['it\'s']", "spec.it's", "string"),
        (".map.x", "map[x]", "integer"),
        (".map['x']", "map[x]", "integer"),
        ("", "", "object"),
    ],
)
def test_paths_lead_to_fields(path: str, found: str, kind: str) -> None:
    result = find_field(path, make_node(SCHEMA))
    assert result.path.text == found
    assert result.node is not None
    assert result.node.type == kind


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("spec", "expected [ or . but got: spec"),
        (".", "unexpected end of JSON path"),
        (".spec[", "unexpected end of JSON path"),
        (".spec['a.b'", "unexpected end of JSON path"),
        (".spec['a.b'x", "expected ] but got x"),
        (".spec[0]", "expected single quoted string but got 0"),
        (r".spec['\q']", r"invalid string literal: invalid escape char \q"),
        (".spec.none", "does not refer to a valid field"),
        (".any.x", "does not refer to a valid field"),
        (".map.x.y", "does not refer to a valid field"),
    ],
)
def test_wrong_paths_are_explained(path: str, why: str) -> None:
    with pytest.raises(FieldPathError) as caught:
        find_field(path, make_node(SCHEMA))
    assert str(caught.value) == why


def test_brackets_can_be_forbidden() -> None:
    with pytest.raises(FieldPathError, match="array notation is not allowed"):
        find_field(".spec['a.b']", make_node(SCHEMA), allow_brackets=False)
