"""What the objects of a logical cluster configure admission with, worked out once and kept until they change."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind, GroupVersionResource

_T = TypeVar("_T")

GROUP: Final = "admissionregistration.k8s.io"


class Kinds(Protocol):
    """What admission asks of the catalogue of a logical cluster."""

    def equivalents(
        self, cluster: str, gvr: GroupVersionResource
    ) -> Sequence[tuple[GroupVersionResource, GroupVersionKind]]:
        """The other versions, and other groups, under which the same objects are served."""
        ...

    def convert(self, cluster: str, obj: Object, gvk: GroupVersionKind) -> Object:
        """The object in another version of its kind. Raises StatusError."""
        ...

    def decode(self, cluster: str, obj: Object, gvk: GroupVersionKind) -> Object:
        """An object that a webhook or a policy changed, as if a client had sent it: decoded, pruned and defaulted.

        Raises StatusError or ValueError.
        """
        ...

    def resource_for(self, cluster: str, gvk: GroupVersionKind) -> tuple[GroupVersionResource, bool] | None:
        """The resource of a kind and whether it is namespaced; None if nothing serves the kind."""
        ...


class Configurations(Generic[_T]):
    """A value for each logical cluster, made when it is first asked for. The least used ones are dropped."""

    def __init__(self, resources: Iterable[tuple[str, str]], make: Callable[[str], _T], limit: int = 65536) -> None:
        self._resources = frozenset(resources)
        self._make = make
        self._limit = limit
        self._values: OrderedDict[str, _T] = OrderedDict()

    def get(self, cluster: str) -> _T:
        values = self._values
        try:
            value = values[cluster]
        except KeyError:
            value = values[cluster] = self._make(cluster)
            if len(values) > self._limit:
                values.popitem(last=False)
        else:
            values.move_to_end(cluster)
        return value

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        """Drop what was made for one logical cluster, or with None for all of them."""
        if (group, resource) not in self._resources:
            return
        if cluster is None:
            self._values.clear()
        else:
            self._values.pop(cluster, None)
