"""Reads and writes of a server's own controllers: the registry's verbs, as a user of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.auth.user import UserInfo
from kcp.meta import codec, errors, wellknown
from kcp.registry.create import create
from kcp.registry.delete import DeleteOptions, delete
from kcp.registry.registry import StoreReader
from kcp.registry.request import WriteRequest
from kcp.registry.update import Change, update

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionResource
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource

    # Changes the object that it is given. May run several times, each time with the newest.
    Mutate = Callable[[Object], None]

MANAGER: Final = "kcp"
_PLAIN: Final = DeleteOptions()


class LocalClient:
    """Reads are local, writes go through admission as anybody's."""

    def __init__(self, registry: Registry, name: str, manager: str = MANAGER) -> None:
        self.registry = registry
        self.user = UserInfo(f"{wellknown.CONTROLLER_USER_PREFIX}{name}", groups=(wellknown.GROUP_MASTERS,))
        self._manager = manager
        self._reader = StoreReader(registry.store)

    def get(self, cluster: str, gvr: GroupVersionResource, namespace: str, name: str) -> Object | None:
        return self._reader.get(cluster, gvr.group, gvr.resource, namespace, name)

    def list(self, cluster: str, gvr: GroupVersionResource, namespace: str | None = None) -> list[Object]:
        return self._reader.list(cluster, gvr.group, gvr.resource, namespace)

    async def create(self, cluster: str, gvr: GroupVersionResource, obj: Object) -> Object:
        """Raises AlreadyExists and whatever the verb does."""
        resource = self._find(cluster, gvr)
        decoded = resource.decode(obj, None)
        resource.strategy.default(decoded)
        request = self._request(cluster, decoded["metadata"].get("namespace", ""), "")
        written: Object = codec.loads(await create(self.registry, resource, request, decoded))
        return written

    async def update(
        self,
        cluster: str,
        resource: GroupVersionResource | Resource,
        namespace: str,
        name: str,
        mutate: Mutate,
        *,
        subresource: str = "",
    ) -> Object:
        """Change one object, again and again until nobody was faster. No change is no write. Raises NotFound."""

        def transform(obj: Object | None) -> Object:
            assert obj is not None
            mutate(obj)
            return obj

        found = self._find(cluster, resource)
        request = self._request(cluster, namespace, name)
        request.subresource = subresource
        written = await update(self.registry, found, request, Change(transform, consumes=True))
        obj: Object = codec.loads(written.body)
        return obj

    async def delete(
        self,
        cluster: str,
        resource: GroupVersionResource | Resource,
        namespace: str,
        name: str,
        options: DeleteOptions = _PLAIN,
    ) -> bool:
        """Delete one object; False if there was none. Raises Conflict if the preconditions do not hold."""
        request = self._request(cluster, namespace, name)
        request.manager = ""
        try:
            await delete(self.registry, self._find(cluster, resource), request, options)
        except errors.NotFound:
            return False
        return True

    def _request(self, cluster: str, namespace: str, name: str) -> WriteRequest:
        return WriteRequest(cluster, self.user, namespace, name, manager=self._manager)

    def _find(self, cluster: str, wanted: GroupVersionResource | Resource) -> Resource:
        if not isinstance(wanted, tuple):
            return wanted
        found = self.registry.catalogue.find(cluster, wanted)
        if found is None:
            raise errors.NotFound(wanted.group_resource, "")
        return found
