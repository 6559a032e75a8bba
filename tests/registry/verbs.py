"""The registry's verbs on an embedded store, as an endpoint would call them, and ways to lose a race."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from kcp.admission.chain import Chain
from kcp.admission.namespace_lifecycle import NamespaceLifecycle
from kcp.auth.authorizer import Authorizer
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.user import UserInfo
from kcp.meta import codec, wellknown
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.catalogue import CRDS as CRDS_KEY
from kcp.registry.catalogue import Catalogue
from kcp.registry.create import create
from kcp.registry.delete import Deleted, DeleteOptions, delete
from kcp.registry.listing import ListOptions, list_page
from kcp.registry.registry import Registry, StoreReader, key_of
from kcp.registry.request import WriteRequest
from kcp.registry.update import Change, Written, update
from kcp.registry.watching import start_watch
from kcp.store import ObjectKey, Put, pack_object

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kcp.admission.chain import Plugin
    from kcp.meta.codec import Object
    from kcp.meta.fake_clock import FakeClock
    from kcp.registry.listing import Listing
    from kcp.registry.resource import Resource
    from kcp.registry.watching import Watch
    from kcp.store import Operation, Revision, Store

Names = list[str]  # in a class that has a `list` of its own

CLUSTER = "root:team"
OTHER = "root:other"
ADMIN = UserInfo("admin", groups=(wellknown.GROUP_MASTERS,))
JANE = UserInfo("jane", groups=(wellknown.GROUP_AUTHENTICATED,))

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIGMAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
EVENTS = GroupVersionResource("", "v1", "events")
NEW_EVENTS = GroupVersionResource("events.k8s.io", "v1", "events")
CLUSTER_ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
CRDS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WIDGETS = GroupVersionResource("example.io", "v1", "widgets")
OLD_WIDGETS = GroupVersionResource("example.io", "v1beta1", "widgets")


class RacingStore:
    """A store in which somebody else is faster: each of `meanwhile` runs right before one commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []
        self.commits = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)

    async def commit(self, operations: Sequence[Operation]) -> Revision:
        if self.meanwhile:
            await self.meanwhile.pop(0)()
        self.commits += 1
        return await self._store.commit(operations)


class Verbs:
    """One user's way to the registry."""

    def __init__(self, store: Store, clock: FakeClock, *plugins: Plugin) -> None:
        self.racing = RacingStore(store)
        self.store = store
        self.clock = clock
        shown = cast("Store", self.racing)
        reader = StoreReader(shown)
        self.registry = Registry(
            shown,
            Catalogue(shown),
            chain=Chain([NamespaceLifecycle(reader), *plugins]),
            authorizer=Authorizer(RBACAuthorizer(reader)),
            clock=clock,
        )

    def resource(self, gvr: GroupVersionResource, cluster: str = CLUSTER) -> Resource:
        found = self.registry.catalogue.find(cluster, gvr)
        assert found is not None, gvr
        return found

    def request(self, gvr: GroupVersionResource, name: str = "", **changes: Any) -> WriteRequest:  # noqa: ANN401
        """A write to the namespace `default` of the cluster, unless `changes` say otherwise."""
        namespace = "default" if self.resource(gvr).namespaced else ""
        return replace(WriteRequest(CLUSTER, ADMIN, namespace, name), **changes)

    def make(self, gvr: GroupVersionResource, **fields: Any) -> Object:  # noqa: ANN401 - of any kind
        resource = self.resource(gvr)
        obj = {"kind": resource.gvk.kind, "apiVersion": resource.api_version, **fields}
        decoded = resource.decode(obj, None)
        resource.strategy.default(decoded)
        return decoded

    async def create(
        self,
        gvr: GroupVersionResource,
        name: str = "",
        *,
        request: WriteRequest | None = None,
        **fields: Any,  # noqa: ANN401 - of any kind
    ) -> Object:
        metadata = fields.pop("metadata", {}) | ({"name": name} if name else {})
        request = request or self.request(gvr)
        obj = self.make(gvr, metadata=metadata, **fields)
        return cast("Object", codec.loads(await create(self.registry, self.resource(gvr), request, obj)))

    async def put(
        self,
        gvr: GroupVersionResource,
        name: str,
        obj: Object,
        request: WriteRequest | None = None,
        **change: Any,  # noqa: ANN401
    ) -> Written:
        """Replace the object by this one, as PUT does."""
        sent = codec.dumps(obj)
        request = request or self.request(gvr, name)
        return await update(self.registry, self.resource(gvr), request, Change(lambda _: codec.loads(sent), **change))

    async def change(
        self,
        gvr: GroupVersionResource,
        name: str,
        mutate: Callable[[Object], object],
        request: WriteRequest | None = None,
        **change: Any,  # noqa: ANN401 - Change's
    ) -> Object:
        """Change the object that is there, as a patch does."""

        def transform(old: Object | None) -> Object:
            assert old is not None
            mutate(old)
            return old

        request = request or self.request(gvr, name)
        made = Change(transform, consumes=True, **change)
        written = await update(self.registry, self.resource(gvr), request, made)
        return cast("Object", codec.loads(written.body))

    async def delete(
        self,
        gvr: GroupVersionResource,
        name: str,
        request: WriteRequest | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Deleted:
        request = request or self.request(gvr, name)
        return await delete(self.registry, self.resource(gvr), request, DeleteOptions(**options))

    def get(
        self, gvr: GroupVersionResource, name: str, namespace: str = "default", cluster: str = CLUSTER
    ) -> Object | None:
        record = self.store.get(key_of(self.resource(gvr), cluster, namespace, name))
        return None if record is None else cast("Object", codec.loads(record.body))

    async def list(
        self,
        gvr: GroupVersionResource,
        namespace: str | None = "default",
        cluster: str | None = CLUSTER,
        **options: Any,  # noqa: ANN401 - ListOptions'
    ) -> Listing:
        return await list_page(self.registry, self.resource(gvr), cluster, namespace, ListOptions(**options))

    async def list_names(self, gvr: GroupVersionResource, namespace: str | None = "default", **options: Any) -> Names:  # noqa: ANN401
        return names_of(await self.list(gvr, namespace, **options))

    async def watch(
        self,
        gvr: GroupVersionResource,
        namespace: str | None = "default",
        cluster: str | None = CLUSTER,
        **options: Any,  # noqa: ANN401 - ListOptions'
    ) -> Watch:
        options["watch"] = True
        return await start_watch(self.registry, self.resource(gvr), cluster, namespace, ListOptions(**options))

    async def define(self, crd: Object, cluster: str = CLUSTER) -> None:
        """Store a definition as the controller leaves it."""
        key = ObjectKey(CRDS_KEY, cluster, "", crd["metadata"]["name"])
        await self.store.commit([Put(key, pack_object(crd))])


def names_of(listing: Listing) -> list[str]:
    return [record.key.name for record in listing.page.records()]


def bodies_of(listing: Listing) -> list[Object]:
    return [codec.loads(body) for body in listing.page.bodies()]


def version(name: str = "v1", **settings: Any) -> Object:  # noqa: ANN401 - of a definition's version
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}} | settings


def crd(*versions: Object, established: str = "True", scope: str = "Namespaced", **names: Any) -> Object:  # noqa: ANN401
    """A definition of widgets."""
    all_names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", **names}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.example.io", "uid": "u"},
        "spec": {
            "group": "example.io",
            "scope": scope,
            "names": all_names,
            "versions": list(versions) or [version()],
            "conversion": {"strategy": "None"},
        },
        "status": {"acceptedNames": all_names, "conditions": [{"type": "Established", "status": established}]},
    }
