"""What a new installation holds before anyone asks: the first logical clusters and their namespaces."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from kcp.auth.bootstrap import GROUP, cluster_role_bindings, cluster_roles
from kcp.auth.user import UserInfo
from kcp.meta import errors, wellknown
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.create import create
from kcp.registry.registry import key_of
from kcp.registry.request import WriteRequest

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry

SERVER: Final = UserInfo("system:kcp:bootstrap", groups=(wellknown.GROUP_MASTERS,))
NAMESPACES: Final = (wellknown.NAMESPACE_DEFAULT, wellknown.NAMESPACE_SYSTEM)
_LOGICAL_CLUSTERS: Final = GroupVersionResource(wellknown.GROUP_CORE, "v1alpha1", "logicalclusters")
_CLUSTER_ROLES: Final = GroupVersionResource(GROUP, "v1", "clusterroles")
_CLUSTER_ROLE_BINDINGS: Final = GroupVersionResource(GROUP, "v1", "clusterrolebindings")
_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")


async def bootstrap(registry: Registry) -> None:
    """Create what is missing. Several servers may do so at once; what exists is left alone."""
    is_new = registry.store.revision == 0
    clusters = (wellknown.ROOT_CLUSTER, wellknown.ADMIN_CLUSTER)
    # What is asked for at once is committed at once: a new installation costs three commits, not one for each object.
    await asyncio.gather(*(ensure_cluster(registry, cluster) for cluster in clusters))
    namespaces = [{"kind": "Namespace", "apiVersion": "v1", **_named(name)} for name in NAMESPACES]
    await asyncio.gather(*(_ensure(registry, cluster, _NAMESPACES, obj) for cluster in clusters for obj in namespaces))
    await asyncio.gather(
        *(_ensure(registry, wellknown.ADMIN_CLUSTER, *policy) for policy in sorted(_policies(), key=_kubernetes_last))
    )
    if is_new:
        # No client can have seen a version from before there was anything.
        await registry.store.compact(registry.store.revision)


def _policies() -> list[tuple[GroupVersionResource, Object]]:
    """The roles that count in every logical cluster, as objects for those who look."""
    roles = [(_CLUSTER_ROLES, role) for role in cluster_roles()]
    return roles + [(_CLUSTER_ROLE_BINDINGS, binding) for binding in cluster_role_bindings()]


def _kubernetes_last(policy: tuple[GroupVersionResource, Object]) -> bool:
    return not policy[1]["metadata"]["name"].startswith("system:kcp:")


async def ensure_cluster(registry: Registry, cluster: str) -> None:
    group_version = f"{wellknown.GROUP_CORE}/v1alpha1"
    body = {"kind": "LogicalCluster", "apiVersion": group_version, **_named(wellknown.LOGICAL_CLUSTER_NAME)}
    await _ensure(registry, cluster, _LOGICAL_CLUSTERS, body)


def _named(name: str) -> Object:
    return {"metadata": {"name": name}}


async def _ensure(registry: Registry, cluster: str, gvr: GroupVersionResource, obj: Object) -> None:
    resource = registry.catalogue.find(cluster, gvr)
    assert resource is not None
    if registry.store.get(key_of(resource, cluster, "", obj["metadata"]["name"])) is not None:
        return
    decoded = resource.decode(obj, None)
    resource.strategy.default(decoded)
    try:
        await create(registry, resource, WriteRequest(cluster, SERVER), decoded)
    except errors.AlreadyExists:
        return
