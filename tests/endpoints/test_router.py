"""Which handler answers, and what is said where none does."""

from __future__ import annotations

import pytest

from tests.endpoints.api import (
    API,
    CONFIGMAPS,
    OPERATOR,
    USER,
    WIDGETS,
    configmap,
    definition,
    served_version,
    widget,
)

NOT_FOUND = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
MERGE = "application/merge-patch+json"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/api/v1/nonsense", 404, NOT_FOUND),
        ("GET", "/api/v2/configmaps", 404, NOT_FOUND),
        ("GET", "/apis/events.k8s.io/v1/nonsense", 404, NOT_FOUND),
        ("GET", "/apis/events.k8s.io/v9/events", 404, None),
        ("GET", "/apis/missing.io/v1/things", 404, None),
        ("GET", "/apis/example.io/v1/things", 404, None),
        ("GET", f"{CONFIGMAPS}/a/status", 404, NOT_FOUND),
        ("GET", f"{CONFIGMAPS}/a/b/c", 404, NOT_FOUND),
        ("GET", "/api/v1/namespaces/default/status/more", 404, NOT_FOUND),
        ("GET", "/api/v1/configmaps/a", 404, NOT_FOUND),
        ("POST", "/api/v1/serviceaccounts/a/token", 404, NOT_FOUND),
        ("POST", "/api/v1/configmaps", 405, NOT_ALLOWED),
        ("DELETE", "/api/v1/configmaps", 405, NOT_ALLOWED),
        ("DELETE", "/api/v1/namespaces", 405, NOT_ALLOWED),
        ("PUT", CONFIGMAPS, 405, NOT_ALLOWED),
        ("PATCH", CONFIGMAPS, 405, NOT_ALLOWED),
        ("POST", f"{CONFIGMAPS}/a", 405, NOT_ALLOWED),
        ("OPTIONS", f"{CONFIGMAPS}/a", 405, NOT_ALLOWED),
        ("OPTIONS", CONFIGMAPS, 405, NOT_ALLOWED),
        ("DELETE", "/api/v1/namespaces/default/status", 405, NOT_ALLOWED),
        ("POST", "/api/v1/namespaces/default/finalize", 405, NOT_ALLOWED),
        ("GET", "/api/v1/namespaces/default/finalize", 405, NOT_ALLOWED),
        ("PUT", f"{WIDGETS}", 400, "name must be provided"),
        ("PATCH", f"{WIDGETS}", 400, "name must be provided"),
        ("OPTIONS", f"{WIDGETS}", 405, NOT_ALLOWED),
        ("GET", f"{WIDGETS}/w/nonsense", 404, 'widgets.example.io "w" not found'),
        ("GET", f"{WIDGETS}/w/status/more", 404, 'widgets.example.io "w" not found'),
        ("DELETE", f"{WIDGETS}/w/status", 405, "delete is not supported on resources of kind"),
        ("POST", f"{WIDGETS}/w/status", 405, "create is not supported on resources of kind"),
        ("GET", "/apis/example.io/v1/widgets/w", 404, None),
        ("POST", "/apis/example.io/v1/widgets", 404, None),
        ("POST", "/apis/example.io/v1/widgets/w", 404, None),
        ("DELETE", "/apis/example.io/v1/widgets", 404, None),
        ("GET", "/apis/example.io/v1/widgets/w/status", 404, None),
        ("GET", "/apis/example.io/v2/widgets", 404, None),
    ],
)
async def test_where_nothing_answers(api: API, method: str, path: str, status: int, message: str | None) -> None:
    await api.define(definition(served_version(subresources={"status": {}})))
    answer = await api.call(method, path)
    assert answer.status == status
    if message is None:
        assert answer.body == b"404 page not found\n"
    else:
        assert answer.message.startswith(message)


async def test_a_custom_resource_may_be_created_by_its_name(api: API) -> None:
    await api.define(definition())
    assert (await api.post(f"{WIDGETS}/w", widget())).status == 201


# -- addresses that ask for one thing and mean another ------------------------


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD"])
@pytest.mark.parametrize("name", ["", "/a", "/a/status"])
async def test_whoever_may_only_watch_changes_nothing(api: API, method: str, name: str) -> None:
    await api.grant(["watch"], ["*"])
    await api.create_configmap()
    before = api.store.revision
    for collection in ("/api/v1/watch/namespaces/default/configmaps", "/api/v1/watch/namespaces"):
        body = configmap("a" if name else "b")
        path = collection + name.replace("/a", "/default" if collection.endswith("namespaces") else "/a")
        answer = await api.call(method, path, body, token=USER, headers={"content-type": MERGE})
        assert answer.status == 405
    assert api.store.revision == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/default/namespaces"),
        ("GET", "/api/v1/namespaces/default/namespaces/other"),
        ("DELETE", "/api/v1/namespaces/default/namespaces/other"),
        ("PUT", "/api/v1/namespaces/default/namespaces/other/finalize"),
        ("GET", "/api/v1/namespaces/default/namespaces?watch=1"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles/a"),
        ("GET", "/apis/example.io/v1/namespaces/default/widgets"),
        ("PUT", "/apis/example.io/v1/namespaces/default/widgets/w/status"),
    ],
)
async def test_the_rights_of_a_namespace_do_not_reach_beyond_it(api: API, method: str, path: str) -> None:
    await api.define(definition(served_version(subresources={"status": {}}), scope="Cluster"))
    await api.must("POST", "/apis/example.io/v1/widgets", widget())
    await api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    await api.must("POST", ROLES, {"metadata": {"name": "a"}})
    await api.grant(["*"], ["*"], namespace="default")
    before = api.store.revision
    plain, _, query = path.partition("?")
    answer = await api.call(method, plain, widget(), token=USER, **({"watch": "1"} if query else {}))
    assert answer.status == 404
    assert api.store.revision == before
    assert (await api.get("/api/v1/namespaces/default", token=USER)).status == 200


# -- all clusters at once -----------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "verb", "kind"),
    [
        ("POST", CONFIGMAPS, "create", "configmaps"),
        ("GET", f"{CONFIGMAPS}/a", "get", "configmaps"),
        ("PUT", f"{CONFIGMAPS}/a", "update", "configmaps"),
        ("PATCH", f"{CONFIGMAPS}/a", "patch", "configmaps"),
        ("DELETE", f"{CONFIGMAPS}/a", "delete", "configmaps"),
        ("DELETE", CONFIGMAPS, "deletecollection", "configmaps"),
        ("POST", ROLES, "create", "clusterroles.rbac.authorization.k8s.io"),
    ],
)
async def test_all_clusters_at_once_can_only_be_listed(api: API, method: str, path: str, verb: str, kind: str) -> None:
    await api.create_configmap()
    answer = await api.call(method, path, configmap(), cluster="*", token=OPERATOR)
    assert (answer.status, answer.json()["reason"]) == (405, "MethodNotAllowed")
    assert answer.message == f'{verb} is not supported on resources of kind "{kind}" in the `*` logical cluster'


async def test_all_clusters_at_once_are_for_few(api: API) -> None:
    assert (await api.get("/api/v1/configmaps", cluster="*", token=USER)).status == 403
    assert (await api.get("/api/v1/configmaps", cluster="*", token=OPERATOR)).status == 200
    await api.define(definition())
    assert (await api.get("/apis/example.io/v1/widgets", cluster="*", token=OPERATOR)).status == 404


async def test_a_deprecated_version_warns(api: API) -> None:
    await api.define(definition(served_version("v1", deprecated=True)))
    expected = ['299 - "example.io/v1 Widget is deprecated"']
    assert (await api.get(WIDGETS)).all("warning") == expected
    assert (await api.post(WIDGETS, widget())).all("warning") == expected
    async with api.watch(WIDGETS) as watch:
        assert watch.headers["warning"] == expected[0]
