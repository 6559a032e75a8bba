"""Protobuf against what Kubernetes' Go code wrote (protobuf_samples.json), and against what no client should send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.endpoints import protobuf
from kcp.endpoints.protobuf import ProtobufError
from kcp.endpoints.protobuf_wire import MAX_DEPTH, write_varint
from kcp.meta.gvk import GroupVersionKind

if TYPE_CHECKING:
    from kcp.meta.codec import Object

SAMPLES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "protobuf_samples.json").read_text())
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": {"k": "v"}}

each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[sample["name"] for sample in SAMPLES])


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    return [without_nulls(child) for child in value] if isinstance(value, list) else value


def field(number: int, payload: bytes) -> bytes:
    return write_varint(number << 3 | 2) + write_varint(len(payload)) + payload


def enveloped(kind: str, raw: bytes, api_version: str = "v1") -> bytes:
    type_meta = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\0" + field(1, type_meta) + field(2, raw)


@each_sample
def test_objects_are_encoded_as_go_does(sample: dict[str, Any]) -> None:
    assert protobuf.encode(sample["object"]).hex() == sample["hex"]


@each_sample
def test_objects_are_decoded_as_their_json(sample: dict[str, Any]) -> None:
    decoded = protobuf.decode(bytes.fromhex(sample["hex"]))
    assert without_nulls(decoded) == sample.get("decoded", sample["object"])


@each_sample
def test_what_is_cut_off_is_refused(sample: dict[str, Any]) -> None:
    data = bytes.fromhex(sample["hex"])
    only_type_meta = 4 + 2 + data[5]
    for length in set(range(len(data) - 4)) - {only_type_meta}:  # without its last fields it is whole, only empty
        with pytest.raises(ProtobufError):
            protobuf.decode(data[:length])


def test_a_list_is_the_same_from_its_parts() -> None:
    sample = next(sample for sample in SAMPLES if sample["name"] == "config map list")
    items = sample["object"]["items"]
    assert protobuf.encode_list("ConfigMapList", "v1", "9", "c", 7, items).hex() == sample["hex"]


def test_a_list_without_items_has_metadata_only() -> None:
    data = protobuf.encode_list("SecretList", "v1", "9", "", None, [])
    assert protobuf.decode(data) == {"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}


def test_a_watch_frame_is_a_length_and_a_bare_event_around_an_enveloped_object() -> None:
    recorded = (
        "000000420a05414444454412390a376b3873000a0f0a0276311209436f6e6669674d6170121c0a120a016112001a0162220"
        "02a0032003800420012060a016b1201761a002200"
    )
    assert protobuf.encode_watch_frame("ADDED", CONFIG_MAP).hex() == recorded


@pytest.mark.parametrize(
    ("gvk", "can"),
    [
        pytest.param(GroupVersionKind("", "v1", "ConfigMap"), True, id="core kind"),
        pytest.param(GroupVersionKind("rbac.authorization.k8s.io", "v1", "RoleList"), True, id="list"),
        pytest.param(GroupVersionKind("meta.k8s.io", "v1", "PartialObjectMetadata"), True, id="partial metadata"),
        pytest.param(GroupVersionKind("apps.example", "v1", "DeleteOptions"), True, id="options of any group"),
        pytest.param(GroupVersionKind("", "v1", "Pod"), False, id="not served"),
        pytest.param(GroupVersionKind("example.org", "v1", "ConfigMap"), False, id="other group"),
        pytest.param(GroupVersionKind("meta.k8s.io", "v1", "Table"), False, id="table"),
    ],
)
def test_built_in_kinds_can_be_encoded(gvk: GroupVersionKind, can: bool) -> None:
    assert protobuf.can_encode(gvk) is can


def test_options_of_any_group_are_decoded() -> None:
    options = {"kind": "DeleteOptions", "apiVersion": "apps.example/v1", "propagationPolicy": "Orphan"}
    assert protobuf.decode(protobuf.encode(options)) == options


def test_the_endpoint_names_the_kind_if_the_body_does_not() -> None:
    data = b"k8s\0" + field(2, field(1, field(1, b"a")))
    expected = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}
    assert protobuf.decode(data, GroupVersionKind("", "v1", "ConfigMap")) == expected


@pytest.mark.parametrize(
    "embedded",
    [
        pytest.param(CONFIG_MAP, id="built-in in protobuf"),
        pytest.param({"apiVersion": "a.b/v1", "kind": "Foo", "x": [1, None]}, id="custom resource in JSON"),
        pytest.param({"x": 1}, id="no kind at all"),
    ],
)
def test_lists_of_anything_embed_objects(embedded: Object) -> None:
    outer = {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [embedded]}
    assert protobuf.decode(protobuf.encode(outer)) == outer


def test_nulls_are_zero_values() -> None:
    null_in_places = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": None, "creationTimestamp": None, "finalizers": ["a", None], "ownerReferences": [None]},
        "data": {"a": None},
        "binaryData": {"b": None},
    }
    spelled = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "finalizers": ["a", ""],
            "ownerReferences": [{"kind": "", "name": "", "uid": "", "apiVersion": ""}],
        },
        "data": {"a": ""},
        "binaryData": {"b": ""},
    }
    assert protobuf.decode(protobuf.encode(null_in_places)) == spelled


@pytest.mark.parametrize(
    ("schema", "decoded"),
    [
        pytest.param({"items": [None, {"type": "a"}]}, {"items": [{}, {"type": "a"}]}, id="null among schemas"),
        pytest.param({"items": []}, {}, id="no schemas"),
        pytest.param({"dependencies": {"a": []}}, {"dependencies": {"a": None}}, id="no strings"),
        pytest.param({"default": None}, {}, id="null default"),
    ],
)
def test_unions_of_schemas(schema: Object, decoded: Object) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "g", "names": {"plural": "p", "kind": "K"}, "scope": "Cluster", "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {}, "spec": spec}
    found = protobuf.decode(protobuf.encode(crd))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert found == decoded


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(field(1, field(1, b"a") + field(1, b"b")), {"metadata": {"name": "b"}}, id="last string wins"),
        pytest.param(field(1, field(1, b"a") + field(1, b"")), {"metadata": {}}, id="last string is empty"),
        pytest.param(
            field(1, field(1, b"a")) + field(1, field(3, b"b")),
            {"metadata": {"name": "a", "namespace": "b"}},
            id="messages merge",
        ),
        pytest.param(b"\x20\x01\x20\x00", {"immutable": False}, id="last number wins"),
        pytest.param(field(1, b"\x38\x05\x38\x00"), {"metadata": {}}, id="last number is zero"),
        pytest.param(field(2, field(2, b"v") + field(1, b"k")), {"data": {"k": "v"}}, id="value before key"),
        pytest.param(field(2, b""), {"data": {"": ""}}, id="empty entry"),
        pytest.param(field(2, field(1, b"k") + b"\x18\x05"), {"data": {"k": ""}}, id="unknown field in an entry"),
        pytest.param(b"\x80\x01\x05" + field(2, field(1, b"k")), {"data": {"k": ""}}, id="unknown varint"),
        pytest.param(b"\x81\x01" + bytes(8), {}, id="unknown fixed64"),
        pytest.param(b"\x85\x01" + bytes(4), {}, id="unknown fixed32"),
        pytest.param(field(16, b"abc"), {}, id="unknown bytes"),
        pytest.param(b"\x83\x01\x0b\x08\x01\x0c\x84\x01", {}, id="unknown groups"),
        pytest.param(field(1, field(1, b"\xff")), {"metadata": {"name": "\ufffd"}}, id="no UTF-8"),
        pytest.param(field(1, field(1, b"a" * 300)), {"metadata": {"name": "a" * 300}}, id="long string"),
        pytest.param(
            field(1, field(8, b"\x10\x05")), {"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}}, id="epoch"
        ),
        pytest.param(
            field(1, field(8, b"\x18\x05")), {"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}}, id="odd time"
        ),
    ],
)
def test_unusual_but_right(raw: bytes, expected: Object) -> None:
    assert protobuf.decode(enveloped("ConfigMap", raw)) == {"kind": "ConfigMap", "apiVersion": "v1", **expected}


def test_quantities_and_named_lists_have_zero_values() -> None:
    quota = enveloped("ResourceQuota", field(2, field(1, field(1, b"cpu"))))
    assert protobuf.decode(quota)["spec"] == {"hard": {"cpu": "0"}}
    resources = enveloped("APIResourceList", field(2, field(4, field(1, b"get")) + field(4, field(1, b"list"))))
    assert protobuf.decode(resources)["resources"] == [{"verbs": ["get", "list"]}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "empty data", id="nothing"),
        pytest.param(
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
            id="JSON",
        ),
        pytest.param(b"k8s\0", "empty body", id="prefix only"),
        pytest.param(
            b"k8s\0" + field(2, b""),
            "Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"\"}'",
            id="no kind",
        ),
        pytest.param(
            b"k8s\0" + field(1, field(2, b"Secret")),
            "Object 'apiVersion' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"Secret\"}'",
            id="no version",
        ),
        pytest.param(
            enveloped("Pod", b""),
            'no kind "Pod" is registered for version "v1" in scheme '
            '"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"',
            id="unknown kind",
        ),
        pytest.param(enveloped("ConfigMap", b"\x0a\x05a"), "unexpected EOF", id="length beyond the end"),
        pytest.param(enveloped("ConfigMap", b"\x0a"), "unexpected EOF", id="no length"),
        pytest.param(enveloped("ConfigMap", field(1, b"\x0a")), "unexpected EOF", id="no length of a string"),
        pytest.param(enveloped("ConfigMap", field(1, b"\x0a\x05a")), "unexpected EOF", id="string beyond the end"),
        pytest.param(enveloped("ConfigMap", b"\x81\x01\x00"), "unexpected EOF", id="short fixed64"),
        pytest.param(enveloped("ConfigMap", b"\x20\x80"), "unexpected EOF", id="half a varint"),
        pytest.param(enveloped("ConfigMap", b"\x20" + b"\xff" * 10), "proto: integer overflow", id="endless varint"),
        pytest.param(
            enveloped("ConfigMap", b"\x0a" + b"\xff" * 9 + b"\x01"),
            "proto: negative length found during unmarshaling",
            id="negative length",
        ),
        pytest.param(
            enveloped("ConfigMap", b"\x08\x01"), "proto: wrong wireType = 0 for field Metadata", id="wire type"
        ),
        pytest.param(
            enveloped("ConfigMap", field(2, b"\x08\x01")),
            "proto: wrong wireType = 0 for field Key",
            id="wire type of a key",
        ),
        pytest.param(enveloped("ConfigMap", b"\x87\x01"), "proto: illegal wireType 7", id="no such wire type"),
        pytest.param(
            enveloped("ConfigMap", b"\x0c"),
            "proto: ConfigMap: wiretype end group for non-group",
            id="end without group",
        ),
        pytest.param(enveloped("ConfigMap", b"\x02"), "proto: ConfigMap: illegal tag 0 (wire type 2)", id="field zero"),
        pytest.param(
            enveloped("ConfigMap", b"\xff\xff\xff\xff\x7f\x00"),
            "proto: ConfigMap: illegal tag -1 (wire type 34359738367)",
            id="negative field",
        ),
        pytest.param(enveloped("ConfigMap", b"\x83\x01\x0b\x0c"), "unexpected EOF", id="open group"),
        pytest.param(
            enveloped("ConfigMap", field(1, field(8, b"\x08" + b"\xff" * 8 + b"\x7f"))),
            "timestamp of 9223372036854775807 seconds is outside of the years 1 to 9999",
            id="far future",
        ),
        pytest.param(
            enveloped("ConfigMap", field(1, field(17, field(7, field(1, b"{]"))))),
            "invalid character ']' looking for beginning of object key string",
            id="broken JSON",
        ),
        pytest.param(
            enveloped(
                "CustomResourceDefinition",
                field(2, field(7, field(4, field(1, b"\x49\x00")))),
                "apiextensions.k8s.io/v1",
            ),
            "unexpected EOF",
            id="short double",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_words_of_go(data: bytes, message: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        protobuf.decode(data)
    assert str(caught.value) == message


def nested_schema(levels: int) -> bytes:
    raw = b""
    for _ in range(levels):
        raw = field(28, raw)
    version = field(4, field(1, raw))
    return enveloped("CustomResourceDefinition", field(2, field(7, version)), "apiextensions.k8s.io/v1")


def test_deep_schemas_are_read_up_to_the_limit() -> None:
    protobuf.encode(protobuf.decode(nested_schema(MAX_DEPTH - 4)))
    with pytest.raises(ProtobufError, match="exceeded max depth of 128"):
        protobuf.decode(nested_schema(MAX_DEPTH - 3))
    with pytest.raises(ProtobufError, match="exceeded max depth of 128"):
        protobuf.decode(nested_schema(20_000))


def test_lists_of_lists_are_limited() -> None:
    data = enveloped("List", b"")
    for _ in range(1000):
        data = enveloped("List", field(2, field(1, data)))
    with pytest.raises(ProtobufError, match="exceeded max depth"):
        protobuf.decode(data)


def test_groups_may_nest_without_bound() -> None:
    depth = 100_000
    raw = b"\x83\x01" + b"\x0b" * depth + b"\x0c" * depth + b"\x84\x01"
    assert protobuf.decode(enveloped("ConfigMap", raw)) == {"kind": "ConfigMap", "apiVersion": "v1"}


def test_nothing_comes_in_that_cannot_go_out() -> None:
    deep = b"[" * 252 + b"]" * 252
    data = enveloped("ConfigMap", field(1, field(17, field(7, field(1, deep)))))
    with pytest.raises(ProtobufError, match="exceeded max depth of 254"):
        protobuf.decode(data)


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, id="not for protobuf"),
        pytest.param({"metadata": {}}, id="no kind"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "metadata": 5}, id="metadata is a number"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": 5}}, id="data is a number"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"a": "?"}}, id="no base64"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "\ud800"}}, id="half a pair"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"creationTimestamp": "now"}}, id="no time"),
    ],
)
def test_what_does_not_suit_its_kind_is_not_encoded(obj: Object) -> None:
    with pytest.raises(ProtobufError, match="cannot be encoded to a protobuf message"):
        protobuf.encode(obj)


@pytest.mark.parametrize("kind", ["PodList", "ConfigMapList"])
def test_what_does_not_suit_its_list_is_not_encoded(kind: str) -> None:
    with pytest.raises(ProtobufError, match=f"v1, Kind={kind} cannot be encoded"):
        protobuf.encode_list(kind, "v1", "1", "", None, [{"metadata": {"name": 5}}])


@pytest.mark.parametrize("length", [0x7F, 0x80, 0x3FFF, 0x4000, 0x200000])
def test_lengths_take_as_many_bytes_as_they_need(length: int) -> None:
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "data": {"k": "v" * length}}
    assert protobuf.decode(protobuf.encode(obj)) == obj


@given(st.sampled_from(SAMPLES), st.data())
def test_no_bytes_do_harm(sample: dict[str, Any], data: st.DataObject) -> None:
    raw = bytearray.fromhex(sample["hex"])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(4, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    try:
        obj = protobuf.decode(bytes(raw))
    except ProtobufError:
        return
    json.dumps(obj)


LABELS = st.dictionaries(st.text(max_size=5), st.text(max_size=200), max_size=4)


@given(name=st.text(max_size=300), labels=LABELS, data=LABELS, generation=st.integers(-(2**63), 2**63 - 1))
def test_objects_survive_both_ways(name: str, labels: Object, data: Object, generation: int) -> None:
    metadata = {"name": name, "labels": labels, "generation": generation}
    present = {key: value for key, value in metadata.items() if value}
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": present, **({"data": data} if data else {})}
    assert protobuf.decode(protobuf.encode({**obj, "metadata": metadata, "data": data})) == obj
