"""The resources built into every logical cluster, as discovery describes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kcp.apis.embedded import read_data
from kcp.meta.gvk import GroupVersion, GroupVersionKind, GroupVersionResource, parse_group_version

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Subresource:
    """What stands behind an object's name: `status`, `token`, and so on."""

    name: str
    gvk: GroupVersionKind
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of one group version."""

    gvr: GroupVersionResource
    gvk: GroupVersionKind
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_version_hash: str = ""  # empty if nothing is stored
    subresources: Mapping[str, Subresource] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.gvk.kind

    @property
    def list_kind(self) -> str:
        return f"{self.gvk.kind}List"

    @property
    def is_stored(self) -> bool:
        return bool(self.storage_version_hash)


def _read() -> tuple[Resource, ...]:
    resources = []
    for text, entries in read_data("zz_resources.json")["groupVersions"].items():
        group_version = parse_group_version(text)
        below: dict[str, dict[str, Subresource]] = {}
        for entry in entries:
            parent, slash, name = entry["name"].partition("/")
            if slash:
                gvk = _gvk_of(entry, group_version)
                below.setdefault(parent, {})[name] = Subresource(name, gvk, tuple(entry["verbs"]))
        resources += [_make(entry, group_version, below) for entry in entries if "/" not in entry["name"]]
    return tuple(resources)


def _make(
    entry: dict[str, Any], group_version: GroupVersion, below: Mapping[str, Mapping[str, Subresource]]
) -> Resource:
    return Resource(
        gvr=group_version.with_resource(entry["name"]),
        gvk=_gvk_of(entry, group_version),
        singular=entry["singularName"],
        namespaced=entry["namespaced"],
        verbs=tuple(entry["verbs"]),
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        storage_version_hash=entry.get("storageVersionHash", ""),
        subresources=below.get(entry["name"], {}),
    )


def _gvk_of(entry: dict[str, Any], group_version: GroupVersion) -> GroupVersionKind:
    return GroupVersionKind(
        entry.get("group", group_version.group), entry.get("version", group_version.version), entry["kind"]
    )


# In the order in which discovery lists their groups.
RESOURCES: Final = _read()
# Each group has the one version, which is thereby the preferred one.
GROUP_VERSIONS: Final = tuple(dict.fromkeys(resource.gvr.group_version for resource in RESOURCES))
BY_GVR: Final = {resource.gvr: resource for resource in RESOURCES}
BY_GVK: Final = {resource.gvk: resource for resource in RESOURCES}
