"""create, update, delete and deletecollection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kcp.endpoints import protobuf
from kcp.meta import codec
from tests.endpoints.api import (
    API,
    CONFIGMAPS,
    PARTIAL_LIST,
    PROTOBUF,
    TABLE,
    USER,
    WIDGETS,
    configmap,
    definition,
    widget,
)

if TYPE_CHECKING:
    from kcp.meta.codec import Object

HELD: dict[str, Any] = {"metadata": {"finalizers": ["example.io/hold"]}}
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}


async def names(api: API, path: str = CONFIGMAPS) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.must("GET", path))["items"]]


# -- create -----------------------------------------------------------------


async def test_a_body_in_yaml(api: API) -> None:
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  k: v\n"
    created = await api.must("POST", CONFIGMAPS, body, headers={"content-type": "application/yaml"})
    assert created["data"] == {"k": "v"}


async def test_a_body_in_protobuf(api: API) -> None:
    body = protobuf.encode(configmap(data={"k": "v"}))
    answer = await api.post(CONFIGMAPS, body, headers={"content-type": PROTOBUF}, accept=PROTOBUF)
    assert answer.status == 201
    assert protobuf.decode(answer.body) == await api.must("GET", f"{CONFIGMAPS}/a")


async def test_a_name_is_generated(api: API) -> None:
    created = await api.must("POST", CONFIGMAPS, {"metadata": {"generateName": "a-"}})
    assert created["metadata"]["name"].startswith("a-")
    assert await names(api) == [created["metadata"]["name"]]


async def test_what_exists_is_not_created_again(api: API) -> None:
    await api.create_configmap()
    answer = await api.post(CONFIGMAPS, configmap())
    assert (answer.status, answer.json()["reason"]) == (409, "AlreadyExists")


async def test_a_dry_run_changes_nothing(api: API) -> None:
    await api.create_configmap("a", data={"k": "v"})
    before = api.store.revision
    path = f"{CONFIGMAPS}/a"
    assert (await api.post(CONFIGMAPS, configmap("b"), dryRun="All")).status == 201
    changed = await api.must("PUT", path, configmap(data={"k": "w"}), dryRun="All")
    assert changed["data"] == {"k": "w"}
    patch = await api.patch(path, {"data": {"k": "x"}}, "application/merge-patch+json", dryRun="All")
    assert patch.json()["data"] == {"k": "x"}
    assert (await api.delete(path, dryRun="All")).status == 200
    assert (await api.delete(path, {**OPTIONS, "dryRun": ["All"]})).status == 200
    assert (await api.delete(CONFIGMAPS, dryRun="All")).status == 200
    assert api.store.revision == before


@pytest.mark.parametrize("custom", [False, True], ids=["built in", "custom"])
@pytest.mark.parametrize("media", ["json", "yaml"])
@pytest.mark.parametrize("mode", ["Ignore", "Warn", "Strict", ""])
async def test_field_validation_of_duplicates(api: API, mode: str, media: str, custom: bool) -> None:
    await api.define(definition())
    kind, version = ("Widget", "example.io/v1") if custom else ("ConfigMap", "v1")
    field = "spec" if custom else "data"
    twice = f'{{"kind":"{kind}","apiVersion":"{version}","metadata":{{"name":"a"}},"{field}":{{"k":"v","k":"w"}}}}'
    if media == "yaml":
        twice = f"kind: {kind}\napiVersion: {version}\nmetadata:\n  name: a\n{field}:\n  k: v\n  k: w\n"
    path = WIDGETS if custom else CONFIGMAPS
    options = {"fieldValidation": mode} if mode else {}
    answer = await api.post(path, twice.encode(), headers={"content-type": f"application/{media}"}, **options)
    if mode == "Strict":
        assert answer.status == 400
        assert "strict decoding error: " in answer.message
        return
    assert (answer.status, answer.json()[field]) == (201, {"k": "w"})
    warnings = answer.all("warning")
    if mode == "Ignore":
        assert warnings == []
    else:
        expected = r"duplicate field \"" + f"{field}.k" if media == "json" else r"key \"k\" already set in map"
        assert len(warnings) == 1
        assert expected in warnings[0]


# -- update -----------------------------------------------------------------


async def test_an_update_replaces(api: API) -> None:
    created = await api.create_configmap(data={"a": "1"})
    updated = await api.must("PUT", f"{CONFIGMAPS}/a", configmap(data={"b": "2"}))
    assert updated["data"] == {"b": "2"}
    assert updated["metadata"]["uid"] == created["metadata"]["uid"]
    stale = configmap(metadata={"resourceVersion": created["metadata"]["resourceVersion"]})
    assert (await api.put(f"{CONFIGMAPS}/a", stale)).status == 409


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (
            {"kind": "ConfigMap", "apiVersion": "v1"},
            400,
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        (configmap("b"), 400, "the name of the object (b) does not match the name on the URL (a)"),
        (
            configmap(metadata={"namespace": "other"}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
    ids=["no name", "other name", "other namespace"],
)
async def test_an_update_must_fit_its_address(api: API, body: Object, status: int, why: str) -> None:
    await api.create_configmap()
    answer = await api.put(f"{CONFIGMAPS}/a", body)
    assert (answer.status, answer.message) == (status, why)


async def test_an_update_creates_only_where_the_kind_allows_it(api: API) -> None:
    assert (await api.put(f"{CONFIGMAPS}/a", configmap())).status == 404
    lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "a"}}
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
    created = await api.put(path, lease)
    assert created.status == 201
    assert (await api.put(path, created.json())).status == 200


async def test_the_status_has_an_endpoint_of_its_own(api: API) -> None:
    namespace = await api.must("GET", "/api/v1/namespaces/default")
    namespace["status"] = {"phase": "Active", "conditions": []}
    assert (await api.must("PUT", "/api/v1/namespaces/default/status", namespace))["status"]["phase"] == "Active"


# -- delete -----------------------------------------------------------------


async def test_a_deletion_tells_what_is_gone(api: API) -> None:
    created = await api.create_configmap()
    answer = await api.delete(f"{CONFIGMAPS}/a")
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]},
    }
    assert (await api.delete(f"{CONFIGMAPS}/a")).status == 404
    await api.define(definition())
    await api.must("POST", WIDGETS, widget())
    gone = await api.delete(f"{WIDGETS}/w", accept="application/yaml")
    assert codec.loads_yaml(gone.body)["details"]["group"] == "example.io"


async def test_a_deletion_told_to_a_person(api: API) -> None:
    await api.create_configmap()
    answer = await api.delete(f"{CONFIGMAPS}/a", headers={"user-agent": "curl/8"})
    assert answer.body.startswith(b"{\n  ")


@pytest.mark.parametrize(
    ("options", "status"),
    [({}, 200), ({"orphanDependents": "true"}, 200), ({"orphanDependents": "false"}, 202)],
    ids=["plain", "orphan", "cascade"],
)
async def test_an_object_that_is_held_waits(api: API, options: dict[str, str], status: int) -> None:
    await api.create_configmap(**HELD)
    answer = await api.delete(f"{CONFIGMAPS}/a", **options)
    assert answer.status == status
    assert answer.json()["metadata"]["deletionTimestamp"] == "2025-01-01T00:00:00Z"
    assert await names(api) == ["a"]


async def test_preconditions(api: API) -> None:
    created = await api.create_configmap()
    path = f"{CONFIGMAPS}/a"
    for wrong in ({"uid": "other"}, {"resourceVersion": "1"}):
        answer = await api.delete(path, {**OPTIONS, "preconditions": wrong})
        assert (answer.status, answer.json()["reason"]) == (409, "Conflict")
    right = {name: created["metadata"][name] for name in ("uid", "resourceVersion")}
    assert (await api.delete(path, {**OPTIONS, "preconditions": right})).status == 200


@pytest.mark.parametrize(
    ("query", "finalizers"),
    [
        ({"propagationPolicy": "Orphan"}, ["example.io/hold", "orphan"]),
        ({"propagationPolicy": "Foreground", "gracePeriodSeconds": "0"}, ["example.io/hold", "foregroundDeletion"]),
        ({"propagationPolicy": "Background"}, ["example.io/hold"]),
        ({"orphanDependents": "true"}, ["example.io/hold", "orphan"]),
    ],
    ids=lambda value: "-".join(value),
)
@pytest.mark.parametrize("place", ["query", "body"])
async def test_dependents_are_dealt_with_as_asked(
    api: API, query: dict[str, Any], finalizers: list[str], place: str
) -> None:
    await api.create_configmap(**HELD)
    path = f"{CONFIGMAPS}/a"
    if place == "query":
        answer = await api.delete(path, **query)
    else:
        values = {"true": True, "0": 0}
        answer = await api.delete(
            path, {**OPTIONS, **{name: values.get(value, value) for name, value in query.items()}}
        )
    assert answer.json()["metadata"]["finalizers"] == finalizers


async def test_a_body_hides_the_query(api: API) -> None:
    await api.create_configmap()
    assert (await api.delete(f"{CONFIGMAPS}/a", OPTIONS, dryRun="All")).status == 200
    assert await names(api) == []


async def test_options_in_protobuf_and_of_any_group(api: API) -> None:
    for number, body in enumerate(
        (
            protobuf.encode({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}),
            protobuf.encode({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}),
        )
    ):
        await api.create_configmap(str(number))
        answer = await api.delete(f"{CONFIGMAPS}/{number}", body, headers={"content-type": PROTOBUF})
        assert answer.status == 200
    assert await names(api) == ["1"]
    for options in ({"dryRun": ["All"]}, {"kind": "DeleteOptions", "apiVersion": "apps/v1"}):
        assert (await api.delete(f"{CONFIGMAPS}/1", options)).status == 200
    assert await names(api) == []


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"[]", 400, "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type"),
        (b"{", 400, "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (
            codec.dumps({"kind": "Other"}),
            400,
            'no kind "Other" is registered for version "v1" in scheme "pkg/apis/meta',
        ),
        (
            codec.dumps({**OPTIONS, "dryRun": "All"}),
            400,
            'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: json: cannot unmarshal string',
        ),
        (
            codec.dumps({**OPTIONS, "dryRun": ["Some"]}),
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
        ),
        (
            codec.dumps({**OPTIONS, "propagationPolicy": "Often"}),
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Often": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
        ),
        (
            codec.dumps({**OPTIONS, "propagationPolicy": "Orphan", "orphanDependents": True}),
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": '
            "orphanDependents and deletionPropagation cannot be both set",
        ),
    ],
    ids=["array", "broken", "kind", "type", "dry run", "policy", "both"],
)
async def test_options_that_cannot_be_read(api: API, body: bytes, status: int, why: str) -> None:
    await api.create_configmap()
    for path in (f"{CONFIGMAPS}/a", CONFIGMAPS):
        answer = await api.delete(path, body)
        assert answer.status == status
        assert answer.message.startswith(why)
    assert await names(api) == ["a"]


# -- deletecollection -------------------------------------------------------


async def test_a_collection_is_deleted_by_selector(api: API) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        await api.create_configmap(name, metadata={"labels": {"color": color}})
    answer = await api.delete(CONFIGMAPS, labelSelector="color=red")
    listed = answer.json()
    assert (listed["kind"], [item["metadata"]["name"] for item in listed["items"]]) == ("ConfigMapList", ["a", "c"])
    assert await names(api) == ["b"]


@pytest.mark.parametrize("accept", [PROTOBUF, TABLE, PARTIAL_LIST, "application/yaml"])
async def test_a_deleted_collection_is_shown_in_the_format_asked_for(api: API, accept: str) -> None:
    await api.create_configmap()
    answer = await api.delete(CONFIGMAPS, accept=accept)
    assert (answer.status, answer.media) == (200, accept.partition(";")[0])
    assert await names(api) == []


async def test_a_collection_keeps_what_is_held_and_says_what_failed(api: API) -> None:
    await api.create_configmap("a", **HELD)
    await api.create_configmap("b")
    assert (await api.delete(CONFIGMAPS)).status == 200
    assert await names(api) == ["a"]
    answer = await api.delete(CONFIGMAPS, {**OPTIONS, "preconditions": {"uid": "other"}})
    assert answer.status == 409


async def test_cluster_scoped_collections(api: API) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    await api.must("POST", path, {"metadata": {"name": "a"}, "rules": []})
    assert (await api.delete(path)).status == 200
    assert await names(api, path) == []


async def test_one_cannot_delete_a_collection_of_all_namespaces(api: API) -> None:
    assert (await api.delete("/api/v1/configmaps")).status == 405


async def test_whoever_may_not_write_is_refused_before_the_body_is_read(api: API) -> None:
    answer = await api.post(CONFIGMAPS, b"not even JSON", token=USER)
    assert answer.status == 403
    assert answer.message == (
        'configmaps is forbidden: User "jane" cannot create resource "configmaps" in API group "" '
        'in the namespace "default"'
    )
