"""A registry on an embedded store with controllers running on it, the time stopped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from kcp.admission.chain import Chain
from kcp.admission.namespace_lifecycle import NamespaceLifecycle
from kcp.auth.authorizer import Authorizer
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.user import UserInfo
from kcp.controller.client import LocalClient
from kcp.controller.manager import ControllerManager
from kcp.meta import wellknown
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.catalogue import Catalogue
from kcp.registry.changes import ChangeFeed
from kcp.registry.delete import DeleteOptions
from kcp.registry.registry import Registry, StoreReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.admission.chain import Plugin
    from kcp.controller.controller import AnyController
    from kcp.meta.codec import Object
    from kcp.meta.fake_clock import FakeClock
    from kcp.store import Store

CLUSTER = "root"
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIGMAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
EVENTS = GroupVersionResource("", "v1", "events")
QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
SERVICE_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
CLUSTER_ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
CRDS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WIDGETS = GroupVersionResource("example.io", "v1", "widgets")

_KINDS = {
    NAMESPACES: "Namespace",
    CONFIGMAPS: "ConfigMap",
    SECRETS: "Secret",
    EVENTS: "Event",
    QUOTAS: "ResourceQuota",
    SERVICE_ACCOUNTS: "ServiceAccount",
    LEASES: "Lease",
    CLUSTER_ROLES: "ClusterRole",
    CRDS: "CustomResourceDefinition",
    WIDGETS: "Widget",
}


def make_registry(store: Store, clock: FakeClock, *plugins: Plugin) -> Registry:
    reader = StoreReader(store)
    chain = Chain([NamespaceLifecycle(reader), *plugins])
    authorizer = Authorizer(RBACAuthorizer(reader))
    return Registry(store, Catalogue(store), chain=chain, authorizer=authorizer, clock=clock)


class ControlPlane:
    """What a test uses as kubectl would be used, and the controllers behind it."""

    def __init__(self, store: Store, clock: FakeClock, *plugins: Plugin) -> None:
        self.store = store
        self.clock = clock
        self.registry = make_registry(store, clock, *plugins)
        self.client = LocalClient(self.registry, "test", "test")
        self.client.user = UserInfo("admin", groups=(wellknown.GROUP_MASTERS,))
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.manager: ControllerManager | None = None

    def start(self, *controllers: AnyController, **options: Any) -> None:  # noqa: ANN401 - ControllerManager's
        self._stopping = asyncio.Event()
        self.manager = ControllerManager(controllers, ChangeFeed(self.store), self.clock, **options)
        self._task = asyncio.create_task(self.manager.run(self._stopping))

    async def stop(self) -> None:
        if self._task is not None:
            self._stopping.set()
            await self._task
            self._task = None

    async def settle(self) -> None:
        """Wait until the controllers have nothing to do at this time."""
        assert self._task is not None
        assert self.manager is not None
        for _ in range(2):
            await asyncio.sleep(0)
            while not self.manager.is_idle:
                assert not self._task.done(), self._task.result()
                await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        """Move the clock, in steps so that what is due in between happens in between."""
        await self.settle()
        steps = 20
        for _ in range(steps):
            self.clock.advance(seconds / steps)
            for _ in range(5):
                await asyncio.sleep(0)
            await self.settle()

    # -- objects --------------------------------------------------------------

    async def create(
        self,
        gvr: GroupVersionResource,
        name: str,
        namespace: str = "",
        cluster: str = CLUSTER,
        **fields: Any,  # noqa: ANN401 - of any kind
    ) -> Object:
        metadata = {"name": name, **fields.pop("metadata", {})}
        if namespace:
            metadata["namespace"] = namespace
        version = gvr.group_version
        obj = {"kind": _KINDS[gvr], "apiVersion": str(version), "metadata": metadata, **fields}
        return await self.client.create(cluster, gvr, obj)

    async def create_namespace(self, name: str, cluster: str = CLUSTER) -> Object:
        return await self.create(NAMESPACES, name, cluster=cluster)

    def get(self, gvr: GroupVersionResource, name: str, namespace: str = "", cluster: str = CLUSTER) -> Object | None:
        return self.client.get(cluster, gvr, namespace, name)

    def names(self, gvr: GroupVersionResource, namespace: str | None = None, cluster: str = CLUSTER) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.client.list(cluster, gvr, namespace)]

    async def update(
        self,
        gvr: GroupVersionResource,
        name: str,
        namespace: str,
        mutate: Callable[[Object], None],
        **options: Any,  # noqa: ANN401 - LocalClient's
    ) -> Object:
        return await self.client.update(CLUSTER, gvr, namespace, name, mutate, **options)

    async def delete(
        self, gvr: GroupVersionResource, name: str, namespace: str = "", policy: str | None = None
    ) -> bool:
        return await self.client.delete(CLUSTER, gvr, namespace, name, DeleteOptions(propagation_policy=policy))

    async def release(self, gvr: GroupVersionResource, name: str, namespace: str = "") -> None:
        """Take the finalizers off an object."""

        def mutate(obj: Object) -> None:
            obj["metadata"].pop("finalizers", None)

        await self.update(gvr, name, namespace, mutate)


def crd(plural: str = "widgets", kind: str = "Widget", group: str = "example.io", **names: Any) -> Object:  # noqa: ANN401
    """The fields of a definition, its name apart."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        }
    }


def owned_by(*owners: Object, block: bool = False, **changes: Any) -> Object:  # noqa: ANN401 - fields of references
    """Metadata with references to these objects."""
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({"blockOwnerDeletion": True} if block else {}),
            **changes,
        }
        for owner in owners
    ]
    return {"ownerReferences": references}
