"""Field sets and path elements: their form on the wire, their order and their algebra."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.meta.codec import Object
from kcp.patch.field_path import canonical, describe, sort_key
from kcp.patch.field_set import FieldSet, normalize
from tests.patch.kinds import SERVICE, WIDGET

ELEMENTS = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"name":"x"}', 'v:"x"', "v:1", "i:0"])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
PATH_SETS = st.frozensets(PATHS, max_size=8)


def members(fields: FieldSet, paths: frozenset[tuple[str, ...]]) -> frozenset[tuple[str, ...]]:
    return frozenset(path for path in paths if path in fields)


@given(PATH_SETS, PATH_SETS)
def test_algebra_is_that_of_sets_of_paths(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> None:
    ours, theirs, everything = FieldSet.of(*left), FieldSet.of(*right), left | right
    assert members(ours, everything) == left
    assert members(ours.union(theirs), everything) == everything
    assert members(ours.intersection(theirs), everything) == left & right
    assert members(ours.difference(theirs), everything) == left - right
    assert ours.union(theirs) == FieldSet.of(*everything)
    assert ours.intersection(theirs) == FieldSet.of(*(left & right))
    assert ours.difference(theirs) == FieldSet.of(*(left - right))
    under = {path for path in left for size in range(1, len(path) + 1) if path[:size] in right}
    assert ours.recursive_difference(theirs) == FieldSet.of(*(left - under))
    assert bool(ours) == bool(left)


@given(PATH_SETS)
def test_sets_survive_the_wire(paths: frozenset[tuple[str, ...]]) -> None:
    fields = FieldSet.of(*paths)
    assert FieldSet.parse(fields.sorted()) == fields
    assert len(fields.describe()) == len(paths)
    leaves = {path for path in paths if not any(other[: len(path)] == path and other != path for other in paths)}
    assert fields.leaves() == FieldSet.of(*leaves)


def test_the_wire_form() -> None:
    fields = FieldSet.of(["data"], ["data", "k"], ["metadata", "labels", "l"])
    assert fields.sorted() == {"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}
    assert repr(fields) == "FieldSet(.data .data.k .metadata.labels.l)"
    assert FieldSet.parse(None) == FieldSet()
    assert FieldSet() != 5
    assert ["f:data", "f:x"] not in fields
    assert [] not in fields
    assert ["f:metadata"] not in fields
    assert ["f:none", "f:x", "f:y"] not in fields


@pytest.mark.parametrize(
    ("given_fields", "expected"),
    [
        ({"f:a": None}, {"f:a": {}}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"f:a": {"x:unknown": {}}}, {"f:a": {}}),
        ({"f:a": {"x:unknown": {}, "f:b": {}}}, {"f:a": {"f:b": {}}}),
        ({'k:{"b":1.0,"a":"x"}': {}}, {'k:{"a":"x","b":1}': {}}),
        ({"v: 80.0": {}}, {"v:80": {}}),
        ({'v:"<"': {}}, {'v:"\\u003c"': {}}),
        ({"i:007": {}}, {"i:7": {}}),
        ({"f:a": {".": 5, "f:b": {}}}, {"f:a": {".": {}, "f:b": {}}}),
    ],
    ids=str,
)
def test_what_is_read_is_made_canonical(given_fields: Object, expected: Object) -> None:
    assert normalize(given_fields) == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"f": {}}, "key must be 2 characters long:"),
        ({"data": {}}, "missing colon: data"),
        ({"i:x": {}}, 'strconv.Atoi: parsing "x": invalid syntax'),
        ({"v:{": {}}, "unexpected end of JSON input"),
        ({"k:5": {}}, "ReadObjectCB: expect { or n"),
        ({"f:a": 5}, "ReadMapCB: expect { or n, but found int"),
        ([], "ReadMapCB: expect { or n, but found list"),
    ],
    ids=str,
)
def test_what_is_no_field_set_is_refused(fields: object, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared
        FieldSet.parse(fields)
    assert str(caught.value) == message


def test_elements_are_sorted_as_kubernetes_sorts_them() -> None:
    ordered = [
        "f:a",
        "f:a-b",
        "f:b",
        'k:{"name":"a"}',
        'k:{"name":"a b"}',
        'k:{"port":80}',
        'k:{"port":443}',
        "v:2",
        "v:10",
        'v:"1"',
        "v:false",
        "v:true",
        "v:[1]",
        'v:{"a":1}',
        "v:null",
        "i:9",
        "i:10",
    ]
    assert sorted(reversed(ordered), key=sort_key) == ordered
    assert [*FieldSet.of(*([element] for element in reversed(ordered))).sorted()] == ordered
    assert [*normalize({"v:1": {}, ".": {}, "f:b": {}})] == ["v:1", ".", "f:b"]
    assert [*FieldSet({"f:x": {"v:1": {}, ".": {}}}).sorted()["f:x"]] == [".", "v:1"]


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("f:spec", ".spec"),
        ('k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]'),
        ('v:"a"', '[="a"]'),
        ("v:1000000", "[=1e+06]"),
        ("v:true", "[=true]"),
        ("v:null", "[=null]"),
        ("v:[1,2]", "[=[1,2]]"),
        ('v:{"a":1}', "[=a=1]"),
        ("i:0", "[0]"),
    ],
)
def test_elements_in_messages(element: str, text: str) -> None:
    assert canonical(element) == element
    assert describe(element) == text


def test_members_come_before_what_is_below_them() -> None:
    fields = FieldSet.of(["b"], ["a", "x"], ["b", "y"], ["a"])
    assert fields.describe() == [".a", ".b", ".a.x", ".b.y"]


def test_declared_fields_on_the_way_become_members() -> None:
    fields = FieldSet.of(["spec", "map", 'k:{"name":"p"}', "port"], ["spec", "labels", "l"], ["x", "y"])
    assert fields.ensure_named_fields(WIDGET).describe() == [
        ".spec",
        ".spec.labels",
        ".spec.map",
        ".spec.labels.l",
        '.spec.map[name="p"].port',
        ".x.y",
    ]
    odd = FieldSet.of(["spec", 'v:"x"', "y"], ["status", "a", "b"])
    assert odd.ensure_named_fields(SERVICE).describe() == [".spec", ".status", '.spec[="x"].y', ".status.a.b"]
