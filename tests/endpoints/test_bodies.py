"""Bodies of requests: what is taken, and what is said of the rest."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kcp.apis.builtin import RESOURCES, Resource
from kcp.endpoints import bodies, protobuf
from kcp.meta import codec
from tests.endpoints.api import API, CONFIGMAPS, PROTOBUF, WIDGETS, configmap, definition, widget
from tests.endpoints.built_in_objects import collection_of, valid_object

UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; "
META = 'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind'


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", f"{UNRECOGNIZED}json parse error: unexpected end of JSON input (<empty>)"),
        (b"{", f"{UNRECOGNIZED}json parse error: unexpected end of JSON input ({{)"),
        (b'{"a": nonsense, "b": 1, "c": 2, "d": 3}', '({"a": nonsense, "b": 1, "c": 2 ...)'),
        (b"nonsense", "(6e6f6e73656e7365)"),
        (b"[]", f"{UNRECOGNIZED}json parse error: json: cannot unmarshal array into {META}"),
        (b"true", "cannot unmarshal bool into"),
        (b"7", "cannot unmarshal number into"),
        (b'"a"', "cannot unmarshal string into"),
        (b'{"kind":7}', "cannot unmarshal number into Go struct field .kind of type string"),
        (b'{"apiVersion":{}}', "cannot unmarshal object into Go struct field .apiVersion of type string"),
        (
            b'{"kind":"Nonsense"}',
            'Nonsense in version "v1" cannot be handled as a ConfigMap: no kind "Nonsense" is regis',
        ),
        (
            b'{"kind":"Secret","apiVersion":"v1"}',
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): '
            "unknown conversion",
        ),
        (
            b'{"apiVersion":"v2"}',
            'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is r',
        ),
        (
            b'{"data":7}',
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct '
            "field ConfigMap.data of type map[string]string",
        ),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
async def test_bodies_that_are_no_such_object(api: API, body: bytes, why: str) -> None:
    answer = await api.post(CONFIGMAPS, body)
    assert answer.status == 400
    assert why in answer.message


async def test_a_body_need_not_say_what_it_is(api: API) -> None:
    created = await api.must("POST", CONFIGMAPS, {"kind": None, "metadata": {"name": "a"}})
    assert (created["kind"], created["apiVersion"]) == ("ConfigMap", "v1")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/merge-patch+json"]
)
async def test_other_formats(api: API, content_type: str) -> None:
    answer = await api.post(CONFIGMAPS, configmap(), headers={"content-type": content_type})
    assert (answer.status, answer.json()["reason"]) == (415, "UnsupportedMediaType")
    assert answer.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


@pytest.mark.parametrize("body", [b"a: [", b"\ta: b", b"- a"], ids=["open", "tab", "list"])
async def test_broken_yaml(api: API, body: bytes) -> None:
    answer = await api.post(CONFIGMAPS, body, headers={"content-type": "application/yaml"})
    assert answer.status == 400
    assert answer.message.startswith("the object provided is unrecognized (must be of type ConfigMap): ")


@pytest.mark.parametrize("body", [b"", b"k8s", b"k8s\0\xff\xff", configmap], ids=["empty", "short", "broken", "JSON"])
async def test_broken_protobuf(api: API, body: object) -> None:
    data = body if isinstance(body, bytes) else codec.dumps(configmap())
    answer = await api.post(CONFIGMAPS, data, headers={"content-type": PROTOBUF})
    assert answer.status == 400
    assert answer.message.startswith("the object provided is unrecognized (must be of type ConfigMap): ")


async def test_protobuf_of_another_kind(api: API) -> None:
    body = protobuf.encode({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}})
    answer = await api.post(CONFIGMAPS, body, headers={"content-type": PROTOBUF})
    assert (answer.status, "cannot be handled as a ConfigMap" in answer.message) == (400, True)


async def test_protobuf_that_does_not_say_what_it_is(api: API) -> None:
    named = protobuf.encode(configmap("a"))
    type_meta = b"\n\x0f\n\x02v1\x12\x09ConfigMap"
    assert type_meta in named
    answer = await api.post(CONFIGMAPS, named.replace(type_meta, b"\n\x00"), headers={"content-type": PROTOBUF})
    assert (answer.status, answer.json()["metadata"]["name"]) == (201, "a")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[]", "must be of type Widget"),
        (
            codec.dumps({**widget(), "apiVersion": "example.io/v9"}),
            "the API version in the data (example.io/v9) does not match the expected API version (example.io/v1)",
        ),
        (b'{"metadata":{}}', "Object 'Kind' is missing in '{\"metadata\":{}}' ({\"metadata\":{}})"),
    ],
    ids=["array", "version", "kind"],
)
async def test_bodies_that_are_no_such_custom_object(api: API, body: bytes, why: str) -> None:
    await api.define(definition())
    answer = await api.post(WIDGETS, body)
    assert answer.status == 400
    assert why in answer.message


async def test_a_body_of_three_mebibytes_is_too_large(api: API) -> None:
    call = api.make_call("POST", CONFIGMAPS)
    chunk = b" " * (1 << 20)
    answer = await api.send(call, chunk, chunk, chunk, b" ")
    assert answer.status == 413
    assert answer.json()["reason"] == "RequestEntityTooLarge"
    assert answer.message == "Request entity too large: limit is 3145728"


# -- protobuf, for everything that is built in -------------------------------


@pytest.mark.parametrize(
    "resource", [each for each in RESOURCES if each.is_stored], ids=lambda each: f"{each.gvr.resource}.{each.gvr.group}"
)
async def test_every_kind_is_the_same_in_protobuf_and_in_json(api: API, resource: Resource) -> None:
    path, body = collection_of(resource), valid_object(resource)
    answer = await api.post(path, protobuf.encode(body), headers={"content-type": PROTOBUF}, accept=PROTOBUF)
    assert answer.status == 201, protobuf.decode(answer.body)
    one = f"{path}/{body['metadata']['name']}"
    assert protobuf.decode(answer.body)["metadata"]["uid"] == (await api.must("GET", one))["metadata"]["uid"]
    for address in (one, path):
        shown = await api.get(address, accept=PROTOBUF)
        assert protobuf.decode(shown.body) == without_nulls(await api.must("GET", address))


def without_nulls(value: Any) -> Any:  # noqa: ANN401
    """JSON shows some fields that are not set as null; protobuf leaves them out."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("data", "is_beside"),
    [(b"a: 1", False), (b"#" * 70_000, True), (b"{" + b" " * 70_000, False)],
    ids=["small", "large", "large JSON"],
)
async def test_large_yaml_is_read_beside_the_loop(data: bytes, is_beside: bool) -> None:
    here = threading.get_ident()
    there = await bodies.read_yaml(data, lambda read, more: (threading.get_ident(), more), "more")
    assert there == (there[0], "more")
    assert (there[0] != here) is is_beside
