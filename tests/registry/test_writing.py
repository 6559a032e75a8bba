"""Steps that create and update share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.admission.attributes import Operation
from kcp.meta import codec, errors
from kcp.meta.field import FieldPath, invalid
from kcp.registry.builtin import builtin_resources
from kcp.registry.custom import compile_definition
from kcp.registry.request import WriteRequest
from kcp.registry.writing import (
    SENT_DUPLICATES,
    drop_duplicate_owners,
    encode,
    is_same,
    make_attributes,
    raise_invalid,
    stored_body,
    strategy_for,
)
from kcp.store import Revision
from tests.registry.verbs import ADMIN, CLUSTER, CONFIGMAPS, NAMESPACES, NEW_EVENTS, crd, version

if TYPE_CHECKING:
    from kcp.meta.codec import Object

RESOURCES = builtin_resources()


def owner(uid: str, name: str = "o", **more: Any) -> Object:  # noqa: ANN401 - fields of a reference
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, **more}


@pytest.mark.parametrize(
    ("references", "kept", "listed"),
    [
        ([owner("1")], [owner("1")], None),
        ([owner("1"), owner("2")], [owner("1"), owner("2")], None),
        ([owner("1"), owner("1", controller=True)], [owner("1"), owner("1", controller=True)], None),
        ([owner("1"), owner("2"), owner("1")], [owner("1"), owner("2")], "1"),
        ([owner("1"), owner("2"), owner("1"), owner("2")], [owner("1"), owner("2")], "1, 2"),
        ([owner("1"), owner("1"), owner("1")], [owner("1")], "1, 1"),
    ],
    ids=["one", "two", "alike but different", "one twice", "both twice", "three times"],
)
def test_the_same_owner_counts_once(references: list[Object], kept: list[Object], listed: str | None) -> None:
    metadata: Object = {"ownerReferences": list(references)}
    warnings: list[str] = []
    drop_duplicate_owners(metadata, warnings, SENT_DUPLICATES)
    assert metadata == {"ownerReferences": kept}
    assert warnings == ([] if listed is None else [SENT_DUPLICATES.format(listed)])


def test_many_owners_are_not_compared_with_each_other() -> None:
    class Reference(dict[str, Any]):
        def __eq__(self, other: object) -> bool:
            raise AssertionError("a comparison for each pair takes seconds for thousands of owners")

        __hash__ = None

    metadata: Object = {"ownerReferences": [Reference(owner(f"u{number}")) for number in range(3)] * 2}
    warnings: list[str] = []
    drop_duplicate_owners(metadata, warnings, SENT_DUPLICATES)
    assert [each["uid"] for each in metadata["ownerReferences"]] == ["u0", "u1", "u2"]


def test_the_order_of_fields_makes_no_other_owner() -> None:
    metadata: Object = {"ownerReferences": [owner("u"), dict(reversed(owner("u").items()))]}
    drop_duplicate_owners(metadata, [], SENT_DUPLICATES)
    assert metadata["ownerReferences"] == [owner("u")]


def test_without_owners_nothing_is_added() -> None:
    metadata: Object = {}
    drop_duplicate_owners(metadata, [], SENT_DUPLICATES)
    assert metadata == {}


@pytest.mark.parametrize(
    ("gvr", "obj", "expected"),
    [
        (CONFIGMAPS, {"metadata": {"name": "a"}}, ("default", "a")),
        (CONFIGMAPS, {"metadata": {"generateName": "a-"}}, ("default", "")),
        (CONFIGMAPS, None, ("default", "")),
        (NAMESPACES, {"metadata": {"name": "a"}}, ("a", "a")),
    ],
    ids=["named", "to be named", "no object", "a namespace lies in itself"],
)
def test_how_admission_sees_the_address(gvr: Any, obj: Object | None, expected: tuple[str, str]) -> None:  # noqa: ANN401
    request = WriteRequest(CLUSTER, ADMIN, namespace="default", dry_run=True, subresource="status")
    attributes = make_attributes(RESOURCES[gvr], request, Operation.CREATE, obj, None)
    assert (attributes.namespace, attributes.name) == expected
    assert (attributes.cluster, attributes.dry_run, attributes.subresource) == (CLUSTER, True, "status")
    assert attributes.warnings is request.warnings


def test_the_name_in_the_address_comes_first() -> None:
    request = WriteRequest(CLUSTER, ADMIN, namespace="default", name="b")
    obj = {"metadata": {"name": "a"}}
    assert make_attributes(RESOURCES[CONFIGMAPS], request, Operation.UPDATE, obj, None).name == "b"


def test_rules_of_subresources() -> None:
    namespaces = RESOURCES[NAMESPACES]
    assert strategy_for(namespaces, "") is namespaces.strategy
    assert strategy_for(namespaces, "status") is namespaces.subresources["status"].strategy
    scaled = compile_definition(crd(version(subresources={"scale": {"specReplicasPath": ".spec.n"}})))["v1"]
    with pytest.raises(errors.InternalError, match="has no rules for scale"):
        strategy_for(scaled, "scale")


def test_what_is_invalid_is_called_by_its_kind() -> None:
    problem = invalid(FieldPath("spec"), "x", "bad")
    obj: Object = {"kind": "Gadget", "metadata": {"name": "a"}}
    raise_invalid(RESOURCES[CONFIGMAPS], obj, [])
    found = []
    for resource in (RESOURCES[CONFIGMAPS], RESOURCES[NEW_EVENTS], compile_definition(crd())["v1"]):
        with pytest.raises(errors.Invalid) as caught:
            raise_invalid(resource, obj, [problem])
        found.append(caught.value.message.split(" is invalid")[0])
    assert found == ['ConfigMap "a"', 'Event "a"', 'Gadget.example.io "a"']
    with pytest.raises(errors.Invalid, match=r'^Widget.example.io "" is invalid'):
        raise_invalid(compile_definition(crd())["v1"], {"metadata": {}}, [problem])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "a", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(one=JSON, other=JSON)
def test_values_are_the_same_if_their_json_is(one: object, other: object) -> None:
    def written(value: object) -> str:
        return json.dumps(value, sort_keys=True)

    assert is_same(one, other) is (written(one) == written(other))


@given(value=JSON)
def test_the_order_of_fields_does_not_count(value: object) -> None:
    turned = json.loads(json.dumps(value), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert is_same(value, turned)


@pytest.mark.parametrize(("one", "other"), [([1], [True]), ({"a": {"b": 0}}, {"a": {"b": False}})], ids=str)
def test_true_is_not_one(one: object, other: object) -> None:
    assert one == other
    assert not is_same(one, other)


def test_what_is_stored_is_what_readers_get() -> None:
    obj = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "resourceVersion": "3"},
        "data": {"k": "v"},
    }
    body = codec.loads(stored_body(encode(RESOURCES[CONFIGMAPS], obj), Revision(8)))
    assert body == obj | {"metadata": {"name": "a", "resourceVersion": "8"}}


def test_objects_are_stored_in_the_storage_version() -> None:
    old = compile_definition(crd(version(), version("v1beta1")))["v1beta1"]
    obj = {"kind": "Widget", "apiVersion": "example.io/v1beta1", "metadata": {"name": "a"}}
    assert codec.loads(stored_body(encode(old, obj), Revision(8)))["apiVersion"] == "example.io/v1"
    assert obj["apiVersion"] == "example.io/v1beta1", "the object itself is left alone"
