"""Label selectors: the grammar, the exact errors, the canonical text, and what matches."""

import dataclasses
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.meta.labels import (
    Operator,
    Requirement,
    Selector,
    SelectorSyntaxError,
    everything,
    from_label_selector,
    make_requirement,
    nothing,
    parse,
)

KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NOT_AN_INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"
NO_VALUES = "for 'in', 'notin' operators, values set can't be empty"
ANY_VALUE = "values set must be empty for exists and does not exist"
OPERATORS = "in, notin, =, ==, !=, gt, lt"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("", "", id="empty"),
        pytest.param(" \t\r\n", "", id="only white space"),
        pytest.param("x=a,y=b,z=c", "x=a,y=b,z=c", id="equalities"),
        pytest.param("z=c,x=a", "x=a,z=c", id="sorted by key"),
        pytest.param("x!=a,x,x=b", "x!=a,x,x=b", id="same key keeps its order"),
        pytest.param("B,a,A,b", "A,B,a,b", id="sorted by code point"),
        pytest.param("x==a", "x==a", id="double equals stays"),
        pytest.param("x= ,z= ", "x=,z=", id="no value is the empty value"),
        pytest.param("! x", "!x", id="absence with white space"),
        pytest.param("\rx", "x", id="carriage return before key"),
        pytest.param("foo  in\t (abc)", "foo in (abc)", id="white space around in"),
        pytest.param("x notin\n(def,abc)", "x notin (abc,def)", id="values sorted"),
        pytest.param("x in (abc,abc)", "x in (abc)", id="values distinct"),
        pytest.param("x in ()", "x in ()", id="empty parentheses hold the empty value"),
        pytest.param("x notin ( )", "x notin ()", id="blank parentheses"),
        pytest.param("x in (a,,)", "x in (,a)", id="empty values collapse"),
        pytest.param("x notin (, a)", "x notin (,a)", id="empty value first"),
        pytest.param("x in (,)", "x in ()", id="only a comma"),
        pytest.param("x in(a)", "x in (a)", id="no space before parenthesis"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="keywords as key and values"),
        pytest.param("notin=in", "notin=in", id="keywords around equals"),
        pytest.param("!in,notin", "!in,notin", id="keywords exist"),
        pytest.param("n>1,m<05", "m<05,n>1", id="comparisons"),
        pytest.param("a.b/c-d in (1.2.3, x_y)", "a.b/c-d in (1.2.3,x_y)", id="prefixed key"),
        pytest.param("x\0=\0a", "x=a", id="zero byte separates tokens"),
        pytest.param("x,y\0\0,!!!", "x,y", id="zero byte at a token ends the selector"),
        pytest.param("\0(", "", id="zero byte first"),
    ],
)
def test_parse_accepts(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("(", "found '(', expected: !, identifier, or 'end of string'", id="parenthesis first"),
        pytest.param(",x", "found ',', expected: !, identifier, or 'end of string'", id="comma first"),
        pytest.param("==x", "found '==', expected: !, identifier, or 'end of string'", id="operator first"),
        pytest.param("x,", "found '', expected: identifier after ','", id="comma last"),
        pytest.param("x,,y", "found ',', expected: identifier after ','", id="two commas"),
        pytest.param("x==a==b", "found '==', expected: ',' or 'end of string'", id="two operators"),
        pytest.param("!x=a", "found '=', expected: ',' or 'end of string'", id="absence with value"),
        pytest.param("a in (b)c", "found 'c', expected: ',' or 'end of string'", id="no comma between"),
    ],
)
def test_parse_refuses_between_requirements(text: str, error: str) -> None:
    with pytest.raises(SelectorSyntaxError) as raised:
        parse(text)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("!", "found '', expected: identifier", id="lone bang"),
        pytest.param("!!x", "found '!', expected: identifier", id="two bangs"),
        pytest.param("x=(", "found '(', expected: identifier", id="parenthesis as value"),
        pytest.param("x===a", "found '=', expected: identifier", id="three equals"),
        pytest.param("x nott in (y)", f"found 'nott', expected: {OPERATORS}", id="unknown operator"),
        pytest.param("a (", f"found '(', expected: {OPERATORS}", id="no operator"),
        pytest.param("x!", f"found '!', expected: {OPERATORS}", id="bang behind"),
        pytest.param("x gt 5", f"found 'gt', expected: {OPERATORS}", id="operator by its name"),
        pytest.param("x in a", "found 'a' expected: '('", id="set without parenthesis"),
        pytest.param("x in", "found '' expected: '('", id="set without values"),
        pytest.param("x notin (", "found '', expected: ',', ')' or identifier", id="set not begun"),
        pytest.param("x in (=)", "found '=', expected: ',', ')' or identifier", id="operator in set"),
        pytest.param("x in (a b)", "found 'b', expected: ',' or ')'", id="set without comma"),
        pytest.param("x in (a", "found '', expected: ',' or ')'", id="set not closed"),
        pytest.param("x in (a,", "found '', expected: ',', or identifier", id="set ends with comma"),
        pytest.param("x in (a,!b)", "found '!', expected: ',', or identifier", id="bang in set"),
        pytest.param("-x", f'<nil>: Invalid value: "-x": name part {KEY_RULE}', id="bad key"),
        pytest.param('!"', f'<nil>: Invalid value: "\\"": name part {KEY_RULE}', id="bad key is quoted"),
        pytest.param(
            "/-", f'<nil>: Invalid value: "/-": prefix part must be non-empty; name part {KEY_RULE}', id="bad key twice"
        ),
        pytest.param("x=a||y=b", f'values[0][x]: Invalid value: "a||y": {VALUE_RULE}', id="bad value"),
        pytest.param(
            "x in (_b,a,_a)",
            f'[values[0][x]: Invalid value: "_a": {VALUE_RULE}, values[1][x]: Invalid value: "_b": {VALUE_RULE}]',
            id="bad values",
        ),
        pytest.param("x<a", f'values[0]: Invalid value: "a": {NOT_AN_INTEGER}', id="less than text"),
        pytest.param("x>", f'values[0]: Invalid value: "": {NOT_AN_INTEGER}', id="greater than nothing"),
        pytest.param("x>1_0", f'values[0]: Invalid value: "1_0": {NOT_AN_INTEGER}', id="greater than Python's integer"),
        pytest.param(
            "x>9223372036854775808",
            f'values[0]: Invalid value: "9223372036854775808": {NOT_AN_INTEGER}',
            id="greater than 64 bits hold",
        ),
        pytest.param("x>-5", f'values[0][x]: Invalid value: "-5": {VALUE_RULE}', id="no label can be negative"),
        pytest.param(
            "x>\u0663",
            f'[values[0]: Invalid value: "\u0663": {NOT_AN_INTEGER}, '
            f'values[0][x]: Invalid value: "\u0663": {VALUE_RULE}]',
            id="greater than a foreign digit",
        ),
    ],
)
def test_parse_refuses_inside_a_requirement(text: str, error: str) -> None:
    with pytest.raises(SelectorSyntaxError) as raised:
        parse(text)
    assert str(raised.value) == f"unable to parse requirement: {error}"


@pytest.mark.parametrize(
    ("key", "operator", "values", "error"),
    [
        pytest.param("x", "in", None, f"values: Invalid value: null: {NO_VALUES}", id="in without values"),
        pytest.param("x", "notin", [], f"values: Invalid value: []: {NO_VALUES}", id="notin with no values"),
        pytest.param(
            "x",
            "=",
            ["b", "a"],
            'values: Invalid value: ["b","a"]: exact-match compatibility requires one single value',
            id="equal to two values",
        ),
        pytest.param("x", "exists", ["a"], f'values: Invalid value: ["a"]: {ANY_VALUE}', id="exists with a value"),
        pytest.param(
            "x",
            "gt",
            [],
            "values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value is required",
            id="greater than nothing",
        ),
        pytest.param(
            "_",
            "!",
            ["<&\u2028>"],
            f'[key: Invalid value: "_": name part {KEY_RULE}, '
            rf'values: Invalid value: ["\u003c\u0026\u2028\u003e"]: {ANY_VALUE}, '
            rf'values[0][_]: Invalid value: "<&\u2028>": {VALUE_RULE}]',
            id="everything wrong, in Go's JSON and Go's quotes",
        ),
    ],
)
def test_make_requirement_refuses(key: str, operator: str, values: list[str] | None, error: str) -> None:
    with pytest.raises(SelectorSyntaxError) as raised:
        make_requirement(key, Operator(operator), values)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        pytest.param("", {}, True, id="empty selector, no labels"),
        pytest.param("x=y", {"x": "y", "z": "w"}, True, id="equal"),
        pytest.param("x=y", {}, False, id="equal, absent"),
        pytest.param("x=", {}, False, id="equal to empty, absent"),
        pytest.param("x=", {"x": ""}, True, id="equal to empty"),
        pytest.param("x!=y", {}, True, id="unequal, absent"),
        pytest.param("x!=y", {"x": "y"}, False, id="unequal, equal"),
        pytest.param("x in (a,b)", {"x": "b"}, True, id="in"),
        pytest.param("x in ()", {}, False, id="in empty value, absent"),
        pytest.param("x notin (a,b)", {"x": "b"}, False, id="notin, present"),
        pytest.param("x notin ()", {"y": ""}, True, id="notin, absent"),
        pytest.param("x", {"x": ""}, True, id="exists, empty"),
        pytest.param("x", {"y": "x"}, False, id="exists, absent"),
        pytest.param("!x", {"x": ""}, False, id="does not exist, empty"),
        pytest.param("!x", {}, True, id="does not exist, absent"),
        pytest.param("n>1", {"n": "2"}, True, id="greater"),
        pytest.param("n>1", {"n": "1"}, False, id="not greater than itself"),
        pytest.param("n>9", {"n": "10"}, True, id="as numbers, not as texts"),
        pytest.param("n>1", {"n": "v2"}, False, id="greater, no number"),
        pytest.param("n<1", {}, False, id="less, absent"),
        pytest.param("n<1", {"n": "-1"}, True, id="less, negative"),
        pytest.param("n<1", {"n": "-9223372036854775808"}, True, id="least integer"),
        pytest.param("n<1", {"n": "-9223372036854775809"}, False, id="less than the least integer"),
        pytest.param("n>1", {"n": "9" * 5000}, False, id="number without end"),
        pytest.param("n>1", {"n": "0" * 5000 + "7"}, True, id="zeros without end"),
        pytest.param("n>1", {"n": "+7"}, True, id="signed"),
        pytest.param("n>1", {"n": " 7"}, False, id="white space is no number"),
        pytest.param("x=y,z=w", {"x": "y", "z": "v"}, False, id="one of two"),
    ],
)
def test_matches(text: str, labels: Mapping[str, str], expected: bool) -> None:
    selector = parse(text)
    assert selector.matches(labels) is expected
    assert all(requirement.matches(labels) for requirement in selector.requirements) is expected


@pytest.mark.parametrize(
    ("label_selector", "canonical"),
    [
        pytest.param({}, "", id="empty"),
        pytest.param({"matchLabels": None, "matchExpressions": None}, "", id="nulls"),
        pytest.param({"matchLabels": {"b": "1", "a": None}}, "a=,b=1", id="labels"),
        pytest.param(
            {
                "matchLabels": {"foo": "bar"},
                "matchExpressions": [{"key": "baz", "operator": "In", "values": ["qux", "norf"]}],
            },
            "baz in (norf,qux),foo=bar",
            id="labels and expressions",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["z", "z"]}]},
            "a notin (z,z)",
            id="values stay as often as given",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}, {"key": "a", "operator": "Exists"}]},
            "a,!b",
            id="without values",
        ),
    ],
)
def test_from_label_selector(label_selector: Mapping[str, object], canonical: str) -> None:
    assert str(from_label_selector(label_selector)) == canonical


@pytest.mark.parametrize(
    ("label_selector", "error"),
    [
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            '"Gt" is not a valid label selector operator',
            id="operator of the text form only",
        ),
        pytest.param({"matchExpressions": [None]}, '"" is not a valid label selector operator', id="null expression"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
            f"values: Invalid value: null: {NO_VALUES}",
            id="in without values",
        ),
        pytest.param({"matchLabels": {"a": "_"}}, f'values[0][a]: Invalid value: "_": {VALUE_RULE}', id="bad value"),
        pytest.param({"matchLabels": {"_": ""}}, f'key: Invalid value: "_": name part {KEY_RULE}', id="bad key"),
        pytest.param(
            {"matchLabels": ["a"]},
            'matchLabels: Invalid value: "array": matchLabels in body must be of type object: "array"',
            id="labels of the wrong type",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [True]}]},
            'matchExpressions[0].values[0]: Invalid value: "boolean": '
            'matchExpressions[0].values[0] in body must be of type string: "boolean"',
            id="value of the wrong type",
        ),
    ],
)
def test_from_label_selector_refuses(label_selector: Mapping[str, object], error: str) -> None:
    with pytest.raises(SelectorSyntaxError) as raised:
        from_label_selector(label_selector)
    assert str(raised.value) == error


def test_everything_and_nothing_differ_though_both_print_empty() -> None:
    assert everything() == parse("") == from_label_selector({})
    assert nothing() == from_label_selector(None) != everything()
    assert str(everything()) == str(nothing()) == ""
    assert everything().is_empty
    assert not nothing().is_empty
    assert everything().matches({})
    assert not nothing().matches({"": ""})


def test_adding_to_nothing_stays_nothing_and_otherwise_sorts() -> None:
    requirement = make_requirement("a", Operator.EXISTS)
    assert nothing().add(requirement) is nothing()
    assert str(parse("b").add(requirement)) == "a,b"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("k=v", "v", id="equals"),
        pytest.param("k==v", "v", id="double equals"),
        pytest.param("k in (v)", "v", id="one of one"),
        pytest.param("k in (v,w)", None, id="one of two"),
        pytest.param("k!=v", None, id="unequal"),
        pytest.param("k,k=v", None, id="only the first on the key counts"),
        pytest.param("a=v,k=", "", id="empty value"),
        pytest.param("a=v", None, id="other key"),
    ],
)
def test_requires_exact_match(text: str, value: str | None) -> None:
    assert parse(text).requires_exact_match("k") == value


def test_unchecked_comparison_without_one_integer_matches_nothing() -> None:
    for values in ((), ("1", "2"), ("x",)):
        assert not Requirement("n", Operator.GREATER_THAN, values).matches({"n": "5"})


def test_selectors_are_immutable_values() -> None:
    selector = parse("x in (a,b)")
    assert {selector: 1}[parse("x in (b,a)")] == 1
    assert selector != parse("x notin (a,b)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        selector.requirements = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x in (" + ",".join(map(str, range(50_000))) + ")", id="values"),
        pytest.param(",".join(f"k{i}" for i in range(30_000)), id="requirements"),
        pytest.param("x in (" + "," * 200_000 + ")", id="commas"),
        pytest.param(" " * 500_000, id="white space"),
    ],
)
def test_hostile_size_is_parsed_without_recursion(text: str) -> None:
    assert parse(text).matches({}) is (not text.strip())


KEYS = st.sampled_from(["a", "b", "in", "notin", "n", "example.com/app", "X_1"])
VALUES = st.sampled_from(["", "a", "b", "in", "notin", "0", "5", "10", "c.d-e_f"])
LABELS = st.dictionaries(KEYS, VALUES)
INTEGERS = st.integers(min_value=0, max_value=2**63 - 1)
ALPHABET = st.one_of(st.sampled_from([*"=!(),<> \0\t", "in", "notin", " in (", "a", "b", "5", "-"]), st.characters())


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(Operator))
    match operator:
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            values: set[str] = set()
        case Operator.GREATER_THAN | Operator.LESS_THAN:
            values = {str(draw(INTEGERS))}
        case Operator.IN | Operator.NOT_IN:
            values = draw(st.sets(VALUES, min_size=1))
        case _:
            values = {draw(VALUES)}
    return make_requirement(draw(KEYS), operator, sorted(values))


SELECTORS = st.lists(requirements()).map(lambda found: Selector(tuple(found)))


@given(SELECTORS)
def test_printing_and_parsing_gives_the_same_selector(selector: Selector) -> None:
    again = parse(str(selector))
    assert again == selector
    assert hash(again) == hash(selector)
    assert str(again) == str(selector)


@given(st.lists(ALPHABET).map("".join))
def test_parsing_any_text_gives_a_selector_or_a_syntax_error(text: str) -> None:
    try:
        selector = parse(text)
    except SelectorSyntaxError:
        return
    assert parse(str(selector)) == selector


@given(SELECTORS, SELECTORS, LABELS)
def test_a_selector_is_the_conjunction_of_its_parts(left: Selector, right: Selector, labels: dict[str, str]) -> None:
    both = left.add(*right.requirements)
    assert both.matches(labels) is (left.matches(labels) and right.matches(labels))


@given(KEYS, st.sets(VALUES, min_size=1), LABELS)
def test_in_and_notin_are_complements(key: str, values: set[str], labels: dict[str, str]) -> None:
    inside = make_requirement(key, Operator.IN, sorted(values))
    outside = make_requirement(key, Operator.NOT_IN, sorted(values))
    assert inside.matches(labels) is not outside.matches(labels)
    assert inside.matches(labels) is any(parse(f"{key}={value}").matches(labels) for value in values)


@given(KEYS, VALUES, LABELS)
def test_unary_operators_and_equality_are_complements(key: str, value: str, labels: dict[str, str]) -> None:
    assert parse(key).matches(labels) is not parse(f"!{key}").matches(labels)
    assert parse(f"{key}={value}").matches(labels) is not parse(f"{key}!={value}").matches(labels)
    assert parse(f"{key}={value}").matches(labels) is parse(f"{key}=={value}").matches(labels)


@given(INTEGERS, st.integers())
def test_comparisons_agree_with_arithmetic(bound: int, number: int) -> None:
    in_range = -(2**63) <= number < 2**63
    assert parse(f"n>{bound}").matches({"n": str(number)}) is (in_range and number > bound)
    assert parse(f"n<{bound}").matches({"n": str(number)}) is (in_range and number < bound)
