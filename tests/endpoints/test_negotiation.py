"""Which format an answer takes."""

from __future__ import annotations

import pytest

from kcp.endpoints.negotiation import JSON, PROTOBUF, YAML, MediaType, negotiate, parse_accept, parse_content_type
from kcp.meta.errors import NotAcceptable
from tests.endpoints.api import API, CONFIGMAPS, PARTIAL, TABLE, WIDGETS, configmap, definition, widget

META = "as={};v=v1;g=meta.k8s.io"
TABLE_PROTOBUF = f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", MediaType(JSON)),
        ("*/*", MediaType(JSON)),
        ("application/json", MediaType(JSON)),
        ("application/json; charset=utf-8", MediaType(JSON)),
        ("application/json;pretty=1", MediaType(JSON)),
        ("application/json;stream=watch", MediaType(JSON)),
        ("application/json;stream=other,application/yaml", MediaType(YAML)),
        ("application/yaml", MediaType(YAML)),
        (PROTOBUF, MediaType(PROTOBUF)),
        (f"{PROTOBUF},{JSON}", MediaType(PROTOBUF)),
        (f"{JSON},{PROTOBUF}", MediaType(JSON)),
        (f"{JSON};q=0.5,{YAML}", MediaType(YAML)),
        (f"{JSON};q=broken,{YAML};q=0.9", MediaType(JSON)),
        (f"text/html,{YAML}", MediaType(YAML)),
        (f"nonsense,{YAML}", MediaType(YAML)),
        (f"*/*,{YAML}", MediaType(YAML)),
        (TABLE, MediaType(JSON, "Table", "v1")),
        (TABLE.replace("v=v1", "v=v1beta1"), MediaType(JSON, "Table", "v1beta1")),
        (f"{TABLE_PROTOBUF},{TABLE}", MediaType(JSON, "Table", "v1")),
        (PARTIAL, MediaType(JSON, "PartialObjectMetadata", "v1")),
        (f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", MediaType(PROTOBUF, "PartialObjectMetadata", "v1")),
        (f"{JSON};as=Table;v=v2;g=meta.k8s.io,{JSON}", MediaType(JSON)),
        (f"{JSON};as=Other;v=v1;g=meta.k8s.io,{YAML}", MediaType(YAML)),
        (f"{JSON};v=v1;g=meta.k8s.io,{YAML}", MediaType(YAML)),
        (f"{YAML};stream=watch,{JSON}", MediaType(JSON)),
        ("application/*,application/json;q=0.1", None),
    ],
    ids=lambda value: str(value),
)
def test_the_format_that_the_client_likes_best(accept: str, expected: MediaType | None) -> None:
    assert negotiate(accept) == (expected or MediaType(JSON))


def test_the_router_of_built_in_kinds_refuses_in_its_own_words() -> None:
    with pytest.raises(NotAcceptable) as caught:
        negotiate("text/html", collection=True)
    assert caught.value.message == (
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
        "application/vnd.kubernetes.protobuf;stream=watch"
    )
    with pytest.raises(NotAcceptable, match=r"protobuf$"):
        negotiate("text/html")
    with pytest.raises(NotAcceptable, match=r"^406"):
        negotiate("application/*")


@pytest.mark.parametrize(
    ("accept", "custom"),
    [("text/html", True), (TABLE_PROTOBUF, False), (f"{JSON};as=Table", False), ("nonsense", True)],
)
def test_what_nobody_offers_is_not_acceptable(accept: str, custom: bool) -> None:
    with pytest.raises(NotAcceptable) as caught:
        negotiate(accept, custom=custom)
    assert caught.value.message == f"only the following media types are accepted: {JSON}, {YAML}, {PROTOBUF}"


def test_transforms_can_be_ruled_out() -> None:
    assert negotiate(f"{TABLE},{YAML}", transforms=False) == MediaType(YAML)


def test_specific_clauses_come_before_wildcards() -> None:
    clauses = parse_accept("*, */json, application/*;q=1, application/yaml ; a = b, text/plain;q=0.1")
    assert [f"{each.type}/{each.subtype}" for each in clauses] == [
        "application/yaml",
        "application/*",
        "*/json",
        "*/*",
        "text/plain",
    ]
    assert clauses[0].parameters == {"a": "b"}


def test_the_content_type_loses_its_parameters() -> None:
    assert parse_content_type("Application/JSON; charset=utf-8") == JSON
    assert parse_content_type("") == ""


@pytest.mark.parametrize(
    ("accept", "status", "media"),
    [
        ("", 200, JSON),
        ("*/*", 200, JSON),
        (YAML, 200, YAML),
        (PROTOBUF, 200, PROTOBUF),
        (TABLE, 200, JSON),
        (PARTIAL, 200, JSON),
        (f"{TABLE_PROTOBUF},{JSON}", 200, JSON),
        ("text/html", 406, JSON),
        (TABLE_PROTOBUF, 406, JSON),
    ],
    ids=lambda value: str(value),
)
@pytest.mark.parametrize("verb", ["get", "create", "update", "patch", "delete"])
async def test_every_verb_answers_in_the_format_asked_for(
    api: API, verb: str, accept: str, status: int, media: str
) -> None:
    path = f"{CONFIGMAPS}/a"
    await api.create_configmap()
    match verb:
        case "get":
            answer = await api.get(path, accept=accept)
        case "create":
            answer = await api.post(CONFIGMAPS, configmap("b"), accept=accept)
            status = 201 if status == 200 else status
        case "update":
            answer = await api.put(path, configmap(data={"a": "b"}), accept=accept)
        case "patch":
            answer = await api.patch(path, {"data": {"a": "b"}}, "application/merge-patch+json", accept=accept)
        case _:
            answer = await api.delete(path, accept=accept)
    assert (answer.status, answer.media) == (status, media)


async def test_custom_resources_have_no_protobuf_form(api: API) -> None:
    await api.define(definition())
    await api.must("POST", WIDGETS, widget())
    assert (await api.get(f"{WIDGETS}/w", accept=PROTOBUF)).status == 406
    assert (await api.get(f"{WIDGETS}/w", accept=f"{PROTOBUF}, {YAML}")).media == YAML
    partial = await api.get(f"{WIDGETS}/w", accept=f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    assert (partial.status, partial.media, partial.body[:4]) == (200, PROTOBUF, b"k8s\0")
