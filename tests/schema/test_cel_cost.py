"""Estimated costs of expressions; the numbers are those of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.schema.cel.call_costs import Call, Estimate, Operand, estimate_call
from kcp.schema.cel.cost import estimate_cost
from kcp.schema.cel.declarations import Declaration, cel_type, declare
from kcp.schema.cel.estimates import MAX_UINT64, NOTHING, ONE, UNKNOWN, Range, exactly
from kcp.schema.cel.rules import compile_rules
from kcp.schema.cel.types import ListType, MapType, ObjectType
from kcp.schema.structural.nodes import make_node

TEXT = {"type": "string", "maxLength": 10}
NUMBERS = {"type": "array", "maxItems": 10, "items": {"type": "integer"}}
WHOLE = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "s": TEXT,
        "b": {"type": "string", "format": "byte", "maxLength": 10},
        "l": {"type": "array", "maxItems": 5, "items": TEXT},
        "i": NUMBERS,
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": TEXT},
        "ll": {"type": "array", "maxItems": 3, "items": NUMBERS},
    },
}
numbers = st.one_of(st.integers(0, 1000), st.integers(0, MAX_UINT64))
ranges = st.tuples(numbers, numbers).map(lambda pair: Range(min(pair), max(pair)))


def declared(schema: dict[str, Any], *, is_resource: bool = False) -> Declaration:
    found = declare(make_node(schema), is_resource=is_resource)
    assert found is not None
    return found


def cost_of(expression: str, schema: dict[str, Any]) -> int:
    declaration = declared(schema)
    (rule,) = compile_rules(make_node({**schema, "x-kubernetes-validations": [{"rule": expression}]}), declaration)
    assert rule.program is not None, rule.error
    return estimate_cost(rule.program.checked, declaration)


EXPRESSIONS: list[tuple[str, int]] = [
    ("self.n > 1", 3),
    ("self.n == 1", 2),
    ("self.s == 'abc'", 3),
    ("self.s.startsWith('abc')", 3),
    ("self.s.contains('ab')", 6),
    ("self.s.matches('[a-z]+')", 12),
    ("self.s + 'x' == 'y'", 8),
    ("self.s < 'b'", 3),
    ("string(self.b) == 'x'", 4),
    ("bytes(self.s) == b'x'", 7),
    ("strings.quote(self.s) == 'x'", 7),
    ("'%s'.format([self.s]) == 'x'", 14),
    ("size(self.s) > 1", 4),
    ("has(self.s) && self.n > 1", 4),
    ("self.n > 1 ? self.s == 'a' : self.s == 'b'", 6),
    ("'a' in self.l", 7),
    ("self.l[0] == 'a'", 4),
    ("self.m['k'] == 'a'", 4),
    ("self.m.k == 'a'", 4),
    ("self.l.all(x, x == 'a')", 28),
    ("self.l.exists(x, x.contains('b'))", 48),
    ("self.l.exists_one(x, x == 'a')", 24),
    ("self.l.map(x, x + 'b').size() > 1", 105),
    ("self.l.filter(x, x != 'a')[0] == 'b'", 90),
    ("self.m.all(k, k != 'a' && self.m[k] != 'b')", 48),
    ("self.m.all(k, v, k != v)", 28),
    ("self.l.all(i, v, v.size() > i)", 38),
    ("self.m.transformMap(k, v, v + 'x').size() > 1", 80),
    ("self.m.transformList(k, v, k).join(',') == 'x'", 1844674407370955343),
    ("self.l.join(',') == 'a'", 24),
    ("self.l.join() == 'a'", 23),
    ("self.s.split(',').size() > 1", 12),
    ("self.s.split(',', 2).size() > 1", 12),
    ("self.s.replace('a', 'bb') == 'x'", 11),
    ("self.s.replace('', 'b') == 'x'", 11),
    ("self.s.replace('abc', 'd') == 'x'", 11),
    ("self.s.replace(self.s, self.s) == 'x'", 15),
    ("self.s.lowerAscii() == 'x'", 7),
    ("self.s.indexOf('a') > 1", 7),
    ("self.l.indexOf('a') > 1", 28),
    ("self.i.sum() > 1", 13),
    ("self.l.min() == 'a'", 28),
    ("self.s.find('[a-z]') == 'x'", 13),
    ("self.s.findAll('[a-z]', 2).size() > 1", 14),
    ("sets.contains(self.l, ['a'])", 18),
    ("sets.equivalent(self.l, ['a', 'b'])", 33),
    ("self.i.slice(0, 3).size() > 1", 18),
    ("self.i.slice(1, self.n).size() > 1", 26),
    ("self.ll.flatten().size() > 1", 18),
    ("[[[1]]].flatten(2).size() > 1", 45),
    ("self.i.reverse()[0] == 1", 24),
    ("self.i.distinct().size() > 1", 215),
    ("self.l.sort()[0] == 'a'", 67),
    ("self.i.sort()[0] == 1", 214),
    ("self.l.sortBy(x, x.size())[0] == 'a'", 157),
    ("lists.range(5).size() > 1", 18),
    ("lists.range(self.n).size() > 1", 18446744073709551615),
    ("self.ll.all(x, x.all(y, y > 1))", 168),
    ("self.ll[0] + self.ll[1] == [1]", 18),
    ("self.i + [1, 2] == self.i", 16),
    ("[1, 2, 3].all(x, x > self.n)", 32),
    ("{'a': 1, 'b': 2}.all(k, k == self.s)", 43),
    ("{'a': self.s}['a'] == 'x'", 34),
    ("dyn(self.s) == 'x'", 4),
    ("dyn([1, 2]).size() > 1", 13),
    ("type(self.n) == int", 4),
    ("optional.of(self.s).hasValue()", 4),
    ("self.?s.orValue('x') == 'x'", 4),
    ("self.l[?0].orValue('x') == 'x'", 5),
    ("optional.of(self.s).optMap(x, x + 'y').orValue('z') == 'a'", 1844674407370955286),
    ("quantity(self.s).isInteger()", 7),
    ("quantity(self.s) == quantity('1')", 8),
    ("ip(self.s).family() == 4", 8),
    ("ip(self.s) == ip('1.1.1.1')", 8),
    ("ip.isCanonical(self.s)", 10),
    ("cidr(self.s).containsIP(self.s)", 16),
    ("cidr(self.s).containsIP(ip(self.s))", 16),
    ("cidr(self.s).containsCIDR(self.s)", 19),
    ("cidr(self.s).containsCIDR(cidr(self.s))", 19),
    ("cidr(self.s).ip().family() == 4", 9),
    ("isURL(self.s)", 3),
    ("url(self.s).getHost() == 'x'", 8),
    ("url(self.s) == url('http://x')", 8),
    ("url(self.s) == url(self.s)", 16),
    ("semver(self.s).major() > 1", 8),
    ("semver(self.s) == semver('1.0.0')", 8),
    ("format.dns1123Label().validate(self.s).hasValue()", 132),
    ("format.named(self.s).hasValue()", 4),
    ("format.uri() == format.uuid()", 9),
    ("self.l == ['a']", 13),
    ("self.m == {'a': 'b'}", 33),
    ("duration(self.s) > duration('1s')", 5),
    ("timestamp(self.s) > timestamp('2000-01-01T00:00:00Z')", 5),
    ("true || self.l.all(x, x == 'a')", 28),
    ("(self.n > 1 ? self.l : ['a']).all(x, x == 'b')", 34),
    ("(self.l + ['b']).all(x, x == 'b')", 38),
    ("self.b + b'x' == b'y'", 5),
    ("self.b < b'x'", 3),
    ("1.5 > 1.0 && 2u > 1u && null == null", 3),
]


@pytest.mark.parametrize(("expression", "cost"), EXPRESSIONS, ids=[expression for expression, _ in EXPRESSIONS])
def test_expressions_cost_what_they_cost_in_kubernetes(expression: str, cost: int) -> None:
    assert cost_of(expression, WHOLE) == cost


@pytest.mark.parametrize(
    ("schema", "most", "size"),
    [
        ({"type": "string"}, 3145726, 2),
        ({"type": "string", "maxLength": 10}, 40, 2),
        ({"type": "string", "maxLength": -1}, 0, 2),
        ({"type": "string", "enum": ["a", "bcd"]}, 3, 2),
        ({"type": "string", "format": "byte"}, 3145726, 2),
        ({"type": "string", "format": "byte", "maxLength": 10}, 10, 2),
        ({"type": "string", "format": "date"}, 12, 12),
        ({"type": "string", "format": "date-time"}, 32, 21),
        ({"type": "string", "format": "duration"}, 32, 3),
        ({"x-kubernetes-int-or-string": True}, 3145726, 1),
        ({"x-kubernetes-int-or-string": True, "maxLength": 3}, 12, 1),
        ({"type": "array", "items": {"type": "boolean"}}, 629145, 2),
        ({"type": "array", "items": {"type": "boolean"}, "maxItems": 7}, 7, 2),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, 314572, 2),
        ({"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 7}, 7, 2),
        ({"type": "object", "properties": {"ab": TEXT, "c": TEXT}, "required": ["ab"]}, 0, 10),
        ({"type": "object", "properties": {"ab": {**TEXT, "default": "x"}}, "required": ["ab"]}, 0, 2),
        ({"type": "object", "properties": {"a@": TEXT}, "required": ["a@"]}, 0, 10),
    ],
    ids=str,
)
def test_schemas_say_how_large_values_get(schema: dict[str, Any], most: int, size: int) -> None:
    found = declared(schema)
    assert (found.max_elements, found.min_size) == (most, size)


@pytest.mark.parametrize(
    "schema",
    [
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "array"},
        {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
        {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}},
    ],
    ids=str,
)
def test_what_has_no_type_is_not_declared(schema: dict[str, Any]) -> None:
    assert declare(make_node(schema), is_resource=False) is None


def test_types_are_named_after_their_place() -> None:
    item = {
        "type": "object",
        "properties": {"for": {"type": "integer"}, "x": {"x-kubernetes-preserve-unknown-fields": True}},
    }
    schema = {"type": "array", "items": {"type": "object", "additionalProperties": item}}
    item_type = ObjectType("t.@idx.@elem", {"for": "int", "__for__": "int"})
    assert cel_type(declared(schema), "t") == ListType(MapType(item_type))


def test_resources_have_a_type_and_names_in_any_case() -> None:
    found = declared({"type": "object"}, is_resource=True)
    assert found.fields.keys() == {"kind", "apiVersion", "metadata"}
    assert found.fields["metadata"].fields.keys() == {"name", "generateName"}


def test_declared_metadata_stays_if_it_is_complete() -> None:
    names = {"name": TEXT, "generateName": TEXT, "uid": TEXT}
    metadata = {"type": "object", "properties": names}
    schema = {"type": "object", "properties": {"kind": TEXT, "apiVersion": TEXT, "metadata": metadata}}
    assert declared(schema, is_resource=True).fields["metadata"].fields["name"].max_elements == 40
    del names["generateName"]
    assert declared(schema, is_resource=True).fields["metadata"].fields["name"].max_elements == 3145726


@pytest.mark.parametrize(("function", "cost"), [("check", 350_000), ("group", 1), ("labelSelector", 10 + 1 + 5 * 50)])
def test_questions_about_permissions_have_prices_of_their_own(function: str, cost: int) -> None:
    text = Operand("string", "", exactly(10), None, "", UNKNOWN)
    assert estimate_call(function, Call("any", (text, text))) == Estimate(exactly(cost))


@given(ranges, ranges)
def test_ranges_never_overflow(left: Range, right: Range) -> None:
    for found in (left.plus(right), left.times(right), left.scaled(0.1), left.scaled(100), left.union(right)):
        assert 0 <= found.min <= found.max <= MAX_UINT64


@given(ranges)
def test_ranges_have_neutral_elements(some: Range) -> None:
    assert some.plus(NOTHING) == some.times(ONE) == some.union(some) == some
    assert UNKNOWN.union(some) == UNKNOWN


def test_parts_of_a_unit_count_as_a_whole_one() -> None:
    assert exactly(11).scaled(0.1) == exactly(2)
