"""One resource in one version."""

from __future__ import annotations

from kcp.meta.gvk import GroupKind, GroupResource, GroupVersion
from kcp.registry.builtin import builtin_resources
from tests.registry.verbs import CLUSTER_ROLES, NAMESPACES


def test_names_are_derived_once() -> None:
    resource = builtin_resources()[CLUSTER_ROLES]
    group = "rbac.authorization.k8s.io"
    assert resource.group_resource == GroupResource(group, "clusterroles")
    assert resource.group_kind == GroupKind(group, "ClusterRole")
    assert resource.group_version == GroupVersion(group, "v1")
    assert resource.api_version == f"{group}/v1"


def test_managed_fields_are_tracked_for_each_endpoint_apart() -> None:
    resource = builtin_resources()[NAMESPACES]
    main, status = resource.write_scope(), resource.write_scope("status")
    assert (main.subresource, status.subresource) == ("", "status")
    assert main.reset_fields == resource.reset_fields
    assert status.reset_fields == resource.subresources["status"].reset_fields != main.reset_fields
    assert resource.write_scope("status") is status, "made once"
