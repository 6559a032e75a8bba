"""OpenAPI documents through the application."""

from __future__ import annotations

import pytest

from kcp.endpoints import openapi
from kcp.schema.openapi import to_protobuf
from tests.endpoints.api import API, CRDS, definition, served_version

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_PROTOBUF_OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
CORE = "/openapi/v3/api/v1"
WIDGETS = "/openapi/v3/apis/example.io/v1"


def sized(kind: str) -> dict[str, object]:
    return {"type": "object", "properties": {"size": {"type": kind}}}


async def type_of_size(api: API, cluster: str = "root") -> str:
    schemas = (await api.must("GET", WIDGETS, cluster=cluster))["components"]["schemas"]
    found: str = schemas["io.example.v1.Widget"]["properties"]["spec"]["properties"]["size"]["type"]
    return found


async def test_version_2(api: API) -> None:
    answer = await api.get("/openapi/v2")
    assert (answer.status, answer.media) == (200, "application/json")
    assert answer.json()["swagger"] == "2.0"
    assert "/api/v1/namespaces/{namespace}/configmaps" in answer.json()["paths"]
    assert answer.all("vary") == ["Accept-Encoding", "Accept"]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        (V2_PROTOBUF, V2_PROTOBUF),
        (V2_PROTOBUF_OLD, V2_PROTOBUF),
        (f"application/json;q=0.1,{V2_PROTOBUF_OLD}", V2_PROTOBUF),
        (f"application/json,{V2_PROTOBUF_OLD}", "application/json"),
    ],
)
async def test_formats_of_version_2(api: API, accept: str, media: str) -> None:
    answer = await api.get("/openapi/v2", accept=accept)
    assert (answer.status, answer.media) == (200, media)
    plain = await api.get("/openapi/v2")
    assert answer.body == (to_protobuf(plain.body) if media == V2_PROTOBUF else plain.body)


@pytest.mark.parametrize("path", ["/openapi/v2", CORE])
async def test_formats_that_there_are_not(api: API, path: str) -> None:
    answer = await api.get(path, accept="text/html")
    assert (answer.status, answer.body, answer.media) == (406, b"", None)


async def test_version_3_has_an_index(api: API) -> None:
    await api.define(definition())
    paths = (await api.must("GET", "/openapi/v3/"))["paths"]
    assert {"api/v1", "apis/events.k8s.io/v1", "apis/example.io/v1"} <= paths.keys()
    address, _, asked = paths["api/v1"]["serverRelativeURL"].partition("?hash=")
    assert address == CORE
    answer = await api.get(CORE, hash=asked)
    assert answer.status == 200
    assert answer.all("cache-control") == ["public, immutable"]
    assert answer.json()["openapi"] == "3.0.0"
    old = await api.get(CORE, hash="old")
    assert (old.status, old.header("location")) == (301, f"/clusters/root{CORE}?hash={asked}")


async def test_documents_that_there_are_not(api: API) -> None:
    for path in ("/openapi/v3/apis/missing/v1", WIDGETS):
        assert (await api.get(path)).status == 404
    assert (await api.get("/openapi/v4")).body == b"404 page not found\n"


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", CORE])
async def test_a_client_that_has_it_already(api: API, path: str) -> None:
    tag = (await api.get(path)).header("etag") or ""
    again = await api.get(path, headers={"if-none-match": tag})
    assert (again.status, again.body, again.header("etag")) == (304, b"", tag)


async def test_each_cluster_has_its_own_schemas(api: API) -> None:
    """Definitions of the same names with different schemas."""
    await api.create_cluster("other")
    await api.define(definition(served_version(spec=sized("integer"))))
    await api.define(definition(served_version(spec=sized("string"))), "other")
    assert (await type_of_size(api), await type_of_size(api, "other")) == ("integer", "string")
    tags = [(await api.get("/openapi/v2", cluster=cluster)).header("etag") for cluster in ("root", "other")]
    assert tags[0] != tags[1]


async def test_a_changed_schema_shows_at_once(api: API) -> None:
    created = await api.define(definition(served_version(spec=sized("integer"))))
    assert await type_of_size(api) == "integer"
    created["spec"]["versions"] = [served_version(spec=sized("string"))]
    await api.must("PUT", f"{CRDS}/widgets.example.io", created)
    assert await type_of_size(api) == "string"


async def test_clusters_that_serve_the_same_share_documents(api: API) -> None:
    await api.create_cluster("other")
    for path in ("/openapi/v2", CORE):
        one, two = await api.get(path), await api.get(path, cluster="other")
        assert one.header("etag") == two.header("etag")


async def test_documents_are_bounded(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi, "MAX_DOCUMENTS", 1)
    for _ in range(2):
        assert (await api.must("GET", CORE))["openapi"] == "3.0.0"
        assert (await api.must("GET", "/openapi/v3/apis/events.k8s.io/v1"))["openapi"] == "3.0.0"
