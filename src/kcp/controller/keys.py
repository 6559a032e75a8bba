"""What most controllers queue: the names of objects."""

from __future__ import annotations

from typing import NamedTuple


class ClusterKey(NamedTuple):
    """A cluster-scoped object."""

    cluster: str
    name: str

    def __str__(self) -> str:
        return f"{self.cluster}|{self.name}"


class NamespacedKey(NamedTuple):
    cluster: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.cluster}|{self.namespace}/{self.name}"
