"""Merge schemas from OpenAPI."""

import pytest

from kcp.meta.codec import Object
from kcp.patch.merge_schema import (
    ANY_SCALAR,
    BOOLEAN,
    NUMERIC,
    OBJECT_META,
    STRING,
    UNTYPED,
    UNTYPED_ATOMIC,
    MergeSchema,
)
from tests.patch.kinds import DEFINITIONS, PREFIX, SERVICE, TEXT, WIDGET


@pytest.mark.parametrize(
    ("schema", "scalar"),
    [
        ({"type": "string"}, STRING),
        ({"type": "string", "format": "byte"}, STRING),
        ({"type": "string", "format": "date-time"}, ANY_SCALAR),
        ({"type": "integer", "format": "int32"}, NUMERIC),
        ({"type": "number"}, NUMERIC),
        ({"type": "boolean"}, BOOLEAN),
        ({"$ref": PREFIX + "io.k8s.apimachinery.pkg.api.resource.Quantity"}, ANY_SCALAR),
        ({"type": "object"}, None),
        ({"type": "array", "items": TEXT}, None),
    ],
    ids=str,
)
def test_scalars(schema: Object, scalar: str | None) -> None:
    node = MergeSchema.from_openapi(schema, DEFINITIONS)
    assert node.scalar == scalar
    assert (node.is_map, node.is_list) == (schema.get("type") == "object", schema.get("type") == "array")


@pytest.mark.parametrize(
    ("extensions", "keys", "is_atomic"),
    [
        ({}, (), True),
        ({"x-kubernetes-list-type": "atomic", "x-kubernetes-patch-strategy": "merge"}, (), True),
        ({"x-kubernetes-list-type": "set"}, (), False),
        ({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}, ("a", "b"), False),
        ({"x-kubernetes-patch-strategy": "merge"}, (), False),
        ({"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "a"}, ("a",), False),
        ({"x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "a"}, ("a",), False),
        ({"x-kubernetes-patch-strategy": "retainKeys"}, (), True),
    ],
    ids=str,
)
def test_lists(extensions: Object, keys: tuple[str, ...], is_atomic: bool) -> None:
    node = MergeSchema.from_openapi({"type": "array", "items": {"type": "object"}, **extensions}, {})
    assert (node.keys, node.is_list_atomic) == (keys, is_atomic)


def test_defaults_of_keys_are_known() -> None:
    assert SERVICE.fields["spec"].fields["ports"].key_defaults == {"port": 0, "protocol": "TCP"}


def test_undeclared_fields() -> None:
    declared = {"type": "object", "properties": {"a": TEXT}}
    assert MergeSchema.from_openapi(declared, {}).element is None
    assert MergeSchema.from_openapi({"type": "object"}, {}).element is UNTYPED
    assert MergeSchema.from_openapi({**declared, "additionalProperties": True}, {}).element is UNTYPED
    assert MergeSchema.from_openapi({**declared, "additionalProperties": False}, {}).element is None
    assert MergeSchema.from_openapi(declared, {}, preserve_unknown_fields=True).element is UNTYPED
    preserving = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"inner": declared}}
    assert MergeSchema.from_openapi(preserving, {}).fields["inner"].element is UNTYPED


def test_a_reference_may_make_a_type_atomic() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/x/T", "x-kubernetes-map-type": "atomic"}, "b": {"$ref": "#/x/T"}},
    }
    node = MergeSchema.from_openapi(schema, {"T": {"type": "object", "properties": {"c": TEXT}}})
    assert node.fields["a"].is_map_atomic
    assert not node.fields["b"].is_map_atomic


def test_types_that_contain_themselves() -> None:
    tree = MergeSchema.from_openapi({"$ref": PREFIX + "io.k8s.api.core.v1.Tree"}, DEFINITIONS)
    for _ in range(100):
        assert tree.go_name == "Tree"
        below = tree.fields["children"].element
        assert below is not None
        tree = below


def test_custom_resources_have_object_metadata() -> None:
    assert WIDGET.fields["metadata"] is OBJECT_META
    assert WIDGET.fields["spec"].fields["template"].fields["metadata"] is OBJECT_META
    assert WIDGET.empty == {}
    assert OBJECT_META.fields["ownerReferences"].keys == ("uid",)


def test_an_empty_object_is_as_go_writes_it() -> None:
    assert SERVICE.empty == {"metadata": {}, "spec": {"hosts": None}}


def test_what_has_no_schema_merges_maps_only() -> None:
    assert (UNTYPED.is_map_atomic, UNTYPED.is_list_atomic, UNTYPED.scalar) == (False, True, ANY_SCALAR)
    assert (UNTYPED_ATOMIC.is_map_atomic, UNTYPED_ATOMIC.is_list_atomic) == (True, True)
    raw = MergeSchema.from_openapi({"$ref": PREFIX + "io.k8s.apimachinery.pkg.runtime.RawExtension"}, DEFINITIONS)
    assert raw.is_map_atomic
    assert MergeSchema.from_openapi({"type": "array"}, {}).item is UNTYPED_ATOMIC
    assert MergeSchema.from_openapi({"$ref": "#/x/gone"}, {}).scalar == ANY_SCALAR


def test_only_known_attributes_are_answered() -> None:
    with pytest.raises(AttributeError):
        _ = WIDGET.nothing
    assert WIDGET.child("undeclared") is None
    assert WIDGET.child("spec") is WIDGET.fields["spec"]
