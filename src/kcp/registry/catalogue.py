"""What exists in which logical cluster: the built-in resources, and those its CustomResourceDefinitions define.

Nothing is kept per cluster. A definition is looked up in the store when it is asked for, and what was compiled of it
is kept in one bounded cache, by the definition's uid and revision, so a change is seen by the next request.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from kcp.meta import codec
from kcp.registry.builtin import builtin_resources, known_kinds
from kcp.registry.custom import compile_definition, system_resources
from kcp.store import ObjectKey, ResourceKey, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.meta.gvk import GroupVersionResource
    from kcp.registry.resource import Resource
    from kcp.store import Record, Store

CRDS: Final = ResourceKey("apiextensions.k8s.io", "customresourcedefinitions")
LOGICAL_CLUSTERS: Final = ResourceKey("core.kcp.io", "logicalclusters")
LOGICAL_CLUSTER_NAME: Final = "cluster"
MAX_COMPILED: Final = 2048


class Catalogue:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._builtin = {**builtin_resources(), **system_resources()}
        self._compiled: OrderedDict[tuple[str, str, int], dict[str, Resource]] = OrderedDict()
        self.known_kinds = known_kinds()

    def has_cluster(self, cluster: str) -> bool:
        """Whether the logical cluster exists; nothing else brings one into being."""
        return self._store.get(ObjectKey(LOGICAL_CLUSTERS, cluster, "", LOGICAL_CLUSTER_NAME)) is not None

    def find(self, cluster: str, gvr: GroupVersionResource) -> Resource | None:
        found = self._builtin.get(gvr)
        if found is not None:
            return found
        group, version, resource = gvr
        if not group or cluster == "*" or not resource or "/" in resource or len(resource) > 253:
            return None
        return self.versions(cluster, group, resource).get(version)

    def versions(self, cluster: str, group: str, resource: str) -> dict[str, Resource]:
        """What the definition of a custom resource serves; nothing without one."""
        record = self._store.get(ObjectKey(CRDS, cluster, "", f"{resource}.{group}"))
        return {} if record is None else self._versions(record)

    def custom(self, cluster: str) -> list[dict[str, Resource]]:
        """What each definition of a cluster serves, by version."""
        page = self._store.range(Scope(CRDS, cluster))
        return [versions for record in page.records() if (versions := self._versions(record))]

    def builtin(self) -> Iterable[Resource]:
        return self._builtin.values()

    def custom_revision(self, cluster: str) -> tuple[tuple[str, int], ...]:
        """Names and revisions of a cluster's definitions: what discovery documents depend on."""
        page = self._store.range(Scope(CRDS, cluster))
        return tuple((record.key.name, int(record.revision)) for record in page.records())

    def _versions(self, record: Record) -> dict[str, Resource]:
        key = (record.key.cluster, record.key.name, int(record.revision))
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = compile_definition(codec.loads(record.body))
            if len(self._compiled) > MAX_COMPILED:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(key)
        return compiled
