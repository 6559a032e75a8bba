"""What this room needs to read of a logical cluster; the registry implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kcp.meta.codec import Object


class Reader(Protocol):
    """Local reads that never wait. Whoever gets an object must not change it."""

    def get(self, cluster: str, group: str, resource: str, namespace: str, name: str) -> Object | None:
        """The object, or None. `namespace` is empty for a cluster-scoped resource."""
        ...

    def list(self, cluster: str, group: str, resource: str, namespace: str | None) -> list[Object]:
        """All objects of a resource, ordered by namespace and name; None stands for all namespaces."""
        ...
