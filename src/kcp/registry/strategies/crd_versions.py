"""What a definition says about its versions, and what discovery tells of them."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

from kcp.meta.gvk import GroupVersionKind, version_rank
from kcp.registry.strategies.crd_names import TERMINATING, is_condition_true

if TYPE_CHECKING:
    from kcp.meta.codec import Object

_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_TERMINATING_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")
_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")
_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_HASH_BYTES: Final = 8


def find_version(crd: Object, version: str) -> Object:
    """The settings of a version. Raises KeyError."""
    for settings in crd["spec"]["versions"]:
        if settings["name"] == version:
            found: Object = settings
            return found
    raise KeyError(version)


def storage_version(crd: Object) -> str:
    """The version that objects are stored in."""
    return next(str(settings["name"]) for settings in crd["spec"]["versions"] if settings.get("storage"))


def served_versions(crd: Object) -> list[str]:
    """The versions that clients may ask for, the preferred one first."""
    names = [str(settings["name"]) for settings in crd["spec"]["versions"] if settings.get("served")]
    return sorted(names, key=version_rank)


def deprecation_warning(crd: Object, version: str) -> str:
    """What to tell clients of a deprecated version; empty for one that is not."""
    settings, spec = find_version(crd, version), crd["spec"]
    if not settings.get("deprecated"):
        return ""
    if settings.get("deprecationWarning") is not None:
        return str(settings["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    better = [
        each["name"]
        for each in spec["versions"]
        if each.get("served") and not each.get("deprecated") and version_rank(each["name"]) < version_rank(version)
    ]
    advice = f"; use {group}/{min(better, key=version_rank)} {kind}" if better else ""
    return f"{group}/{version} {kind} is deprecated{advice}"


def storage_version_hash(crd: Object) -> str:
    """What tells clients that objects are stored in another version than before; empty if that one is not served."""
    spec, version = crd["spec"], storage_version(crd)
    if version not in served_versions(crd):
        return ""
    name = f"{spec['group']}/{version}/{spec['names']['kind']}"
    return base64.b64encode(hashlib.sha256(name.encode()).digest()[:_HASH_BYTES]).decode()


def discovery_entries(crd: Object, version: str) -> list[Object]:
    """The resources of a version as APIResource: itself, then its subresources."""
    names: Object = crd["status"]["acceptedNames"]
    namespaced = crd["spec"]["scope"] == "Namespaced"
    main: Object = {
        "name": names["plural"],
        "singularName": names.get("singular", ""),
        "namespaced": namespaced,
        "kind": names["kind"],
        "verbs": list(_verbs_of(crd)),
    }
    main |= {name: names[name] for name in ("shortNames", "categories") if names.get(name)}
    if hashed := storage_version_hash(crd):
        main["storageVersionHash"] = hashed
    entries = [main]
    for name, gvk in _subresources_of(crd, version):
        entry: Object = {"name": f"{names['plural']}/{name}", "singularName": "", "namespaced": namespaced}
        if gvk == _SCALE:
            entry |= {"group": gvk.group, "version": gvk.version}
        entries.append(entry | {"kind": gvk.kind, "verbs": list(_SUBRESOURCE_VERBS)})
    return entries


def discovery_entry(crd: Object, version: str) -> Object:
    """The resource of a version as aggregated discovery has it (APIResourceDiscovery)."""
    names: Object = crd["status"]["acceptedNames"]
    entry: Object = {
        "resource": names["plural"],
        "responseKind": {"group": crd["spec"]["group"], "version": version, "kind": names["kind"]},
        "scope": "Namespaced" if crd["spec"]["scope"] == "Namespaced" else "Cluster",
        "singularResource": names.get("singular", ""),
        "verbs": list(_verbs_of(crd)),
    }
    entry |= {name: names[name] for name in ("shortNames", "categories") if names.get(name)}
    subresources = [
        {"subresource": name, "responseKind": gvk._asdict(), "verbs": list(_SUBRESOURCE_VERBS)}
        for name, gvk in _subresources_of(crd, version)
    ]
    return entry | {"subresources": subresources} if subresources else entry


def _verbs_of(crd: Object) -> tuple[str, ...]:
    return _TERMINATING_VERBS if is_condition_true(crd, TERMINATING) else _VERBS


def _subresources_of(crd: Object, version: str) -> list[tuple[str, GroupVersionKind]]:
    own = GroupVersionKind(crd["spec"]["group"], version, crd["status"]["acceptedNames"]["kind"])
    present: Object = find_version(crd, version).get("subresources") or {}
    return [(name, gvk) for name, gvk in (("status", own), ("scale", _SCALE)) if present.get(name) is not None]
