"""Metadata rules shared by all kinds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.auth.user import UserInfo
from kcp.meta import validation
from kcp.meta.field import FieldPath
from kcp.registry import metadata
from kcp.registry.gostruct import GoStruct
from kcp.registry.strategies.configmaps import ConfigMapStrategy
from kcp.registry.strategies.leases import LeaseStrategy
from kcp.registry.strategies.rbac import RoleStrategy
from kcp.registry.strategy import Strategy, WriteContext

if TYPE_CHECKING:
    from kcp.meta.codec import Object

UID = "1b4d0d33-5d64-4ad2-a8a1-9c9f8a1f2a11"
CONTEXT = WriteContext("root", UserInfo("jane"), datetime(2025, 1, 1, tzinfo=UTC), lambda *_: True)
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": UID}
LABEL_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def check(**fields: Any) -> list[str]:  # noqa: ANN401
    made: Object = {"name": "a", "namespace": "n"} | fields
    return list(
        map(
            str,
            metadata.validate_object_meta(made, namespaced=True, check_name=validation.check_dns1123_subdomain),
        )
    )


def check_update(new: Object, old: Object) -> list[str]:
    same: Object = {"name": "a", "namespace": "n", "uid": UID, "resourceVersion": "1"}
    return list(map(str, metadata.validate_object_meta_update(same | new, same | old)))


def test_plain_metadata_is_valid() -> None:
    fields: Object = {
        "labels": {"app": "x", "example.com/y": ""},
        "annotations": {"Example.COM/Any": "é", "k": "v"},
        "ownerReferences": [OWNER, {**OWNER, "controller": False}],
        "finalizers": ["example.com/hold", "orphan"],
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
        "generation": 3,
    }
    assert check(**fields) == []


@pytest.mark.parametrize(
    ("fields", "complaints"),
    [
        pytest.param({"name": ""}, ["metadata.name: Required value: name or generateName is required"], id="no name"),
        pytest.param({"namespace": ""}, ["metadata.namespace: Required value"], id="no namespace"),
        pytest.param(
            {"generation": -1},
            ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
            id="negative generation",
        ),
        pytest.param(
            {"labels": {"bad key": "v"}}, [f'metadata.labels: Invalid value: "bad key": {LABEL_KEY}'], id="label key"
        ),
        pytest.param(
            {"labels": {"k": "x" * 64}},
            [f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
            id="label value",
        ),
        pytest.param(
            {"annotations": {"bad key": "v"}},
            [f'metadata.annotations: Invalid value: "bad key": {LABEL_KEY}'],
            id="annotation key",
        ),
        pytest.param(
            {"annotations": {"k": "x" * (256 << 10)}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations too long",
        ),
        pytest.param(
            {"annotations": {"k": "é" * (128 << 10)}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations counted in bytes",
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                "finalizer orphan and foregroundDeletion cannot be both set"
            ],
            id="conflicting finalizers",
        ),
        pytest.param(
            {"finalizers": ["bad key"]},
            [f'metadata.finalizers: Invalid value: "bad key": {LABEL_KEY}'],
            id="finalizer name",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""}]},
            [
                'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty',
                'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
                'metadata.ownerReferences.name: Invalid value: "": must not be empty',
                'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
            ],
            id="empty owner",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "kind": "Event"}]},
            [
                "metadata.ownerReferences: Invalid value: "
                f'{{"apiVersion":"v1","kind":"Event","name":"o","uid":"{UID}"}}'
                ": /v1, Kind=Event is disallowed from being an owner"
            ],
            id="event as owner",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "name": "p", "controller": True}]},
            [
                "metadata.ownerReferences: Invalid value: "
                f'[{{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"{UID}","controller":true}},'
                f'{{"apiVersion":"v1","kind":"ConfigMap","name":"p","uid":"{UID}","controller":true}}]: '
                "Only one reference can have Controller set to true. "
                'Found "true" in references for ConfigMap/o and ConfigMap/p'
            ],
            id="two controllers",
        ),
        pytest.param(
            {"managedFields": [{"operation": "Nope", "fieldsType": "V2", "manager": "é" * 65 + "\a"}]},
            [
                'metadata.managedFields[0].operation: Invalid value: "Nope": must be `Apply` or `Update`',
                'metadata.managedFields[0].fieldsType: Invalid value: "V2": must be `FieldsV1`',
                "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
                f'metadata.managedFields[0].manager: Invalid value: "{"é" * 65}\\a": '
                "invalid character U+0007 (at position 130)",
            ],
            id="managed fields",
        ),
        pytest.param(
            {"managedFields": [{"operation": "Update", "subresource": "s" * 257}]},
            ["metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes"],
            id="subresource of managed fields",
        ),
    ],
)
def test_wrong_metadata_is_refused_in_kubernetes_words(fields: Object, complaints: list[str]) -> None:
    assert check(**fields) == complaints


def test_cluster_scoped_objects_have_no_namespace() -> None:
    made = {"name": "a", "namespace": "n"}
    errors = metadata.validate_object_meta(made, namespaced=False, check_name=lambda name: [], path=FieldPath("x"))
    assert list(map(str, errors)) == ["x.namespace: Forbidden: not allowed on this type"]


def test_generate_name_may_end_in_a_dash_but_is_checked_like_a_name() -> None:
    assert check(generateName="gen-") == []
    assert [text.split(":")[0] for text in check(generateName="Gen-", name="Gen-x")] == [
        "metadata.generateName",
        "metadata.name",
    ]


@pytest.mark.parametrize(("name", "masked"), [("a-", "a"), ("abc-", "aba"), ("-", "-"), ("abc", "abc")])
def test_mask_trailing_dash(name: str, masked: str) -> None:
    assert metadata.mask_trailing_dash(name) == masked


@pytest.mark.parametrize(
    ("new", "old", "complaints"),
    [
        pytest.param({}, {}, [], id="no change"),
        pytest.param(
            {"uid": "x"}, {}, ['metadata.uid: Invalid value: "x": field is immutable'], id="uid cannot change"
        ),
        pytest.param(
            {"deletionGracePeriodSeconds": 33},
            {"deletionGracePeriodSeconds": 0},
            ["metadata.deletionGracePeriodSeconds: Invalid value: 33: field is immutable"],
            id="grace period",
        ),
        pytest.param(
            {"name": "b", "namespace": "m"},
            {"deletionTimestamp": "2001-01-01T00:00:00Z"},
            [
                'metadata.name: Invalid value: "b": field is immutable',
                'metadata.namespace: Invalid value: "m": field is immutable',
                "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            ],
            id="several",
        ),
        pytest.param(
            {"resourceVersion": ""},
            {},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
            id="resource version",
        ),
        pytest.param(
            {"generation": 1},
            {"generation": 2},
            ["metadata.generation: Invalid value: 1: must not be decremented"],
            id="generation",
        ),
        pytest.param(
            {"deletionTimestamp": "t", "finalizers": ["x/b", "x/a", "x/old"]},
            {"deletionTimestamp": "t", "finalizers": ["x/old", "x/gone"]},
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                'found new finalizers []string{"x/a", "x/b"}'
            ],
            id="finalizer while deleting",
        ),
        pytest.param(
            {"deletionTimestamp": "t"}, {"deletionTimestamp": "t", "finalizers": ["x/old"]}, [], id="finalizer removed"
        ),
        pytest.param(
            {"managedFields": [{}], "labels": {"a b": "c"}},
            {},
            [
                f'metadata.labels: Invalid value: "a b": {LABEL_KEY}',
                'metadata.managedFields[0].operation: Invalid value: "": must be `Apply` or `Update`',
            ],
            id="new values are checked",
        ),
    ],
)
def test_changes_of_metadata(new: Object, old: Object, complaints: list[str]) -> None:
    assert check_update(new, old) == complaints


def test_a_kind_that_looks_again_repeats_the_causes() -> None:
    old: Object = {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", "uid": UID, "resourceVersion": "1"}}
    new: Object = {"kind": "ConfigMap", "metadata": {**old["metadata"], "labels": {"a b": "c"}, "uid": "x"}}
    found = metadata.validate_changed_object(ConfigMapStrategy(), new, old, CONTEXT, namespaced=True)
    labels, uid = "metadata.labels", "metadata.uid"
    # Twice in the common check; in the kind's own once against the old object and once as if it were new.
    assert [error.field for error in found] == [labels, uid, labels, uid, labels, labels]
    found = metadata.validate_changed_object(LeaseStrategy(), new, old, CONTEXT, namespaced=True)
    assert [error.field for error in found] == [labels, uid, labels, uid, labels]
    found = metadata.validate_changed_object(Strategy(), new, old, CONTEXT, namespaced=True)
    assert [error.field for error in found] == [labels, uid, labels]


def test_a_changed_generate_name_is_checked_by_the_kinds_own_rule() -> None:
    old: Object = {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}}
    new: Object = {"metadata": {**old["metadata"], "generateName": "Bad_"}}
    found = metadata.validate_changed_object(ConfigMapStrategy(), new, old, CONTEXT, namespaced=True)
    assert [error.field for error in found] == ["metadata.generateName"]
    assert metadata.validate_changed_object(RoleStrategy(), new, old, CONTEXT, namespaced=True) == []


def test_new_objects_are_checked_by_the_kinds_own_name_rule() -> None:
    obj: Object = {"metadata": {"name": "system:a", "namespace": "n", "generateName": "."}}
    found = metadata.validate_new_object(RoleStrategy(), obj, CONTEXT, namespaced=True)
    assert list(map(str, found)) == ["metadata.generateName: Invalid value: \".\": may not be '.'"]
    found = metadata.validate_new_object(ConfigMapStrategy(), obj, CONTEXT, namespaced=True)
    assert [error.field for error in found] == ["metadata.generateName", "metadata.name"]
    del obj["metadata"]["generateName"]
    assert len(metadata.validate_new_object(Strategy(), obj, CONTEXT, namespaced=True)) == 1


@pytest.mark.parametrize(
    ("finalizer", "is_valid"),
    [("kubernetes", True), ("orphan", True), ("foregroundDeletion", True), ("x.io/y", True), ("plain", False)],
)
def test_finalizers_of_built_in_kinds_are_known_or_have_a_domain(finalizer: str, is_valid: bool) -> None:
    errors = metadata.validate_kube_finalizers({"finalizers": ["x/y", finalizer]})
    why = "name is neither a standard finalizer name nor is it fully qualified"
    expected = [] if is_valid else [f'metadata.finalizers[1]: Invalid value: "{finalizer}": {why}']
    assert list(map(str, errors)) == expected


def test_status_writes_keep_metadata() -> None:
    new: Object = {"name": "a", "labels": {"new": "1"}, "annotations": {"new": "1"}, "managedFields": [1]}
    metadata.reset_object_meta_for_status(new, {"name": "a", "labels": {"old": "1"}, "generation": 4})
    assert new == {"name": "a", "labels": {"old": "1"}, "generation": 4, "managedFields": [1]}


def test_prefixes_of_path_segments_may_be_dots() -> None:
    assert metadata.check_path_segment_prefix("..") == []
    assert metadata.check_path_segment_prefix("a/%") == ["may not contain '/'", "may not contain '%'"]


def test_structs_are_printed_in_the_order_of_their_type() -> None:
    fields = (("b", "B", ""), ("a", "A", None, (("x", "X", 0),)))
    assert str(GoStruct.of({"a": [{"x": 1}, {}]}, fields)) == '{"B":"","A":[{"X":1},{"X":0}]}'
    assert str(GoStruct.of({"a": {"x": 1}}, fields)) == '{"B":"","A":{"X":1}}'
    assert str(GoStruct.of({}, fields)) == '{"B":"","A":null}'
    tagged = GoStruct.tagged({"a": 1, "b": "<"}, ("b", "a", "c"))
    assert str(tagged) == '{"b":"\\u003c","a":1}'
    assert tagged == GoStruct('{"b":"\\u003c","a":1}')
    assert len({tagged, GoStruct(str(tagged))}) == 1


@given(st.dictionaries(st.text(max_size=400), st.text(max_size=400), max_size=4))
def test_labels_are_refused_exactly_when_a_key_or_value_is(labels: dict[str, str]) -> None:
    expected = any(validation.check_qualified_name(key) for key in labels) or any(
        validation.check_label_value(value) for value in labels.values()
    )
    assert bool(metadata.validate_labels(labels, FieldPath("labels"))) is expected


def test_of_many_controllers_only_some_are_told() -> None:
    references = [{**OWNER, "name": f"o{number}", "controller": True} for number in range(50)]
    told = [str(error) for error in metadata.validate_owner_references(references, FieldPath("metadata"))]
    assert [text.rpartition(" ")[2] for text in told] == [f"ConfigMap/o{number}" for number in (1, 2, 3, 4)]


def test_a_flood_of_mistakes_is_not_listed_to_its_end() -> None:
    labels = {f"bad key {number}": "v" for number in range(5_000)}
    assert 1_000 < len(metadata.validate_labels(labels, FieldPath("metadata.labels"))) < 1_100
    assert 1_000 < len(metadata.validate_annotations(labels, FieldPath("metadata.annotations"))) < 1_100
