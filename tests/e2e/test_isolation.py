"""Logical clusters are apart: names, users, tokens, lists and watches."""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.kcp_server import Api

LOGICAL_CLUSTERS = "/apis/core.kcp.io/v1alpha1/logicalclusters"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def make_cluster(shard_admin: Api) -> Api:
    """A new logical cluster with its default namespace, as shard-admin."""
    cluster = shard_admin.at(uuid.uuid4().hex[:16])
    logical_cluster = {"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "cluster"}}
    cluster.post(LOGICAL_CLUSTERS, logical_cluster).created()
    if cluster.get("/api/v1/namespaces/default").code == 404:
        cluster.post("/api/v1/namespaces", {"metadata": {"name": "default"}}).created()
    return cluster


@pytest.fixture
def pair(shard_admin: Api) -> tuple[Api, Api]:
    return make_cluster(shard_admin), make_cluster(shard_admin)


def make_configmap(cluster: Api, name: str, **data: str) -> dict[str, dict[str, str]]:
    made: dict[str, dict[str, str]] = cluster.post(CONFIGMAPS, {"metadata": {"name": name}, "data": data}).created()
    return made


def make_token(cluster: Api, account: str) -> str:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    cluster.post(accounts, {"metadata": {"name": account}}).created()
    review = cluster.post(f"{accounts}/{account}/token", {"spec": {}}).created()
    return str(review["status"]["token"])


def grant_all(cluster: Api, account: str) -> None:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "everything"}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    cluster.post(f"{rbac}/clusterroles", {"metadata": {"name": "everything"}, "rules": rules}).created()
    binding = {"metadata": {"name": "everything"}, "subjects": [subject], "roleRef": role}
    cluster.post(f"{rbac}/clusterrolebindings", binding).created()


def names(answer: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


def test_the_same_name_is_two_objects(pair: tuple[Api, Api]) -> None:
    here, there = pair
    first, second = make_configmap(here, "same", of="here"), make_configmap(there, "same", of="there")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert here.get(f"{CONFIGMAPS}/same").body["data"] == {"of": "here"}
    here.delete(f"{CONFIGMAPS}/same").created()
    assert there.get(f"{CONFIGMAPS}/same").body["data"] == {"of": "there"}


def test_a_list_has_one_cluster_only(pair: tuple[Api, Api]) -> None:
    here, there = pair
    make_configmap(here, "mine")
    make_configmap(there, "theirs")
    everywhere = here.get("/api/v1/configmaps").body
    assert "mine" in names(everywhere)
    assert "theirs" not in names(everywhere)


def test_a_service_account_of_one_cluster_is_nobody_in_another(pair: tuple[Api, Api]) -> None:
    here, there = pair
    for cluster in pair:
        make_configmap(cluster, "secretive")
    token = make_token(here, "robot")
    # The account of that name in the other cluster may do anything there; the token is still not its.
    make_token(there, "robot")
    grant_all(here, "robot")
    grant_all(there, "robot")
    assert here.bearing(token).get(CONFIGMAPS).code == 200
    refused = there.bearing(token).get(CONFIGMAPS)
    assert refused.code in (401, 403)
    assert refused.body["kind"] == "Status"
    assert there.bearing(token).post(CONFIGMAPS, {"metadata": {"name": "x"}}).code in (401, 403)


@pytest.mark.parametrize(
    "path", ["/api/v1/configmaps", "/api/v1/configmaps?watch=1", "/api/v1/secrets", LOGICAL_CLUSTERS]
)
def test_only_the_privileged_list_all_clusters(pair: tuple[Api, Api], path: str) -> None:
    here, _ = pair
    token = make_token(here, "robot")
    grant_all(here, "robot")
    refused = here.bearing(token).at("*").get(path)
    assert refused.code in (401, 403)
    assert refused.body["kind"] == "Status"
    assert here.bearing(None).at("*").get(path).code in (401, 403)


def test_a_list_of_all_clusters_says_where_each_object_is(pair: tuple[Api, Api]) -> None:
    for cluster in pair:
        make_configmap(cluster, "spread")
    found = pair[0].at("*").get("/api/v1/configmaps?fieldSelector=metadata.name=spread").created()
    clusters = {item["metadata"]["annotations"]["kcp.io/cluster"] for item in found["items"]}
    assert clusters >= {cluster.prefix.removeprefix("/clusters/") for cluster in pair}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_is_written_to_all_clusters(pair: tuple[Api, Api], method: str) -> None:
    for cluster in pair:
        make_configmap(cluster, "kept", value="old")
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/kept"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"value": "new"}}
    content = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None
    answer = pair[0].at("*").request(method, path, None if method == "DELETE" else body, content)
    assert 400 <= answer.code < 500
    assert answer.body["kind"] == "Status"
    for cluster in pair:
        assert cluster.get(f"{CONFIGMAPS}/kept").body["data"] == {"value": "old"}


def test_a_continue_token_reads_only_the_cluster_it_is_used_in(pair: tuple[Api, Api]) -> None:
    here, there = pair
    for number in range(4):
        make_configmap(here, f"here-{number}")
        make_configmap(there, f"there-{number}")
    first = here.get(f"{CONFIGMAPS}?limit=2").body
    assert names(first) == ["here-0", "here-1"]
    token = first["metadata"]["continue"]
    elsewhere = there.get(f"{CONFIGMAPS}?limit=2&continue={token}")
    assert elsewhere.code >= 400 or all(name.startswith("there-") for name in names(elsewhere.body))
    assert names(here.get(f"{CONFIGMAPS}?limit=2&continue={token}").body) == ["here-2", "here-3"]


def test_a_forged_continue_token_reads_no_other_cluster(pair: tuple[Api, Api]) -> None:
    here, there = pair
    other = there.prefix.removeprefix("/clusters/")
    make_configmap(there, "private")
    revision = here.get(CONFIGMAPS).body["metadata"]["resourceVersion"]
    for start in (f"../{other}/default/a\0", f"{other}/default/a\0", f"/{other}/default/a\0", "\0", "../../\0"):
        forged = json.dumps({"v": "meta.k8s.io/v1", "rv": int(revision), "start": start}).encode()
        answer = here.get(f"{CONFIGMAPS}?limit=50&continue={base64.urlsafe_b64encode(forged).decode().rstrip('=')}")
        assert answer.code == 400 or "private" not in names(answer.body)


def test_a_watch_from_the_version_of_another_cluster_sees_only_its_own(pair: tuple[Api, Api]) -> None:
    here, there = pair
    revision = make_configmap(here, "start")["metadata"]["resourceVersion"]
    make_configmap(there, "theirs")
    make_configmap(here, "mine")
    make_configmap(there, "after")
    with there.watch(f"{CONFIGMAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=10") as watch:
        assert [watch.next()["object"]["metadata"]["name"] for _ in range(2)] == ["theirs", "after"]


@pytest.mark.parametrize("user", ["shard-admin", "kcp-admin", None])
def test_an_unknown_cluster_is_not_made_by_asking(shard_admin: Api, api: Api, user: str | None) -> None:
    name = uuid.uuid4().hex[:16]
    asking = {"shard-admin": shard_admin, "kcp-admin": api, None: api.bearing(None)}[user].at(name)
    for answer in (
        asking.get(CONFIGMAPS),
        asking.get("/api/v1/namespaces"),
        asking.post("/api/v1/namespaces", {"metadata": {"name": "default"}}),
        asking.post(CONFIGMAPS, {"metadata": {"name": "x"}}),
    ):
        assert answer.code in (403, 404), answer
        assert answer.body["kind"] == "Status"
    found = shard_admin.at("*").get(LOGICAL_CLUSTERS).created()
    assert name not in {item["metadata"]["annotations"]["kcp.io/cluster"] for item in found["items"]}


def test_a_namespace_that_goes_takes_nothing_from_another_cluster(pair: tuple[Api, Api]) -> None:
    for cluster in pair:
        cluster.post("/api/v1/namespaces", {"metadata": {"name": "shared"}}).created()
        cluster.post("/api/v1/namespaces/shared/configmaps", {"metadata": {"name": "c"}}).created()
    here, there = pair
    version = here.get("/api/v1/namespaces").body["metadata"]["resourceVersion"]
    here.delete("/api/v1/namespaces/shared").created()
    selector = f"fieldSelector=metadata.name=shared&resourceVersion={version}&timeoutSeconds=20"
    with here.watch(f"/api/v1/namespaces?watch=1&{selector}") as watch:
        assert any(event["type"] == "DELETED" for event in watch)
    assert there.get("/api/v1/namespaces/shared/configmaps/c").code == 200


def test_an_owner_in_another_cluster_owns_nothing_here(pair: tuple[Api, Api]) -> None:
    here, there = pair
    owner = make_configmap(there, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    version = here.post(CONFIGMAPS, {"metadata": {"name": "owned", "ownerReferences": [reference]}}).created()[
        "metadata"
    ]["resourceVersion"]
    # As on Kubernetes, an owner that is not found in the object's own cluster is gone, and so goes what it owned.
    selector = f"fieldSelector=metadata.name=owned&resourceVersion={version}&timeoutSeconds=20"
    with here.watch(f"{CONFIGMAPS}?watch=1&{selector}") as watch:
        assert watch.next()["type"] == "DELETED"
    assert there.get(f"{CONFIGMAPS}/owner").code == 200
