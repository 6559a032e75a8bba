"""get and list, in every format."""

from __future__ import annotations

import pytest

from kcp.endpoints import protobuf
from kcp.meta import codec, wellknown
from kcp.server.bootstrap import bootstrap
from tests.endpoints.api import (
    ADMIN,
    API,
    CONFIGMAPS,
    OPERATOR,
    PARTIAL_LIST,
    PROTOBUF,
    TABLE,
    WIDGETS,
    configmap,
    definition,
    served_version,
    widget,
)

EVENTS = "/namespaces/default/events"
EVENT = {
    "metadata": {"name": "e"},
    "eventTime": "2025-01-01T00:00:00.000000Z",
    "reportingController": "example.io/c",
    "reportingInstance": "i",
    "action": "Act",
    "reason": "Because",
    "type": "Normal",
    "regarding": {"kind": "ConfigMap", "namespace": "default", "name": "a"},
}


async def test_an_object_is_read_as_it_was_written(api: API) -> None:
    created = await api.post(CONFIGMAPS, configmap(data={"k": "v"}))
    assert created.status == 201
    read = await api.get(f"{CONFIGMAPS}/a")
    assert (read.status, read.body) == (200, created.body)


async def test_an_object_in_yaml(api: API) -> None:
    created = await api.create_configmap(data={"k": "v"})
    answer = await api.get(f"{CONFIGMAPS}/a", accept="application/yaml")
    assert answer.text.startswith("apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n")
    assert codec.loads_yaml(answer.body) == created


async def test_what_is_missing_is_not_found(api: API) -> None:
    answer = await api.get(f"{CONFIGMAPS}/a")
    assert answer.status == 404
    assert answer.json()["details"] == {"name": "a", "kind": "configmaps"}


@pytest.mark.parametrize(
    ("version", "status"), [("", 200), ("0", 200), ("1", 200), ("99", 504), ("x", 400)], ids=lambda value: str(value)
)
async def test_an_object_not_older_than_a_version(api: API, version: str, status: int) -> None:
    await api.create_configmap()
    answer = await api.get(f"{CONFIGMAPS}/a", resourceVersion=version)
    assert answer.status == status
    if version == "99":
        assert answer.message.startswith("Timeout: Too large resource version: 99, current: ")
        assert answer.header("retry-after") == "1"


@pytest.mark.parametrize("name", ["x" * 3000, "a\0b", "..", ".", "a%2Fb", "ä", "\ufffd"], ids=repr)
async def test_names_that_nothing_can_have_are_not_found(api: API, name: str) -> None:
    assert (await api.get(f"{CONFIGMAPS}/{name}")).status == 404
    assert (await api.get(f"/api/v1/namespaces/{name}/configmaps/a")).status == 404
    assert (await api.delete(f"{CONFIGMAPS}/{name}")).status == 404


async def test_a_list_is_of_one_cluster_and_one_namespace(api: API) -> None:
    await api.create_cluster("other")
    await api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "second"}})
    await api.create_configmap("a")
    await api.create_configmap("b", "other")
    await api.must("POST", "/api/v1/namespaces/second/configmaps", configmap("c"))

    async def names(path: str, cluster: str) -> list[str]:
        listed = await api.must("GET", path, cluster=cluster)
        assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
        return [item["metadata"]["name"] for item in listed["items"]]

    assert await names(CONFIGMAPS, "root") == ["a"]
    assert await names("/api/v1/configmaps", "root") == ["a", "c"]
    assert await names("/api/v1/configmaps", "other") == ["b"]
    assert await names("/api/v1/namespaces/missing/configmaps", "root") == []


async def test_a_list_of_all_clusters_says_where_each_object_is(api: API) -> None:
    await api.create_cluster("other")
    await api.create_configmap("a", metadata={"annotations": {"x": "y"}})
    await api.create_configmap("a", "other")
    for options in ({}, {"accept": PARTIAL_LIST}, {"accept": PROTOBUF}):
        answer = await api.get("/api/v1/configmaps", cluster="*", token=OPERATOR, **options)
        assert answer.status == 200
        items = (protobuf.decode(answer.body) if answer.media == PROTOBUF else answer.json())["items"]
        where = [item["metadata"]["annotations"] for item in items]
        assert where == [{wellknown.CLUSTER_ANNOTATION: "other"}, {"x": "y", wellknown.CLUSTER_ANNOTATION: "root"}]
    table = await api.must("GET", "/api/v1/configmaps", cluster="*", accept=TABLE)
    assert len(table["rows"]) == 2


async def test_pages_show_one_revision(api: API) -> None:
    for name in "abc":
        await api.create_configmap(name)
    first = await api.must("GET", CONFIGMAPS, limit="2")
    assert first["metadata"]["remainingItemCount"] == 1
    await api.create_configmap("d")
    token = first["metadata"]["continue"]
    rest = await api.must("GET", CONFIGMAPS, limit="2", **{"continue": token})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert rest["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


async def test_items_of_built_in_lists_have_no_type_and_those_of_custom_lists_do(api: API) -> None:
    await api.define(definition())
    await api.must("POST", WIDGETS, widget())
    await api.create_configmap()
    assert "kind" not in (await api.must("GET", CONFIGMAPS))["items"][0]
    widgets = await api.must("GET", WIDGETS)
    assert widgets["items"][0]["kind"] == "Widget"
    assert widgets["metadata"]["continue"] == ""


async def test_the_same_events_in_both_groups(api: API) -> None:
    await api.must("POST", f"/apis/events.k8s.io/v1{EVENTS}", EVENT)
    core = {"metadata": {"name": "f", "namespace": "default"}, "involvedObject": {"namespace": "default"}}
    await api.must("POST", f"/api/v1{EVENTS}", core)
    for base, version in (("/apis/events.k8s.io/v1", "events.k8s.io/v1"), ("/api/v1", "v1")):
        listed = await api.must("GET", base + EVENTS)
        assert [item["metadata"]["name"] for item in listed["items"]] == ["e", "f"]
        assert not any({"kind", "apiVersion"} & item.keys() for item in listed["items"])
        assert ("regarding" if "events" in version else "involvedObject") in listed["items"][0]
        event = await api.must("GET", f"{base}{EVENTS}/e")
        assert (event["kind"], event["apiVersion"]) == ("Event", version)
    everywhere = await api.must("GET", "/apis/events.k8s.io/v1/events", cluster="*")
    assert len(everywhere["items"]) == 2


async def test_versions_of_a_custom_resource_show_the_same_objects(api: API) -> None:
    await api.define(definition(served_version("v1"), served_version("v2", storage=False)))
    await api.must("POST", WIDGETS, widget(spec={"a": 1}))
    second = WIDGETS.replace("/v1/", "/v2/")
    assert (await api.must("GET", f"{second}/w"))["apiVersion"] == "example.io/v2"
    assert [item["apiVersion"] for item in (await api.must("GET", second))["items"]] == ["example.io/v2"]


async def test_the_roles_that_every_cluster_has_can_be_read_everywhere(api: API) -> None:
    await bootstrap(api.registry)
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert (await api.must("GET", f"{roles}/cluster-admin"))["kind"] == "ClusterRole"
    assert (await api.get(f"{roles}/missing")).status == 404


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (TABLE, "Table"),
        (PARTIAL_LIST, "PartialObjectMetadataList"),
        (TABLE.replace("v=v1", "v=v1beta1"), "Table"),
        (PARTIAL_LIST.replace("v=v1", "v=v1beta1"), "PartialObjectMetadataList"),
        (PARTIAL_LIST.replace("json", "yaml"), "PartialObjectMetadataList"),
        (TABLE.replace("json", "yaml"), "Table"),
    ],
)
async def test_a_list_as_something_else(api: API, accept: str, kind: str) -> None:
    await api.create_configmap(data={"k": "v"})
    answer = await api.get(CONFIGMAPS, accept=accept)
    shown = codec.loads_yaml(answer.body)
    version = "v1beta1" if "v1beta1" in accept else "v1"
    assert (shown["kind"], shown["apiVersion"]) == (kind, f"meta.k8s.io/{version}")
    assert shown["metadata"]["resourceVersion"] == str(api.store.revision)
    if kind == "Table":
        assert [column["name"] for column in shown["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert shown["rows"][0]["cells"] == ["a", 1, "0s"]
        assert shown["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    else:
        assert shown["items"][0]["kind"] == "PartialObjectMetadata"
        assert "data" not in shown["items"][0]


async def test_anonymous_reads_are_refused(api: API) -> None:
    answer = await api.get(CONFIGMAPS, token="")
    assert answer.status == 403
    assert 'User "system:anonymous" cannot list resource "configmaps"' in answer.message
    assert (await api.get(CONFIGMAPS, token=ADMIN)).status == 200


async def test_a_long_list_in_yaml(api: API) -> None:
    for number in range(101):
        await api.create_configmap(f"n{number:03}")
    answer = await api.get(CONFIGMAPS, accept="application/yaml")
    assert [item["metadata"]["name"] for item in codec.loads_yaml(answer.body)["items"]] == [
        f"n{number:03}" for number in range(101)
    ]
