"""Strategic merge patch: directives, merge keys and the order of lists."""

import copy
from typing import Any

import pytest

from kcp.meta.codec import Object
from kcp.meta.errors import BadRequest, Invalid, StatusError
from kcp.patch.strategic import apply_strategic_merge_patch, decode_strategic_merge_patch
from tests.patch.kinds import SERVICE


def patched_spec(spec: Object, patch: Object) -> Any:  # noqa: ANN401
    document = {"kind": "Service", "metadata": {}, "spec": copy.deepcopy(spec)}
    return apply_strategic_merge_patch(document, {"spec": copy.deepcopy(patch)}, SERVICE).get("spec")


def named(*names: str, **more: Any) -> list[Object]:  # noqa: ANN401
    return [{"name": name, **more} for name in names]


@pytest.mark.parametrize(
    ("spec", "patch", "expected"),
    [
        ({"type": "a", "clusterIP": "b"}, {"type": None, "clusterIP": "c"}, {"clusterIP": "c"}),
        ({"selector": {"k": "v"}}, {"selector": {"k": None, "m": "x"}}, {"selector": {"m": "x"}}),
        ({"selector": {"k": "v"}}, {"selector": {"$patch": "replace", "o": "t"}}, {"selector": {"o": "t"}}),
        ({"selector": {"k": "v"}}, {"selector": {"$patch": "delete"}}, {"selector": {}}),
        ({"replaced": {"k": "v"}}, {"replaced": {"m": "x"}}, {"replaced": {"m": "x"}}),
        ({"hosts": ["a"]}, {"hosts": ["b"]}, {"hosts": ["b"]}),
        ({}, {"selector": {"$patch": "delete"}}, {}),
        ({}, {"selector": {"a": None, "b": "c"}}, {"selector": {"b": "c"}}),
        ({"selector": "text"}, {"selector": {"$patch": "delete"}}, {}),
        ({}, {"named": [{"name": "a", "$patch": "delete"}, {"name": "b"}]}, {"named": named("b")}),
        (
            {"strategy": {"type": "a", "rollingUpdate": {"x": "y"}}},
            {"strategy": {"$retainKeys": ["type"], "type": "b"}},
            {"strategy": {"type": "b"}},
        ),
    ],
    ids=str,
)
def test_maps_and_scalars(spec: Object, patch: Object, expected: Object) -> None:
    assert patched_spec(spec, patch) == expected


@pytest.mark.parametrize(
    ("live", "patch", "expected"),
    [
        (named("a", "b"), {"named": [*named("b", port=5), *named("c")]}, ["a", "b", "c"]),
        (named("a", "b", "c"), {"named": [{"$patch": "delete", "name": "a"}]}, ["b", "c"]),
        (named("a", "a", "b"), {"named": [{"$patch": "delete", "name": "a"}]}, ["b"]),
        (named("a", "b"), {"named": [{"$patch": "replace"}, *named("z")]}, ["z"]),
        (named("b", "c"), {"$setElementOrder/named": named("c", "b"), "named": named("c")}, ["c", "b"]),
        (named("a", "b", "c"), {"$setElementOrder/named": named("c", "a")}, ["b", "c", "a"]),
        (named("a", "b"), {"named": named("new", "a")}, ["new", "a", "b"]),
        (None, {"$setElementOrder/named": named("a", "b"), "named": named("a", "b")}, ["a", "b"]),
        (None, {"$setElementOrder/named": [], "named": named("a", "b")}, ["b", "a"]),
        ([], {"named": []}, []),
        (named("a"), {"$setElementOrder/named": named("a", "b"), "named": named("b")}, ["a", "b"]),
    ],
    ids=str,
)
def test_lists_merge_by_key(live: list[Object] | None, patch: Object, expected: list[str]) -> None:
    spec = patched_spec({} if live is None else {"named": live}, patch)
    assert [item["name"] for item in spec["named"]] == expected


def test_an_item_that_is_there_is_merged() -> None:
    spec = {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}
    expected = [{"port": 1, "name": "a"}, {"port": 2, "protocol": "UDP"}]
    assert patched_spec(spec, {"ports": [{"port": 2, "name": None, "protocol": "UDP"}]})["ports"] == expected


@pytest.mark.parametrize(
    ("live", "patch", "expected"),
    [
        (["a"], {"finalizers": ["b"]}, ["b", "a"]),
        (["a", "b"], {"finalizers": ["a", "c"]}, ["a", "c", "b"]),
        (["a", "b"], {"$deleteFromPrimitiveList/finalizers": ["a"]}, ["b"]),
        (["a", "b"], {"$setElementOrder/finalizers": ["b", "a"]}, ["b", "a"]),
        (["a"], {"$setElementOrder/Finalizers": ["a"]}, ["a"]),
        (None, {"$deleteFromPrimitiveList/finalizers": ["a"]}, None),
        (None, {"$setElementOrder/finalizers": ["a"]}, None),
        (["b", "a", "b"], {"finalizers": ["c"]}, ["c", "b", "a"]),
    ],
    ids=str,
)
def test_lists_of_scalars_merge_by_value(live: list[str] | None, patch: Object, expected: list[str] | None) -> None:
    document: Object = {"metadata": {} if live is None else {"finalizers": live}}
    assert apply_strategic_merge_patch(document, {"metadata": patch}, SERVICE)["metadata"].get("finalizers") == expected


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"$deleteFromPrimitiveListOops": []}, "invalid patch format of primitive list"),
        ({"$setElementOrder": []}, "invalid patch format of setElementOrder list"),
        ({"strategy": {"$retainKeys": "type"}}, "invalid patch format of retainKeys"),
        ({"strategy": {"$retainKeys": ["type"], "list": ["a"]}}, "invalid patch format of retainKeys"),
    ],
    ids=str,
)
def test_broken_directives_are_bad_requests(patch: Object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        patched_spec({"strategy": {"type": "a"}}, patch)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"selector": {"$patch": "bogus"}}, "unknown patch type: bogus in map: map[$patch:bogus]"),
        ({"selector": {"$patch": 5}}, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        ({"selector": {"$patch": None}}, "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]"),
        ({"named": [{"$patch": "bogus"}]}, "unknown patch type: bogus in map: map[$patch:bogus]"),
        ({"named": [{"$patch": "merge"}]}, "merging lists cannot yet be specified in the patch"),
        ({"named": [{"$patch": "delete"}]}, "map: map[$patch:delete] does not contain declared merge key: name"),
        ({"named": [{"port": 1.5}]}, "map: map[port:1.5] does not contain declared merge key: name"),
        ({"named": ["x", True]}, "list element types are not identical: [[map[name:a]] [x true]]"),
        ({"keyless": [{"port": 1}]}, "cannot merge lists without merge key for struct"),
        ({"$setElementOrder/named": 5}, "expected a []interface {}, but received a int64"),
        ({"$setElementOrder/named": [], "named": 5}, "expected a []interface {}, but received a int64"),
        (
            {"$setElementOrder/named": [{}], "named": [None]},
            "expected a map[string]interface {}, but received a %!s(<nil>)",
        ),
        ({"$setElementOrder/named": ["a"]}, "expected a map[string]interface {}, but received a string"),
        ({"$setElementOrder/named": [{"x": "y"}]}, "map: map[x:y] does not contain declared merge key: name"),
        (
            {"$setElementOrder/named": [{"x": "y"}], "named": [{"name": "a"}]},
            "map: map[x:y] does not contain declared merge key: name",
        ),
        (
            {"$setElementOrder/named": ["x"], "named": [{"name": "a"}]},
            "expected a map[string]interface {}, but received a string",
        ),
        ({"$setElementOrder/hosts": [], "hosts": []}, "no elements in any of the given slices"),
        (
            {"$setElementOrder/named": named("b"), "named": named("c")},
            "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        ),
        ({"$setElementOrder/nope": []}, 'unable to find api field in struct ServiceSpec for the json field "nope"'),
        ({"$setElementOrder/type": []}, "expected slice or array type, but got: struct"),
        ({"raw": {"x": {"y": 1}}}, 'unable to find api field in struct RawExtension for the json field "x"'),
        ({"extra": {"x": ["y"]}}, "merging an object in json but data type is not struct, instead is: map"),
        ({"named": [{"name": {}}]}, "a list or an object stands where the patch needs a scalar"),
    ],
    ids=str,
)
def test_most_mistakes_are_internal_errors(patch: Object, message: str) -> None:
    spec = {
        "named": named("a"),
        "keyless": [{"port": 2}],
        "raw": {"x": {"y": 2}},
        "extra": {"x": ["z"]},
        "selector": {},
    }
    with pytest.raises(StatusError) as caught:
        patched_spec(spec, patch)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (500, "", message)


def test_lists_of_lists_are_rejected() -> None:
    with pytest.raises(Invalid, match="the server rejected our request"):
        patched_spec({"named": []}, {"named": [["a"]]})


def test_large_lists_take_linear_time() -> None:
    live = named(*(f"a{number}" for number in range(10_000)))
    spec = patched_spec({"named": live}, {"named": named(*(f"a{number}" for number in range(5_000, 15_000)))})
    assert len(spec["named"]) == 15_000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"garbage", "invalid character 'g' looking for beginning of value"),
        (b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
def test_what_is_no_object_is_a_bad_request(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_strategic_merge_patch(body)
    assert caught.value.message == message


def test_decoding() -> None:
    assert decode_strategic_merge_patch(b'{"a":1,"a":2}') == ({"a": 2}, ['duplicate field "a"'])
    assert decode_strategic_merge_patch(b'{"a":1,"a":2}', strict=False) == ({"a": 2}, [])
    assert decode_strategic_merge_patch(b"null") == ({}, [])
