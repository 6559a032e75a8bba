"""What admission asks of the catalogue: versions of a resource, conversions between them, the resource of a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.meta import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind, GroupVersionResource
    from kcp.registry.catalogue import Catalogue
    from kcp.registry.resource import Resource


class CatalogueKinds:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._builtin = {resource.gvk: resource for resource in catalogue.builtin()}

    def equivalents(
        self, cluster: str, gvr: GroupVersionResource
    ) -> Sequence[tuple[GroupVersionResource, GroupVersionKind]]:
        """The other versions, and other groups, under which the same objects are served."""
        resource = self._catalogue.find(cluster, gvr)
        if resource is None:
            return ()
        if resource.custom:
            versions = self._catalogue.versions(cluster, gvr.group, gvr.resource)
            return [(each.gvr, each.gvk) for each in versions.values() if each.gvr != gvr]
        return [(each.gvr, each.gvk) for each in self._builtin.values() if each.key == resource.key and each.gvr != gvr]

    def convert(self, cluster: str, obj: Object, gvk: GroupVersionKind) -> Object:
        """The object in another version of its kind. Raises StatusError."""
        target = self._find(cluster, gvk)
        if obj.get("apiVersion") == gvk.api_version:
            return obj
        if not target.custom and target.from_storage is None:
            source = next((each for each in self._builtin.values() if each.key == target.key and each.to_storage), None)
            return {**obj, "apiVersion": gvk.api_version} if source is None else _stored(source, obj)
        return target.from_storage(obj) if target.from_storage else {**obj, "apiVersion": gvk.api_version}

    def decode(self, cluster: str, obj: Object, gvk: GroupVersionKind) -> Object:
        """An object as if a client had sent it: decoded, pruned and defaulted. Raises StatusError or ValueError."""
        resource = self._find(cluster, gvk)
        decoded = resource.decode(obj, None)
        resource.strategy.default(decoded)
        return decoded

    def resource_for(self, cluster: str, gvk: GroupVersionKind) -> tuple[GroupVersionResource, bool] | None:
        """The resource of a kind and whether it is namespaced; None if nothing serves the kind."""
        found = self._lookup(cluster, gvk)
        return None if found is None else (found.gvr, found.namespaced)

    def _find(self, cluster: str, gvk: GroupVersionKind) -> Resource:
        found = self._lookup(cluster, gvk)
        if found is None:
            raise errors.NotFound.with_message(f"no kind {gvk} is served here")
        return found

    def _lookup(self, cluster: str, gvk: GroupVersionKind) -> Resource | None:
        found = self._builtin.get(gvk)
        if found is not None:
            return found
        for versions in self._catalogue.custom(cluster):
            candidate = versions.get(gvk.version)
            if candidate is not None and candidate.gvk == gvk:
                return candidate
        return None


def _stored(source: Resource, obj: Object) -> Object:
    assert source.to_storage is not None
    return source.to_storage(obj)
