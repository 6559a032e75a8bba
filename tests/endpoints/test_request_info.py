"""What an address and a method ask for."""

from __future__ import annotations

import pytest

from kcp.endpoints.request_info import RequestInfo, parse, split_cluster


@pytest.mark.parametrize(
    ("path", "cluster", "rest"),
    [
        ("/api/v1", None, "/api/v1"),
        ("/clusters", None, "/clusters"),
        ("/clusters/root", "root", "/"),
        ("/clusters/root/", "root", "/"),
        ("/clusters/root:org:team/api/v1", "root:org:team", "/api/v1"),
        ("/clusters/*/api/v1", "*", "/api/v1"),
        ("/clusters//api/v1", "", "/api/v1"),
        ("/clusters/root/clusters/other/api", "root", "/clusters/other/api"),
        ("/api/v1/clusters/root", None, "/api/v1/clusters/root"),
    ],
    ids=lambda value: str(value),
)
def test_the_cluster_is_taken_off_the_front(path: str, cluster: str | None, rest: str) -> None:
    assert split_cluster(path) == (cluster, rest)


def describe(info: RequestInfo) -> str:
    """verb group/version resource/subresource namespace|name"""
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    return f"{info.verb} {info.group}/{info.version} {resource} {info.namespace}|{info.name}"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/namespaces", "list /v1 namespaces |"),
        ("GET", "/api/v1/namespaces/a", "get /v1 namespaces a|a"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update /v1 namespaces/finalize a|a"),
        ("PATCH", "/api/v1/namespaces/a/status", "patch /v1 namespaces/status a|a"),
        ("GET", "/api/v1/namespaces/a/configmaps", "list /v1 configmaps a|"),
        ("HEAD", "/api/v1/namespaces/a/configmaps/b", "get /v1 configmaps a|b"),
        ("POST", "/api/v1/namespaces/a/serviceaccounts/b/token", "create /v1 serviceaccounts/token a|b"),
        ("DELETE", "/api/v1/namespaces/a/configmaps", "deletecollection /v1 configmaps a|"),
        ("DELETE", "/apis/g.io/v2/things/b", "delete g.io/v2 things |b"),
        ("GET", "/apis/g.io/v2/things/b/status/", "get g.io/v2 things/status |b"),
        ("GET", "/apis/g.io/v2/watch/things", "watch g.io/v2 things |"),
        ("POST", "/api/v1/watch/namespaces/a/configmaps/b", "watch /v1 configmaps a|b"),
        ("GET", "/api/v1/namespaces/a/namespaces/b", "get /v1 namespaces a|b"),
        ("OPTIONS", "/api/v1/pods/b", "options /v1 pods |b"),
        ("GET", "//api/v1/namespaces//", "list /v1 namespaces |"),
    ],
    ids=lambda value: str(value),
)
def test_addresses_of_resources(method: str, path: str, expected: str) -> None:
    info = parse(method, path)
    assert info.is_resource
    assert describe(info) == expected


@pytest.mark.parametrize(
    "path", ["/", "", "/api", "/api/v1", "/apis/g.io", "/apis/g.io/v1", "/api/v1/watch", "/apis/g/v1/watch", "/version"]
)
def test_everything_else_is_only_a_path(path: str) -> None:
    info = parse("GET", path)
    assert (info.is_resource, info.verb, info.path) == (False, "get", path)
