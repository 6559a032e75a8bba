"""One write, as admission plugins see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcp.auth.user import UserInfo
    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind, GroupVersionResource


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(slots=True)
class Attributes:
    """`obj` is the new object (None on delete) and may be changed in place, or replaced, by mutating plugins."""

    operation: Operation
    cluster: str
    gvr: GroupVersionResource
    gvk: GroupVersionKind
    namespace: str  # empty for a cluster-scoped resource; for a namespace itself, its own name
    name: str  # empty on create with generateName until the name was made
    user: UserInfo
    obj: Object | None = None
    old_obj: Object | None = None
    subresource: str = ""
    options: Object = field(default_factory=dict)  # CreateOptions, UpdateOptions, PatchOptions or DeleteOptions
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)  # sent to the client as Warning headers
    annotations: dict[str, str] = field(default_factory=dict)  # for the audit log
