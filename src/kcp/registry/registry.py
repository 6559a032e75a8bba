"""What all verbs share: the store, the catalogue, admission, the clock, and who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.auth.attributes import Attributes as Question
from kcp.meta import codec
from kcp.registry.strategy import WriteContext
from kcp.store import ObjectKey, ResourceKey, Scope

if TYPE_CHECKING:
    from kcp.admission.chain import Chain
    from kcp.auth.authorizer import Authorizer
    from kcp.auth.user import UserInfo
    from kcp.meta.clock import Clock
    from kcp.meta.codec import Object
    from kcp.registry.catalogue import Catalogue
    from kcp.registry.resource import Resource
    from kcp.store import Record, Store

NAMESPACES = ResourceKey("", "namespaces")


class Registry:
    """Handed to every verb."""

    def __init__(
        self, store: Store, catalogue: Catalogue, *, chain: Chain, authorizer: Authorizer, clock: Clock
    ) -> None:
        self.store = store
        self.catalogue = catalogue
        self.chain = chain
        self.authorizer = authorizer
        self.clock = clock

    def context(self, cluster: str, user: UserInfo) -> WriteContext:
        def authorize(verb: str, group: str, resource: str, subresource: str, namespace: str, name: str) -> bool:
            question = Question(
                user,
                verb,
                cluster,
                group=group,
                version="*",
                resource=resource,
                subresource=subresource,
                namespace=namespace,
                name=name,
            )
            return self.authorizer.authorize(question).allowed

        return WriteContext(cluster, user, self.clock.now(), authorize)

    def namespace_record(self, cluster: str, namespace: str) -> Record | None:
        return self.store.get(ObjectKey(NAMESPACES, cluster, "", namespace))


def key_of(resource: Resource, cluster: str, namespace: str, name: str) -> ObjectKey:
    return ObjectKey(resource.key, cluster, namespace if resource.namespaced else "", name)


def read_object(resource: Resource, record: Record) -> Object:
    """The object in the resource's version. The caller may change it."""
    obj: Object = codec.loads_own(record.body)
    return obj if resource.from_storage is None else resource.from_storage(obj)


class StoreReader:
    """Local reads for authorization and admission."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, cluster: str, group: str, resource: str, namespace: str, name: str) -> Object | None:
        record = self._store.get(ObjectKey(ResourceKey(group, resource), cluster, namespace, name))
        if record is None:
            return None
        obj: Object = codec.loads_own(record.body)
        return obj

    def list(self, cluster: str, group: str, resource: str, namespace: str | None = None) -> list[Object]:
        page = self._store.range(Scope(ResourceKey(group, resource), cluster, namespace))
        return [codec.loads_own(body) for body in page.bodies()]
