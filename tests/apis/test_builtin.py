"""The catalogue of built-in resources."""

from __future__ import annotations

import pytest

from kcp.apis.builtin import BY_GVK, BY_GVR, GROUP_VERSIONS, RESOURCES
from kcp.apis.types import struct, struct_name
from kcp.meta.gvk import GroupVersion, GroupVersionKind, GroupVersionResource

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def test_core_has_no_workloads() -> None:
    core = {resource.gvr.resource for resource in RESOURCES if not resource.gvr.group}
    assert core == {
        "configmaps",
        "events",
        "limitranges",
        "namespaces",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
    }


def test_groups_come_in_the_order_of_discovery() -> None:
    assert GROUP_VERSIONS[0] == GroupVersion("", "v1")
    assert [group_version.group for group_version in GROUP_VERSIONS[1:]] == [
        "events.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "rbac.authorization.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "coordination.k8s.io",
    ]


def test_a_namespaced_resource() -> None:
    resource = BY_GVR[GroupVersionResource("", "v1", "configmaps")]
    assert (resource.kind, resource.list_kind, resource.singular) == ("ConfigMap", "ConfigMapList", "configmap")
    assert resource.namespaced
    assert resource.is_stored
    assert resource.short_names == ("cm",)
    assert resource.verbs == ALL_VERBS
    assert resource.subresources == {}


def test_namespaces_cannot_be_deleted_as_a_collection() -> None:
    resource = BY_GVR[GroupVersionResource("", "v1", "namespaces")]
    assert not resource.namespaced
    assert "deletecollection" not in resource.verbs
    assert set(resource.subresources) == {"finalize", "status"}
    assert resource.subresources["finalize"].verbs == ("update",)


def test_a_subresource_may_be_of_another_group() -> None:
    subresource = BY_GVR[GroupVersionResource("", "v1", "serviceaccounts")].subresources["token"]
    assert subresource.gvk == GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")


@pytest.mark.parametrize("group", ["authentication.k8s.io", "authorization.k8s.io"])
def test_reviews_are_only_created(group: str) -> None:
    reviews = [resource for resource in RESOURCES if resource.gvr.group == group]
    assert reviews
    assert all(resource.verbs == ("create",) and not resource.is_stored for resource in reviews)


def test_categories() -> None:
    assert BY_GVK[GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")].categories == (
        "api-extensions",
    )


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: str(resource.gvr))
def test_every_kind_and_list_has_a_struct(resource: object) -> None:
    found = next(item for item in RESOURCES if item is resource)
    assert struct_name(found.gvk) is not None
    if "list" in found.verbs:
        name = struct_name(found.gvk._replace(kind=found.list_kind))
        assert name is not None
        assert [field.name for field in struct(name)] == ["kind", "apiVersion", "metadata", "items"]


def test_options_are_kinds_of_every_group_version() -> None:
    name = struct_name(GroupVersionKind("example.com", "v7", "DeleteOptions"))
    assert name == "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
    assert struct_name(GroupVersionKind("", "v1", "Pod")) is None
