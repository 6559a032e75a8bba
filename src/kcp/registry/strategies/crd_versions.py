"""What a definition says about its versions, and what discovery tells of them."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

from kcp.meta.gvk import version_rank

if TYPE_CHECKING:
    from kcp.meta.codec import Object

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
