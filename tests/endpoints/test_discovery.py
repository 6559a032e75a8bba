"""Which groups, versions and resources a logical cluster serves."""

from __future__ import annotations

import pytest

from kcp.endpoints import discovery, protobuf
from tests.endpoints.api import API, CRDS, PROTOBUF, definition, served_version

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
V2 = AGGREGATED.format("v2")


async def groups_of(api: API, cluster: str = "root") -> list[str]:
    return [group["name"] for group in (await api.must("GET", "/apis", cluster=cluster))["groups"]]


async def test_the_core_group(api: API) -> None:
    assert await api.must("GET", "/api") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }
    listed = await api.must("GET", "/api/v1")
    names = [resource["name"] for resource in listed["resources"]]
    assert names == sorted(names)
    assert {"configmaps", "namespaces/finalize", "serviceaccounts/token"} <= set(names)
    token = next(each for each in listed["resources"] if each["name"] == "serviceaccounts/token")
    assert (token["group"], token["version"], token["kind"]) == ("authentication.k8s.io", "v1", "TokenRequest")


async def test_named_groups(api: API) -> None:
    group = await api.must("GET", "/apis/rbac.authorization.k8s.io")
    version = {"groupVersion": "rbac.authorization.k8s.io/v1", "version": "v1"}
    assert (group["versions"], group["preferredVersion"]) == ([version], version)
    listed = await api.must("GET", "/apis/rbac.authorization.k8s.io/v1/")
    assert {each["kind"] for each in listed["resources"]} == {
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    }


@pytest.mark.parametrize(
    ("path", "is_status"),
    [
        ("/api/v2", True),
        ("/apis/missing", False),
        ("/apis/missing/v1", False),
        ("/apis/rbac.authorization.k8s.io/v9", False),
        ("/apis//v1", False),
        ("/apis/rbac.authorization.k8s.io/v1/watch", False),
        ("/nothing", False),
        ("/", False),
    ],
)
async def test_what_is_not_served(api: API, path: str, is_status: bool) -> None:
    answer = await api.get(path)
    assert answer.status == 404
    if is_status:
        assert answer.message == "the server could not find the requested resource"
    else:
        assert (answer.body, answer.media) == (b"404 page not found\n", "text/plain; charset=utf-8")
        assert answer.header("x-content-type-options") == "nosniff"


async def test_only_reading_makes_sense(api: API) -> None:
    assert (await api.post("/apis", {})).status == 404


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/events.k8s.io", "/apis/events.k8s.io/v1"])
async def test_formats(api: API, path: str) -> None:
    document = await api.must("GET", path)
    assert (await api.get(path, accept="application/yaml")).media == "application/yaml"
    enveloped = await api.get(path, accept=PROTOBUF)
    assert enveloped.media == PROTOBUF
    assert protobuf.decode(enveloped.body)["kind"] == document["kind"]
    assert (await api.get(path, accept="text/html")).status == 406


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_everything_at_once(api: API, path: str, version: str) -> None:
    accept = AGGREGATED.format(version)
    answer = await api.get(path, accept=f"{accept},application/json;q=0.1")
    assert (answer.status, answer.media) == (200, accept)
    assert answer.json()["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    names = [item["metadata"].get("name", "") for item in answer.json()["items"]]
    assert names == ([""] if path == "/api" else await groups_of(api))
    assert answer.all("cache-control") == ["public"]
    assert answer.header("vary") == "Accept"
    tag = answer.header("etag") or ""
    again = await api.get(path, accept=accept, headers={"if-none-match": tag})
    assert (again.status, again.body, again.header("etag"), again.media) == (304, b"", tag, None)
    assert (await api.get(path, accept=accept, headers={"if-none-match": '"other"'})).status == 200


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json", "APIGroupList"),
        (f"application/json,{V2}", "APIGroupList"),
        ("text/html,*/*", "APIGroupList"),
        (f"{AGGREGATED.format('v9')},application/json", "APIGroupList"),
        (f"{V2.replace('apidiscovery.k8s.io', 'other')},{V2}", "APIGroupDiscoveryList"),
        (f"{V2.replace('json', 'yaml')},application/json", "APIGroupList"),
    ],
)
async def test_which_form_the_client_prefers(api: API, accept: str, kind: str) -> None:
    assert (await api.must("GET", "/apis", accept=accept))["kind"] == kind


@pytest.mark.parametrize("accept", ["text/html", AGGREGATED.format("v9")])
async def test_no_form_that_the_client_takes(api: API, accept: str) -> None:
    assert (await api.get("/apis", accept=accept)).status == 406


async def test_custom_resources_appear_in_their_own_cluster_only(api: API) -> None:
    await api.create_cluster("other")
    before = (await api.get("/apis", accept=V2)).header("etag")
    await api.define(definition(shortNames=["wd"], categories=["all"]))
    assert "example.io" in await groups_of(api)
    assert "example.io" not in await groups_of(api, "other")
    assert (await api.get("/apis", accept=V2)).header("etag") != before
    assert (await api.get("/apis", accept=V2, cluster="other")).header("etag") == before
    listed = await api.must("GET", "/apis/example.io/v1")
    assert listed["resources"][0] == {
        "name": "widgets",
        "singularName": "widget",
        "namespaced": True,
        "kind": "Widget",
        "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        "shortNames": ["wd"],
        "categories": ["all"],
        "storageVersionHash": listed["resources"][0]["storageVersionHash"],
    }
    assert (await api.delete(f"{CRDS}/widgets.example.io")).status == 200


async def test_versions_are_in_the_order_of_preference(api: API) -> None:
    versions = [served_version(name, storage=name == "v1") for name in ("v1beta1", "v1", "v2alpha1", "v2")]
    await api.define(definition(*versions))
    group = await api.must("GET", "/apis/example.io")
    assert [each["version"] for each in group["versions"]] == ["v2", "v1", "v1beta1", "v2alpha1"]


async def test_clusters_with_definitions_of_the_same_names_are_told_apart(api: API) -> None:
    """One has subresources that the other lacks, and nothing else tells them apart."""
    await api.create_cluster("other")
    await api.define(definition(served_version(subresources={"status": {}})))
    await api.define(definition(served_version()), "other")

    async def below(cluster: str) -> list[str]:
        items = (await api.must("GET", "/apis", accept=V2, cluster=cluster))["items"]
        group = next(item for item in items if item["metadata"]["name"] == "example.io")
        entry = group["versions"][0]["resources"][0]
        return [each["subresource"] for each in entry.get("subresources", [])]

    assert (await below("root"), await below("other")) == (["status"], [])


async def test_documents_are_bounded(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_DOCUMENTS", 1)
    await api.create_cluster("other")
    await api.define(definition())
    for _ in range(2):
        for cluster in ("root", "other"):
            answer = await api.get("/apis", accept=V2, cluster=cluster)
            assert ("example.io" in [item["metadata"]["name"] for item in answer.json()["items"]]) == (
                cluster == "root"
            )


async def test_discovery_of_the_server_itself(api: API) -> None:
    assert (await api.must("GET", "/api", cluster=None))["kind"] == "APIVersions"
    assert "events.k8s.io" in [each["name"] for each in (await api.must("GET", "/apis", cluster=None))["groups"]]
