"""Workspaces as the store sees them: the five objects that a new one begins with.

Everything follows from a workspace's number, so that a million keys are made without being remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.meta.clusters import make_cluster_name
from kcp.store import ABSENT, ObjectKey, Put, ResourceKey, pack_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.meta.codec import Object

    Naming = Callable[[int], str]

KEYS = 5  # in a workspace
LOGICAL_CLUSTERS = ResourceKey("core.kcp.io", "logicalclusters")

_NAMESPACES = ResourceKey("", "namespaces")
_CONFIGMAPS = ResourceKey("", "configmaps")
_SERVICE_ACCOUNTS = ResourceKey("", "serviceaccounts")
_CLUSTER_ROLE_BINDINGS = ResourceKey("rbac.authorization.k8s.io", "clusterrolebindings")
_CREATED = "2024-01-01T00:00:00Z"


def random_name(number: int) -> str:
    """A logical cluster's name as the server makes it: neighbours in time are strangers in the tables."""
    return make_cluster_name(number.to_bytes(32))


def ordered_name(number: int) -> str:
    """As long and as hard to guess as it needs to be, but in the order of creation: neighbours share pages."""
    return f"{number:08x}{random_name(number)[:8]}"


def logical_cluster_key(cluster: str) -> ObjectKey:
    return ObjectKey(LOGICAL_CLUSTERS, cluster, "", "cluster")


def make_workspace(number: int, name: Naming = random_name) -> list[Put]:
    """One commit that creates the workspace's objects."""
    cluster = name(number)
    return [
        _put(logical_cluster_key(cluster), _logical_cluster(number, cluster)),
        _put(ObjectKey(_NAMESPACES, cluster, "", "default"), _namespace(number)),
        _put(ObjectKey(_CONFIGMAPS, cluster, "default", "kube-root-ca.crt"), _root_certificate(number)),
        _put(ObjectKey(_SERVICE_ACCOUNTS, cluster, "default", "default"), _service_account(number)),
        _put(ObjectKey(_CLUSTER_ROLE_BINDINGS, cluster, "", "workspace-admin"), _admin_binding(number)),
    ]


def _put(key: ObjectKey, obj: Object) -> Put:
    return Put(key, pack_object(obj), expect=ABSENT)


def _metadata(number: int, index: int, name: str, **more: object) -> Object:
    uid = f"{number:08x}-{index:04x}-4b1d-9c3e-{number:012x}"
    return {"name": name, **more, "uid": uid, "creationTimestamp": _CREATED}


def _logical_cluster(number: int, cluster: str) -> Object:
    annotations = {
        "kcp.io/cluster": cluster,
        "kcp.io/path": f"root:org-{number // 1000}:team-{number % 1000}",
        "internal.tenancy.kcp.io/type": "root:universal",
        "experimental.tenancy.kcp.io/owner": f'{{"username":"user-{number}","groups":["system:authenticated"]}}',
    }
    owner = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "resource": "workspaces",
        "name": f"team-{number % 1000}",
        "cluster": "root",
        "uid": f"{number:032x}",
    }
    return {
        "kind": "LogicalCluster",
        "apiVersion": "core.kcp.io/v1alpha1",
        "metadata": _metadata(number, 1, "cluster", annotations=annotations),
        "spec": {"owner": owner},
        "status": {"phase": "Ready"},
    }


def _namespace(number: int) -> Object:
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": _metadata(number, 2, "default", labels={"kubernetes.io/metadata.name": "default"}),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _root_certificate(number: int) -> Object:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": _metadata(number, 3, "kube-root-ca.crt", namespace="default"),
        "data": {"ca.crt": "-----BEGIN CERTIFICATE-----\n" + "MIIB" * 64 + "\n-----END CERTIFICATE-----\n"},
    }


def _service_account(number: int) -> Object:
    metadata = _metadata(number, 4, "default", namespace="default")
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata}


def _admin_binding(number: int) -> Object:
    return {
        "kind": "ClusterRoleBinding",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": _metadata(number, 5, "workspace-admin"),
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"user-{number}"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    }
