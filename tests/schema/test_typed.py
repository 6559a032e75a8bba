"""Decoding of built-in kinds: what Go keeps, how it writes it, and its words for what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kcp.apis.typed import typed_for
from kcp.apis.types import type_table
from kcp.meta.gvk import parse_gvk
from kcp.schema.typed import Typed, TypeTable, UnmarshalError

CONFIG_MAP = "v1/ConfigMap"
SECRET = "v1/Secret"
QUOTA = "v1/ResourceQuota"
ROLE = "rbac.authorization.k8s.io/v1/Role"
LEASE = "coordination.k8s.io/v1/Lease"
CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"
WEBHOOKS = "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration"
CSR = "certificates.k8s.io/v1/CertificateSigningRequest"


def decoder(kind: str) -> Typed:
    return typed_for(parse_gvk(*kind.rsplit("/", 1)))


def crd_schema(schema: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}


def mismatch(value: str, field: str, go_type: str) -> str:
    return f"json: cannot unmarshal {value} into Go struct field {field} of type {go_type}"


NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
IN_SCHEMA = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema."

# (kind, body, what Go writes), recorded with k8s.io/api v0.35.0 and sigs.k8s.io/json; for kinds that Kubernetes stores
# as protobuf, after a round trip through it.
KEPT: dict[str, tuple[str, str, str]] = {
    "order": (
        CONFIG_MAP,
        '{"data":{"b":"2","a":"1"},"metadata":{"namespace":"n","name":"x"},"apiVersion":"v1","kind":"ConfigMap"}',
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"n"},"data":{"a":"1","b":"2"}}',
    ),
    "empties": (
        CONFIG_MAP,
        '{"metadata":{"name":"","labels":{},"finalizers":[],"generation":0},"data":{},"immutable":false}',
        '{"metadata":{},"immutable":false}',
    ),
    "nulls": (CONFIG_MAP, '{"metadata":null,"data":{"a":null},"immutable":null}', '{"metadata":{},"data":{"a":""}}'),
    "null metadata fields": (
        CONFIG_MAP,
        '{"metadata":{"creationTimestamp":null,"finalizers":[null,"x"],"ownerReferences":[null]}}',
        '{"metadata":{"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":""}],"finalizers":["","x"]}}',
    ),
    "required structs": ("v1/Namespace", "{}", '{"metadata":{},"spec":{},"status":{}}'),
    "required list absent": (ROLE, "{}", '{"metadata":{},"rules":null}'),
    "required list empty": (ROLE, '{"rules":[]}', '{"metadata":{},"rules":null}'),
    "required list in a rule": (ROLE, '{"rules":[{}]}', '{"metadata":{},"rules":[{"verbs":null}]}'),
    "required list kept empty in JSON storage": (
        "authentication.k8s.io/v1/TokenRequest",
        '{"spec":{"audiences":[]}}',
        '{"metadata":{},"spec":{"audiences":[],"expirationSeconds":null,"boundObjectRef":null},'
        '"status":{"token":"","expirationTimestamp":null}}',
    ),
    "times of an event": (
        "v1/Event",
        '{"firstTimestamp":"2020-01-02T03:04:05.6+02:00","eventTime":"2020-01-02T03:04:05.123456Z"}',
        '{"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":"2020-01-02T01:04:05Z","lastTimestamp":null,'
        '"eventTime":"2020-01-02T03:04:05.123456Z","reportingComponent":"","reportingInstance":""}',
    ),
    "zero times": (
        LEASE,
        '{"metadata":{"creationTimestamp":"0001-01-01T00:00:00Z","deletionTimestamp":"0001-01-01T00:00:00Z"}}',
        '{"metadata":{"deletionTimestamp":null},"spec":{}}',
    ),
    "zero micro time": (
        LEASE,
        '{"spec":{"renewTime":"0001-01-01T00:00:00.000000Z"}}',
        '{"metadata":{},"spec":{"renewTime":null}}',
    ),
    "pointers keep zeros": (
        LEASE,
        '{"spec":{"leaseDurationSeconds":0,"holderIdentity":""}}',
        '{"metadata":{},"spec":{"holderIdentity":"","leaseDurationSeconds":0}}',
    ),
    "quantities": (
        QUOTA,
        '{"spec":{"hard":{"pods":5,"cpu":"1000m","memory":" 1024Ki ","x":null,"y":1.5}}}',
        '{"metadata":{},"spec":{"hard":{"cpu":"1","memory":"1Mi","pods":"5","x":"0","y":"1500m"}},"status":{}}',
    ),
    "bytes": (
        SECRET,
        '{"data":{"a":"YQ==","b":"","c":null,"d":[97,null]}}',
        '{"metadata":{},"data":{"a":"YQ==","b":"","c":"","d":"YQA="}}',
    ),
    "bytes are made canonical": (
        SECRET,
        '{"data":{"a":"YR==","b":"YW\\nJj\\r\\n"}}',
        '{"metadata":{},"data":{"a":"YQ==","b":"YWJj"}}',
    ),
    "required bytes": (CSR, "{}", '{"metadata":{},"spec":{"request":null,"signerName":""},"status":{}}'),
    "lists in a map": (
        CSR,
        '{"spec":{"extra":{"a":null,"b":[]}}}',
        '{"metadata":{},"spec":{"request":null,"signerName":"","extra":{"a":[],"b":[]}},"status":{}}',
    ),
    "raw JSON": (
        CONFIG_MAP,
        '{"metadata":{"managedFields":[{"fieldsV1":{"f:b":{},"f:a":{}}}]}}',
        '{"metadata":{"managedFields":[{"fieldsV1":{"f:b":{},"f:a":{}}}]}}',
    ),
    "embedded structs": (
        WEBHOOKS,
        '{"webhooks":[{"rules":[{"resources":["a"],"operations":["*"],"apiGroups":[""]}]}]}',
        '{"metadata":{},"webhooks":[{"name":"","clientConfig":{},'
        '"rules":[{"operations":["*"],"apiGroups":[""],"resources":["a"]}],'
        '"sideEffects":null,"admissionReviewVersions":null}]}',
    ),
}

SCHEMAS: dict[str, tuple[str, str]] = {
    "items": ('{"items":{"type":"string","x":1}}', '{"items":{"type":"string"}}'),
    "items as list": ('{"items":[{"type":"string"},null]}', '{"items":[{"type":"string"},{}]}'),
    "items as nothing": ('{"items":[]}', '{"items":null}'),
    "items of another type": ('{"items":"x"}', '{"items":null}'),
    "additional true": ('{"additionalProperties":true}', '{"additionalProperties":true}'),
    "additional false": ('{"additionalProperties":false}', '{"additionalProperties":false}'),
    "additional schema": ('{"additionalProperties":{"type":"a"}}', '{"additionalProperties":{"type":"a"}}'),
    "dependencies": (
        '{"dependencies":{"a":["b"],"b":{"type":"x"},"c":null,"d":[],"e":5}}',
        '{"dependencies":{"a":["b"],"b":{"type":"x"},"c":null,"d":null,"e":null}}',
    ),
    "numbers": ('{"maximum":5.0,"minimum":-1.5,"multipleOf":1e21}', '{"maximum":5,"minimum":-1.5,"multipleOf":1e21}'),
    "large integer": ('{"maximum":9007199254740993}', '{"maximum":9007199254740992}'),
    "defaults": ('{"default":0,"enum":[null,"a",1.5]}', '{"default":0,"enum":[null,"a",1.5]}'),
    "null default": ('{"default":null}', "{}"),
    "recursion": (
        '{"properties":{"b":{"not":{}},"a":{"anyOf":[{}]}}}',
        '{"properties":{"a":{"anyOf":[{}]},"b":{"not":{}}}}',
    ),
}

# (kind, body, what Go says)
REFUSED: dict[str, tuple[str, str, str]] = {
    "list for map": (CONFIG_MAP, '{"data":[]}', mismatch("array", "ConfigMap.data", "map[string]string")),
    "string for map": (CONFIG_MAP, '{"data":"x"}', mismatch("string", "ConfigMap.data", "map[string]string")),
    "number for string": (CONFIG_MAP, '{"data":{"a":1}}', mismatch("number", "ConfigMap.data", "string")),
    "bool for label": (
        CONFIG_MAP,
        '{"metadata":{"labels":{"a":true}}}',
        mismatch("bool", "ObjectMeta.metadata.labels", "string"),
    ),
    "string for struct": (CONFIG_MAP, '{"metadata":"x"}', mismatch("string", "ConfigMap.metadata", "v1.ObjectMeta")),
    "object for bool": (CONFIG_MAP, '{"immutable":{}}', mismatch("object", "ConfigMap.immutable", "bool")),
    "object for list": (
        CONFIG_MAP,
        '{"metadata":{"finalizers":{}}}',
        mismatch("object", "ObjectMeta.metadata.finalizers", "[]string"),
    ),
    "embedded type meta": (CONFIG_MAP, '{"kind":5}', mismatch("number", "ConfigMap.TypeMeta.kind", "string")),
    "named string": (SECRET, '{"type":1.5}', mismatch("number", "Secret.type", "v1.SecretType")),
    "named map": (QUOTA, '{"spec":{"hard":[]}}', mismatch("array", "ResourceQuotaSpec.spec.hard", "v1.ResourceList")),
    "list of structs": (ROLE, '{"rules":{}}', mismatch("object", "Role.rules", "[]v1.PolicyRule")),
    "embedded rule": (
        WEBHOOKS,
        '{"webhooks":[{"rules":[{"apiGroups":5}]}]}',
        mismatch("number", "RuleWithOperations.webhooks.rules.Rule.apiGroups", "[]string"),
    ),
    "float for integer": (
        LEASE,
        '{"spec":{"leaseTransitions":1.5}}',
        mismatch("number 1.5", "LeaseSpec.spec.leaseTransitions", "int32"),
    ),
    "integer too large": (
        LEASE,
        '{"spec":{"leaseTransitions":2147483648}}',
        mismatch("number 2147483648", "LeaseSpec.spec.leaseTransitions", "int32"),
    ),
    "integer past 64 bits": (
        CONFIG_MAP,
        '{"metadata":{"generation":100000000000000000000}}',
        mismatch("number 100000000000000000000", "ObjectMeta.metadata.generation", "int64"),
    ),
    "string for integer": (
        LEASE,
        '{"spec":{"leaseTransitions":"1"}}',
        mismatch("string", "LeaseSpec.spec.leaseTransitions", "int32"),
    ),
    "number for time": (
        CONFIG_MAP,
        '{"metadata":{"creationTimestamp":5}}',
        mismatch("number", "ObjectMeta.metadata.creationTimestamp", "string"),
    ),
    "object for time": (
        CONFIG_MAP,
        '{"metadata":{"creationTimestamp":{}}}',
        mismatch("object", "ObjectMeta.metadata.creationTimestamp", "string"),
    ),
    "no time": (
        CONFIG_MAP,
        '{"metadata":{"creationTimestamp":"x"}}',
        'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
    ),
    "list for micro time": (
        LEASE,
        '{"spec":{"renewTime":[]}}',
        mismatch("array", "LeaseSpec.spec.renewTime", "string"),
    ),
    "micro time without fraction": (
        LEASE,
        '{"spec":{"renewTime":"2020-01-02T03:04:05Z"}}',
        'parsing time "2020-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
    ),
    "no quantity": (QUOTA, '{"spec":{"hard":{"cpu":"x"}}}', NO_QUANTITY),
    "bool for quantity": (QUOTA, '{"spec":{"hard":{"cpu":true}}}', NO_QUANTITY),
    "no base64": (SECRET, '{"data":{"a":"!!!!"}}', "illegal base64 data at input byte 0"),
    "number for bytes": (SECRET, '{"data":{"a":5}}', mismatch("number", "Secret.data", "[]uint8")),
    "wrong bytes": (SECRET, '{"data":{"a":[256]}}', mismatch("number 256", "Secret.data", "uint8")),
    "object among bytes": (SECRET, '{"data":{"a":[{}]}}', mismatch("object", "Secret.data", "uint8")),
    "the first of two errors": (
        CONFIG_MAP,
        '{"immutable":5,"data":[]}',
        mismatch("number", "ConfigMap.immutable", "bool"),
    ),
    "self-decoding types go first": (
        CONFIG_MAP,
        '{"data":[],"metadata":{"creationTimestamp":5}}',
        mismatch("number", "ObjectMeta.metadata.creationTimestamp", "string"),
    ),
    "whole object": (CONFIG_MAP, "[]", "json: cannot unmarshal array into Go value of type v1.ConfigMap"),
    "schema in items": (
        CRD,
        json.dumps(crd_schema({"items": {"type": 5}})),
        mismatch("number", IN_SCHEMA + "items.type", "string"),
    ),
    "schema in a list of items": (
        CRD,
        json.dumps(crd_schema({"items": [5]})),
        mismatch("number", IN_SCHEMA + "items", "v1.JSONSchemaProps"),
    ),
    "neither bool nor schema": (
        CRD,
        json.dumps(crd_schema({"additionalProperties": 5})),
        "boolean or JSON schema expected",
    ),
    "schema for bool": (
        CRD,
        json.dumps(crd_schema({"additionalProperties": {"type": []}})),
        mismatch("array", IN_SCHEMA + "additionalProperties.type", "string"),
    ),
    "schema for dependency": (
        CRD,
        json.dumps(crd_schema({"dependencies": {"a": {"type": 5}}})),
        mismatch("number", IN_SCHEMA + "dependencies.type", "string"),
    ),
    "dependency of numbers": (
        CRD,
        json.dumps(crd_schema({"dependencies": {"a": [5]}})),
        mismatch("number", IN_SCHEMA + "dependencies", "string"),
    ),
    "string for number": (
        CRD,
        json.dumps(crd_schema({"maximum": "5"})),
        mismatch("string", IN_SCHEMA + "maximum", "float64"),
    ),
}


@pytest.mark.parametrize(("kind", "body", "expected"), KEPT.values(), ids=KEPT)
def test_objects_come_out_as_go_writes_them(kind: str, body: str, expected: str) -> None:
    decoded = decoder(kind).decode(json.loads(body))
    assert json.dumps(decoded) == json.dumps(json.loads(expected))


@pytest.mark.parametrize(("schema", "expected"), SCHEMAS.values(), ids=SCHEMAS)
def test_schemas_in_definitions_come_out_as_go_writes_them(schema: str, expected: str) -> None:
    decoded = decoder(CRD).decode(crd_schema(json.loads(schema)))
    found = decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert json.dumps(found) == json.dumps(json.loads(expected))


@pytest.mark.parametrize(("kind", "body", "message"), REFUSED.values(), ids=REFUSED)
def test_errors_have_the_words_of_go(kind: str, body: str, message: str) -> None:
    with pytest.raises(UnmarshalError) as caught:
        decoder(kind).decode(json.loads(body))
    assert str(caught.value) == message


def test_input_is_not_changed() -> None:
    body = {"metadata": {"labels": {"b": "1", "a": None}}, "data": {}, "extra": 1}
    before = json.dumps(body)
    decoded = decoder(CONFIG_MAP).decode(body)
    decoded["metadata"]["labels"]["c"] = "2"
    assert json.dumps(body) == before


def test_unknown_fields_are_named_in_the_order_they_came() -> None:
    unknown: list[str] = []
    body = {
        "z": 1,
        "metadata": {"Name": "x", "ownerReferences": [{}, {"q": 1}], "labels": {"any": "thing"}},
        "a": None,
        'quote"d': 1,
    }
    decoder(CONFIG_MAP).decode(body, unknown)
    assert unknown == [
        'unknown field "z"',
        'unknown field "metadata.Name"',
        'unknown field "metadata.ownerReferences[1].q"',
        'unknown field "a"',
        r'unknown field "quote\"d"',
    ]


def test_nulls_are_not_unknown() -> None:
    unknown: list[str] = []
    decoder(CONFIG_MAP).decode({"data": None, "metadata": {"labels": None}}, unknown)
    assert unknown == []


def test_the_search_for_unknown_fields_passes_over_everything_that_is_right() -> None:
    unknown: list[str] = []
    typed = decoder(QUOTA)
    metadata = {"creationTimestamp": None, "deletionTimestamp": "2020-01-02T03:04:05Z", "generation": 5}
    typed.decode({"x": 1, "metadata": metadata, "spec": {"hard": {"a": None, "b": "1", "c": 2}}}, unknown)
    schema = {"items": 5, "dependencies": {"a": 5}, "additionalProperties": True, "maximum": 1.5, "default": {}}
    decoder(CRD).decode({"y": 1} | crd_schema(schema), unknown)
    decoder(SECRET).decode({"z": 1, "immutable": True, "data": {"a": "YQ=="}}, unknown)
    assert unknown == ['unknown field "x"', 'unknown field "y"', 'unknown field "z"']


def test_types_that_no_built_in_kind_has_are_decoded_as_well() -> None:
    table = TypeTable({"a.v1.T": [["flags", 1, "[]bool"], ["names", 2, "[]*string"], ["n", 3, "int"]]}, {})
    typed = Typed(table, "a.v1.T")
    assert typed.decode({"flags": [True, None], "names": ["a", None]}) == {
        "flags": [True, False],
        "names": ["a", None],
        "n": 0,
    }
    with pytest.raises(UnmarshalError) as caught:
        typed.decode({"flags": ["x"]})
    assert str(caught.value) == mismatch("string", "T.flags", "bool")


def test_unknown_fields_in_maps_of_structs_have_the_key_in_their_path() -> None:
    unknown: list[str] = []
    decoder(CRD).decode(crd_schema({"properties": {"a": {"foo": 1}}}), unknown)
    assert unknown == ['unknown field "spec.versions[0].schema.openAPIV3Schema.properties.a.foo"']


def test_unknown_fields_behind_types_that_decode_themselves_are_dropped_in_silence() -> None:
    unknown: list[str] = []
    decoder(CRD).decode(crd_schema({"items": {"foo": 1}, "additionalProperties": {"foo": 1}}), unknown)
    assert unknown == []


def test_no_more_than_a_hundred_unknown_fields_are_named() -> None:
    unknown: list[str] = []
    decoder(CONFIG_MAP).decode({f"x{number}": 1 for number in range(200)}, unknown)
    assert len(unknown) == 100


def test_unknown_fields_are_dropped_without_a_list_to_name_them_in() -> None:
    assert decoder(CONFIG_MAP).decode({"x": 1}) == {"metadata": {}}


def nested(keyword: str, levels: int, innermost: dict[str, Any]) -> dict[str, Any]:
    schema = innermost
    for _ in range(levels):
        schema = {keyword: schema}
    return schema


@pytest.mark.parametrize("keyword", ["items", "not", "additionalProperties"])
def test_the_deepest_object_that_can_be_read_is_decoded(keyword: str) -> None:
    schema = nested(keyword, 248, {"type": "x"})
    assert decoder(CRD).decode(crd_schema(schema))["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == schema


@pytest.mark.parametrize("keyword", ["items", "not", "additionalProperties"])
def test_the_deepest_object_that_can_be_read_is_refused_if_wrong(keyword: str) -> None:
    with pytest.raises(UnmarshalError, match=r"^json: cannot unmarshal "):
        decoder(CRD).decode(crd_schema(nested(keyword, 248, {"type": 5})))


def test_a_table_must_have_the_struct() -> None:
    with pytest.raises(KeyError):
        Typed(TypeTable({}, {}), "io.k8s.api.core.v1.Pod")


def test_table_knows_its_structs() -> None:
    assert "io.k8s.api.core.v1.Secret" in type_table()
    assert "io.k8s.api.core.v1.Pod" not in type_table()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
FIELDS = st.sampled_from(
    ["metadata", "spec", "data", "rules", "webhooks", "status", "kind", "subjects", "hard", "request"]
)


@settings(deadline=None)
@given(
    st.sampled_from([CONFIG_MAP, SECRET, QUOTA, ROLE, LEASE, CRD, WEBHOOKS, CSR]), st.dictionaries(FIELDS, json_values)
)
def test_any_object_is_decoded_or_refused_and_what_is_decoded_stays(kind: str, body: dict[str, Any]) -> None:
    typed = decoder(kind)
    unknown: list[str] = []
    try:
        decoded = typed.decode(body, unknown)
    except UnmarshalError as error:
        event("refused" if str(error) else "refused without a word")
        return
    again: list[str] = []
    assert json.dumps(typed.decode(decoded, again)) == json.dumps(decoded)
    assert again == []
