"""Reviews and token requests: asked and answered, never stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kcp.endpoints import protobuf
from tests.endpoints.api import ADMIN, API, PROTOBUF, URL, USER

if TYPE_CHECKING:
    from kcp.meta.codec import Object

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
LIST = {"resourceAttributes": {"verb": "list", "resource": "configmaps", "namespace": "default"}}
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("/selfsubjectaccessreviews", LIST),
        ("/subjectaccessreviews", {**LIST, "user": "jane"}),
        ("/namespaces/default/localsubjectaccessreviews", {**LIST, "user": "jane"}),
    ],
    ids=["self", "subject", "local"],
)
async def test_whether_somebody_may(api: API, path: str, spec: Object) -> None:
    async def ask() -> Any:  # noqa: ANN401
        token = USER if "self" in path else ADMIN
        body: Object = {"spec": spec}
        if "namespaces" in path:
            body["metadata"] = {"namespace": "default"}
        return (await api.must("POST", AUTHORIZATION + path, body, token=token))["status"]

    await api.grant(["create"], ["selfsubjectaccessreviews"])
    assert (await ask())["allowed"] is False
    await api.grant(["list"], ["configmaps"], namespace="default")
    assert (await ask())["allowed"] is True


@pytest.mark.parametrize(
    ("path", "spec", "why"),
    [
        (
            "/selfsubjectaccessreviews",
            {},
            "exactly one of nonResourceAttributes or resourceAttributes must be",
        ),
        ("/subjectaccessreviews", LIST, "at least one of user or group must be specified"),
        ("/namespaces/default/localsubjectaccessreviews", {"user": "jane"}, "spec.resourceAttributes: "),
    ],
    ids=["self", "subject", "local"],
)
async def test_questions_that_make_no_sense(api: API, path: str, spec: Object, why: str) -> None:
    answer = await api.post(AUTHORIZATION + path, {"spec": spec})
    assert answer.status in (400, 422)
    assert why in answer.message


async def test_what_one_may(api: API) -> None:
    await api.grant(["create"], ["selfsubjectrulesreviews"])
    await api.grant(["get"], ["configmaps"], namespace="default")
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    review = await api.must("POST", path, {"spec": {"namespace": "default"}}, token=USER)
    assert {"verbs": ["get"], "apiGroups": ["*"], "resources": ["configmaps"]} in review["status"]["resourceRules"]


async def test_who_one_is(api: API) -> None:
    answer = await api.must("POST", f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert answer["status"]["userInfo"]["username"] == "admin"
    enveloped = await api.post(f"{AUTHENTICATION}/selfsubjectreviews", {}, accept=PROTOBUF)
    assert protobuf.decode(enveloped.body)["status"]["userInfo"]["username"] == "admin"


@pytest.mark.parametrize(("token", "expected"), [(USER, "jane"), ("wrong", None)])
async def test_whose_token_it_is(api: API, token: str, expected: str | None) -> None:
    review = await api.must("POST", f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}})
    status = review["status"]
    assert status.get("authenticated", False) is (expected is not None)
    assert status.get("user", {}).get("username") == expected


async def test_reviews_are_only_created(api: API) -> None:
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    assert [(await api.call(method, path)).status for method in ("GET", "DELETE", "PUT")] == [405, 405, 405]
    before = api.store.revision
    await api.must("POST", path, {"spec": LIST})
    assert api.store.revision == before


# -- tokens of service accounts ----------------------------------------------


async def test_a_token_is_good_for_its_service_account(api: API) -> None:
    await api.must("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    issued = await api.post(f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 3600}})
    assert issued.status == 201
    assert "audiences" not in issued.json()["spec"]  # as it was asked for
    token = issued.json()["status"]["token"]
    me = await api.must("POST", f"{AUTHENTICATION}/selfsubjectreviews", {}, token=token)
    assert me["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"


async def test_a_service_account_of_another_cluster_is_not_the_one_of_the_same_name(api: API) -> None:
    await api.must("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    token = (await api.must("POST", f"{ACCOUNTS}/robot/token", {}))["status"]["token"]
    await api.create_cluster("other")
    await api.must("POST", ACCOUNTS, {"metadata": {"name": "robot"}}, cluster="other")
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]
    role = {"metadata": {"name": "robots"}, "rules": rules}
    subjects = [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]
    binding = {
        "metadata": {"name": "robots"},
        "subjects": subjects,
        "roleRef": {"kind": "ClusterRole", "name": "robots", "apiGroup": group},
    }
    for cluster in ("root", "other"):
        await api.must("POST", f"/apis/{group}/v1/clusterroles", role, cluster=cluster)
        await api.must("POST", f"/apis/{group}/v1/clusterrolebindings", binding, cluster=cluster)
    statuses = [
        (await api.get("/api/v1/namespaces", token=token, cluster=cluster)).status for cluster in ("root", "other")
    ]
    assert statuses == [200, 403]


async def test_a_token_for_somebody_else(api: API) -> None:
    await api.must("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    issued = await api.must("POST", f"{ACCOUNTS}/robot/token", {"spec": {"audiences": ["vault"]}})
    assert issued["spec"]["audiences"] == ["vault"]
    assert (await api.get("/version", token=issued["status"]["token"])).status == 401


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"metadata": {"namespace": "other"}}, 400, "the namespace of the provided object does not match"),
        ({"kind": "Secret", "apiVersion": "v1"}, 400, "cannot be handled as a TokenRequest"),
        ({"spec": {"expirationSeconds": 1}}, 422, "may not specify a duration less than 10 minutes"),
    ],
    ids=["namespace", "kind", "short"],
)
async def test_token_requests_that_make_no_sense(api: API, body: Object, status: int, why: str) -> None:
    await api.must("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    answer = await api.post(f"{ACCOUNTS}/robot/token", body)
    assert answer.status == status
    assert why in answer.message


async def test_a_token_request_is_told_what_it_should_not_have(api: API) -> None:
    await api.must("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    answer = await api.post(f"{ACCOUNTS}/robot/token", {"nonsense": 1})
    assert answer.all("warning") == ['299 - "unknown field \\"nonsense\\""']
    assert (await api.get(f"{ACCOUNTS}/robot/token")).status == 405
    assert (await api.post(f"{ACCOUNTS}/missing/token", {})).status == 404


async def test_others_can_verify_tokens(api: API) -> None:
    keys = await api.get("/openid/v1/jwks", cluster=None)
    assert (keys.status, keys.media) == (200, "application/jwk-set+json")
    assert [key["use"] for key in keys.json()["keys"]] == ["sig"]
    configuration = await api.must("GET", "/.well-known/openid-configuration", cluster=None)
    assert configuration["jwks_uri"] == f"{URL}/openid/v1/jwks"
    assert configuration["issuer"] == "https://kcp.default.svc"
