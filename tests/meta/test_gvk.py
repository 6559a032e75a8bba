import random

import pytest

from kcp.meta.gvk import (
    GroupKind,
    GroupResource,
    GroupVersion,
    GroupVersionKind,
    GroupVersionResource,
    parse_group_kind,
    parse_group_resource,
    parse_group_version,
    parse_gvk,
    version_rank,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (GroupVersion("apps", "v1"), "apps/v1"),
        (GroupVersion("", "v1"), "v1"),
        (GroupKind("apps", "Deployment"), "Deployment.apps"),
        (GroupKind("", "ConfigMap"), "ConfigMap"),
        (GroupResource("apps", "deployments"), "deployments.apps"),
        (GroupResource("", "configmaps"), "configmaps"),
        (GroupVersionKind("apps", "v1", "Deployment"), "apps/v1, Kind=Deployment"),
        (GroupVersionKind("", "v1", "Secret"), "/v1, Kind=Secret"),
        (GroupVersionKind("", "", ""), "/, Kind="),
        (GroupVersionResource("", "v1", "secrets"), "/v1, Resource=secrets"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_names_are_spelled_as_in_kubernetes(value: tuple[str, ...], text: str) -> None:
    assert str(value) == text
    assert f"{value}" == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("apps/v1", GroupVersion("apps", "v1"), id="group"),
        pytest.param("v1", GroupVersion("", "v1"), id="no-group"),
        pytest.param("", GroupVersion("", ""), id="nothing"),
        pytest.param("/", GroupVersion("", ""), id="slash"),
        pytest.param("/v1", GroupVersion("", "v1"), id="empty-group"),
        pytest.param("apps/", GroupVersion("apps", ""), id="empty-version"),
    ],
)
def test_parsing_group_versions(text: str, expected: GroupVersion) -> None:
    assert parse_group_version(text) == expected


def test_a_group_version_has_one_slash() -> None:
    with pytest.raises(ValueError, match=r"^unexpected GroupVersion string: a/b/c$"):
        parse_gvk("a/b/c", "Kind")


def test_parsing_resources_and_kinds() -> None:
    assert parse_group_resource("roles.rbac.authorization.k8s.io") == ("rbac.authorization.k8s.io", "roles")
    assert parse_group_resource("pods") == GroupResource("", "pods")
    assert parse_group_kind("Role.rbac.authorization.k8s.io") == ("rbac.authorization.k8s.io", "Role")
    assert parse_group_kind("Pod") == GroupKind("", "Pod")


def test_taking_apart_and_putting_together() -> None:
    gvk = parse_gvk("apps/v1", "Deployment")
    assert gvk.group_version.with_kind("Deployment") == gvk
    assert gvk.group_kind.with_version("v1") == gvk
    assert gvk.api_version == "apps/v1"
    assert parse_gvk("v1", "Pod").api_version == "v1"
    gvr = gvk.group_version.with_resource("deployments")
    assert gvr.group_resource.with_version("v1") == gvr
    assert gvr.group_version == gvk.group_version


def test_versions_are_ranked_as_kubernetes_ranks_them() -> None:
    ranked = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
        "v1\n",
        "v99999999999999999999",
    ]
    shuffled = ranked.copy()
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=version_rank) == ranked
