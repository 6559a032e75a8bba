"""Refusals in the words that all plugins share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.meta import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.admission.attributes import Attributes


def name_of(a: Attributes) -> str:
    """What to call the object: it may have no name yet when one is to be generated."""
    if a.name:
        return a.name
    metadata = (a.obj or {}).get("metadata") or {}
    return str(metadata.get("name") or metadata.get("generateName") or "Unknown")


def forbidden(a: Attributes, why: str, *, causes: Iterable[errors.StatusCause] = ()) -> errors.Forbidden:
    """Kubernetes' admission.NewForbidden."""
    return errors.Forbidden(a.gvr.group_resource, name_of(a), why, causes=causes)
