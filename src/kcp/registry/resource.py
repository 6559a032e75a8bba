"""One resource as one logical cluster serves it in one version: its names, its rules and how its objects are kept."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcp.patch.managed_fields import WriteScope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource
    from kcp.patch.field_set import FieldSet
    from kcp.patch.merge_schema import MergeSchema
    from kcp.registry.strategy import Strategy
    from kcp.registry.tables import TableConvertor
    from kcp.store import ResourceKey

    # Makes of any JSON object one of this kind, as Go's typed decoder would; fields it does not know go to the list.
    Decode = Callable[[Object, list[str] | None], Object]
    ConvertManaged = Callable[[Object, str], tuple[Object, MergeSchema] | None]
    Convert = Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Subresource:
    """`status` and the like store the object itself under other rules; `scale` and `token` answer another kind."""

    name: str
    gvk: GroupVersionKind
    verbs: frozenset[str]
    strategy: Strategy | None = None  # set when it stores the object itself
    reset_fields: FieldSet | None = None
    decode: Decode | None = None  # of another kind's bodies
    scale: ScaleAccess | None = None


@dataclass(frozen=True, slots=True)
class ScaleAccess:
    """How a `scale` subresource reads and writes the replicas of its object."""

    read: Callable[[Object], Object]
    write: Callable[[Object, Object], None]


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    gvr: GroupVersionResource
    gvk: GroupVersionKind
    list_kind: str
    singular: str
    namespaced: bool
    verbs: frozenset[str]
    key: ResourceKey
    """What the store calls it; versions of one resource share it, as do groups that serve the same objects."""

    strategy: Strategy
    decode: Decode
    convertor: TableConvertor
    schema_of: Callable[[], MergeSchema]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    reset_fields: FieldSet | None = None
    from_storage: Convert | None = None
    """Makes of a stored object one of this version. None: the stored bytes are this version's."""

    to_storage: Convert | None = None
    convert: ConvertManaged | None = None
    """Leads to the other versions, for managed fields that were written in them."""

    custom: bool = False
    """Defined by a CustomResourceDefinition."""

    can_protobuf: bool = False
    storage_version_hash: str = ""
    body_prefix: bytes = b""
    """What every stored body starts with, so that a list can leave it out. Empty: its items keep their type."""

    invalid_kind: GroupKind | None = None
    """What errors call the kind, where that is not its name."""

    deprecation: str = ""
    """Warns every client that uses this version."""

    serial: int = field(default_factory=itertools.count(1).__next__)
    """Tells resources apart, also those of one definition before and after a change of it."""

    _scopes: dict[str, WriteScope] = field(default_factory=dict)

    group_resource: GroupResource = field(init=False)
    group_kind: GroupKind = field(init=False)
    group_version: GroupVersion = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "group_resource", self.gvr.group_resource)
        object.__setattr__(self, "group_kind", self.gvk.group_kind)
        object.__setattr__(self, "group_version", self.gvr.group_version)

    def write_scope(self, subresource: str = "") -> WriteScope:
        """How managed fields are tracked for writes through this endpoint."""
        scope = self._scopes.get(subresource)
        if scope is None:
            reset = self.subresources[subresource].reset_fields if subresource else self.reset_fields
            scope = WriteScope(
                self.gvk, self.schema_of(), subresource=subresource, reset_fields=reset, convert=self.convert
            )
            self._scopes[subresource] = scope
        return scope

    @property
    def api_version(self) -> str:
        return self.gvk.api_version
