"""Field selectors: the grammar with its escapes, the exact errors, matching, and transforming."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.meta.fields import Requirement, Selector, escape_value, everything, parse, unescape_value
from kcp.meta.labels import Operator, SelectorSyntaxError


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(",,", [], id="empty terms"),
        pytest.param("=,!=,==", [], id="no field and no value is no term"),
        pytest.param("a=b", [("a", "=", "b")], id="equal"),
        pytest.param("a==b", [("a", "=", "b")], id="double equals"),
        pytest.param("a!=b", [("a", "!=", "b")], id="unequal"),
        pytest.param("b=1,a=2,", [("a", "=", "2"), ("b", "=", "1")], id="sorted"),
        pytest.param("a==z,a=b", [("a", "=", "z"), ("a", "=", "b")], id="sorted as written"),
        pytest.param("a=", [("a", "=", "")], id="empty value"),
        pytest.param("=b", [("", "=", "b")], id="empty field"),
        pytest.param(" a = b ", [(" a ", "=", " b ")], id="white space counts"),
        pytest.param(r"k=\,,l=v2", [("k", "=", ","), ("l", "=", "v2")], id="escaped comma"),
        pytest.param(r"k=\\,l=v2", [("k", "=", "\\"), ("l", "=", "v2")], id="escaped backslash"),
        pytest.param(r"k=\\\,,l=v2", [("k", "=", "\\,"), ("l", "=", "v2")], id="escaped backslash and comma"),
        pytest.param(r"x=a||y\=b", [("x", "=", "a||y=b")], id="escaped equals"),
        pytest.param(r"a\,b=c", [("a\\,b", "=", "c")], id="field keeps its backslash"),
        pytest.param(r"a\=b", [("a\\", "=", "b")], id="no escape protects the operator"),
        pytest.param("a!b=c", [("a!b", "=", "c")], id="bang in field"),
        pytest.param("함=수,목=록", [("목", "=", "록"), ("함", "=", "수")], id="not ASCII"),
        pytest.param("a=b\nc", [("a", "=", "b\nc")], id="newline"),
    ],
)
def test_parse_accepts(text: str, terms: list[tuple[str, str, str]]) -> None:
    assert [(term.field, term.operator, term.value) for term in parse(text).requirements] == terms


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("x", "invalid selector: 'x'; can't understand 'x'", id="no operator"),
        pytest.param("x in (a,b)", "invalid selector: 'x in (a,b)'; can't understand 'b)'", id="label selector"),
        pytest.param("x=a,b", "invalid selector: 'x=a,b'; can't understand 'b'", id="second term"),
        pytest.param(r"z=\a,b", r"invalid selector: 'z=\a,b'; can't understand 'b'", id="first in sorted order"),
        pytest.param("x>1", "invalid selector: 'x>1'; can't understand 'x>1'", id="unknown operator"),
        pytest.param(" ", "invalid selector: ' '; can't understand ' '", id="white space"),
        pytest.param("x==a==b", "invalid field selector: unescaped character in value: 61", id="two operators"),
        pytest.param("x===a", "invalid field selector: unescaped character in value: 61", id="three equals"),
        pytest.param("x!==a", "invalid field selector: unescaped character in value: 61", id="unequal equals"),
        pytest.param(r"x=\a", r"invalid field selector: invalid escape sequence: \a", id="unknown escape"),
        pytest.param("x=\\\n", "invalid field selector: invalid escape sequence: \\\n", id="escaped newline"),
        pytest.param("x=a\\", "invalid field selector: invalid escape sequence: \\", id="orphan backslash"),
        pytest.param(r"x=\수=", r"invalid field selector: invalid escape sequence: \수", id="first fault counts"),
    ],
)
def test_parse_refuses(text: str, error: str) -> None:
    with pytest.raises(SelectorSyntaxError) as raised:
        parse(text)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("a", "a", id="plain"),
        pytest.param("=", r"\=", id="equals"),
        pytest.param(",", r"\,", id="comma"),
        pytest.param("\\", r"\\", id="backslash"),
        pytest.param("\\=\\,\\", r"\\\=\\\,\\", id="all of them"),
    ],
)
def test_values_are_escaped_and_read_back(value: str, escaped: str) -> None:
    assert escape_value(value) == escaped
    assert unescape_value(escaped) == value


def test_unescape_refuses_a_bare_comma() -> None:
    with pytest.raises(SelectorSyntaxError, match=r"^invalid field selector: unescaped character in value: 44$"):
        unescape_value("a,b")


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        pytest.param("", {"x": "y"}, True, id="empty selector"),
        pytest.param("x=y", {"x": "y"}, True, id="equal"),
        pytest.param("x=y", {"x": "z"}, False, id="equal, other value"),
        pytest.param("x=y", {}, False, id="equal, absent"),
        pytest.param("x=", {}, True, id="absent counts as empty"),
        pytest.param("x!=", {}, False, id="absent is not unequal to empty"),
        pytest.param("x!=y", {}, True, id="unequal, absent"),
        pytest.param("x!=y,z!=w", {"x": "z", "z": "w"}, False, id="one of two"),
        pytest.param("x=y,z=w", {"x": "y", "z": "w"}, True, id="both"),
        pytest.param(r"complex=\=value\\\,\\", {"complex": "=value\\,\\"}, True, id="escapes"),
    ],
)
def test_matches(text: str, fields: Mapping[str, str], expected: bool) -> None:
    assert parse(text).matches(fields) is expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="empty"),
        pytest.param("k=v", "v", id="equal"),
        pytest.param("k=", "", id="equal to empty"),
        pytest.param("k!=v", None, id="unequal"),
        pytest.param("a=b", None, id="other field"),
        pytest.param("k!=a,k=b,k=c", "b", id="first equality"),
    ],
)
def test_requires_exact_match(text: str, value: str | None) -> None:
    assert parse(text).requires_exact_match("k") == value


def test_everything_is_empty_and_matches() -> None:
    assert everything() == parse("")
    assert everything().is_empty
    assert everything().matches({})
    assert not parse("a=").is_empty


def test_transform_renames_drops_and_keeps_order() -> None:
    def convert(field: str, value: str) -> tuple[str, str]:
        return {"a": ("z", value.upper()), "b": ("", "")}.get(field, (field, value))

    transformed = parse("a!=x,b=y,c=z").transform(convert)
    assert str(transformed) == "z!=X,c=z"
    assert parse("b=1").transform(convert).is_empty


def test_transform_lets_a_refusal_through() -> None:
    def refuse(field: str, value: str) -> tuple[str, str]:
        raise SelectorSyntaxError(f"field label not supported: {field}")

    with pytest.raises(SelectorSyntaxError, match=r"^field label not supported: a$"):
        parse("a=b").transform(refuse)
    assert parse("").transform(refuse).is_empty


def test_order_and_spelling_do_not_distinguish_selectors() -> None:
    selector = parse("a==z,a=b")
    assert str(selector) == "a=z,a=b"
    assert selector == parse("a=b,a=z,a=b")
    assert {selector: 1}[parse("a=z,a=b")] == 1
    assert selector != parse("a!=z,a=b")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(",".join(f"a={i}" for i in range(50_000)), id="terms"),
        pytest.param("a=" + r"\\" * 250_000, id="escapes"),
        pytest.param("," * 500_000, id="commas"),
    ],
)
def test_hostile_size_is_parsed_without_recursion(text: str) -> None:
    assert parse(text).matches({}) is parse(text).is_empty


FIELDS = st.sampled_from(["metadata.name", "metadata.namespace", "a", "함"])
VALUES = st.one_of(st.text("ab,=\\!함", max_size=4), st.text(max_size=4))
TERMS = st.builds(Requirement, FIELDS, st.sampled_from([Operator.EQUALS, Operator.NOT_EQUALS]), VALUES)
SELECTORS = st.lists(TERMS).map(lambda terms: Selector(tuple(terms)))


@given(SELECTORS)
def test_printing_and_parsing_gives_the_same_selector(selector: Selector) -> None:
    assert parse(str(selector)) == selector


@given(st.text())
def test_any_value_survives_escaping(value: str) -> None:
    assert unescape_value(escape_value(value)) == value
    assert parse(f"a={escape_value(value)}").requires_exact_match("a") == value


@given(st.lists(st.one_of(st.sampled_from([*"=!,\\ab"]), st.characters())).map("".join))
def test_parsing_any_text_gives_a_selector_or_a_syntax_error(text: str) -> None:
    try:
        selector = parse(text)
    except SelectorSyntaxError:
        return
    assert parse(str(selector)) == selector


@given(SELECTORS, st.dictionaries(FIELDS, VALUES))
def test_a_selector_is_the_conjunction_of_its_terms(selector: Selector, fields: dict[str, str]) -> None:
    expected = all(
        (fields.get(term.field, "") == term.value) is (term.operator is Operator.EQUALS)
        for term in selector.requirements
    )
    assert selector.matches(fields) is expected


@given(FIELDS, VALUES, st.dictionaries(FIELDS, VALUES))
def test_equal_and_unequal_are_complements(field: str, value: str, fields: dict[str, str]) -> None:
    equal, unequal = (parse(f"{field}{operator}{escape_value(value)}") for operator in ("=", "!="))
    assert equal.matches(fields) is not unequal.matches(fields)
