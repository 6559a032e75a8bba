"""From what the store calls a resource, or an owner reference its kind, to the resource that serves it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kcp.meta import codec
from kcp.meta.gvk import GroupVersionResource, parse_group_version
from kcp.registry.builtin import builtin_resources
from kcp.registry.catalogue import CRDS
from kcp.registry.custom import system_resources
from kcp.store import ObjectKey, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource
    from kcp.store import ResourceKey, Store


@cache
def _builtin_by_key() -> Mapping[ResourceKey, Resource]:
    found: dict[ResourceKey, Resource] = {}
    for resource in (*builtin_resources().values(), *system_resources().values()):
        # Where two groups serve the same objects, the one that stores them as they are is the better one to write with.
        if resource.key not in found or resource.from_storage is None:
            found[resource.key] = resource
    return found


@cache
def _builtin_by_kind() -> Mapping[GroupVersionKind, Resource]:
    return {resource.gvk: resource for resource in (*builtin_resources().values(), *system_resources().values())}


def find_stored(registry: Registry, cluster: str, key: ResourceKey) -> Resource | None:
    """The resource to change stored objects with; None if no definition serves them any more."""
    found = _builtin_by_key().get(key)
    if found is not None or not key.group:
        return found
    record = registry.store.get(ObjectKey(CRDS, cluster, "", f"{key.resource}.{key.group}"))
    if record is None:
        return None
    versions = codec.loads(record.body)["spec"]["versions"]
    for version in sorted(versions, key=lambda each: not each.get("storage")):
        gvr = GroupVersionResource(key.group, version["name"], key.resource)
        found = registry.catalogue.find(cluster, gvr)
        if found is not None and found.key == key:
            return found
    return None


def find_kind(registry: Registry, cluster: str, api_version: str, kind: str) -> Resource | None:
    """The resource that an owner reference names; None if there is no such kind here."""
    try:
        group_version = parse_group_version(api_version)
    except ValueError:
        return None
    gvk = group_version.with_kind(kind)
    found = _builtin_by_kind().get(gvk)
    if found is not None or not gvk.group:
        return found
    # Nearly every plural is formed so, and one look-up is cheaper than a look at every definition.
    guess = registry.catalogue.find(cluster, group_version.with_resource(f"{kind.lower()}s"))
    if guess is not None and guess.gvk == gvk:
        return guess
    return next((each for each in _served(registry, cluster) if each.gvk == gvk), None)


def _served(registry: Registry, cluster: str) -> Iterable[Resource]:
    for versions in registry.catalogue.custom(cluster):
        yield from versions.values()


def count_stored(store: Store, key: ResourceKey, cluster: str | None = None, namespace: str | None = None) -> int:
    """How many objects of a resource there are. Without a namespace it is a look-up, with one a walk over keys."""
    return store.count(Scope(key, cluster, namespace))


def list_definitions(store: Store, cluster: str, group: str) -> list[Object]:
    """The CustomResourceDefinitions of one group. Definitions are large: those of other groups are not even parsed."""
    records = store.range(Scope(CRDS, cluster)).records()
    return [codec.loads(record.body) for record in records if record.key.name.endswith(f".{group}")]
