"""Who owns which field after a write that is not an apply: create, update and every kind of patch but apply.

Whatever the write changed now belongs to its manager, and to nobody else; what it removed belongs to nobody. A manager
that is left without fields is dropped. Must not fail: if the managers cannot be told, the object has none, as in
Kubernetes.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeAlias

from kcp.meta.clock import format_time
from kcp.meta.codec import Object
from kcp.meta.gvk import GroupVersionKind
from kcp.patch.comparison import Comparison, SchemaError, changed_fields, compare
from kcp.patch.field_set import FieldSet, Node, difference, recursive_difference, union
from kcp.patch.go_values import equal
from kcp.patch.managers import (
    UPDATE,
    Managed,
    ManagerKey,
    Managers,
    cap_update_managers,
    decode_managers,
    encode_managers,
    is_reset,
    same_but_times,
)
from kcp.patch.merge_schema import MergeSchema

Convert: TypeAlias = Callable[[Object, str], tuple[Object, MergeSchema] | None]
"""Turns an object into another version, an apiVersion, and gives that version's schema; None if there is none."""

# What is the server's business is owned by nobody.
_SERVER_FIELDS: Final = FieldSet.of(
    ["apiVersion"],
    ["kind"],
    ["metadata"],
    ["metadata", "name"],
    ["metadata", "namespace"],
    ["metadata", "creationTimestamp"],
    ["metadata", "selfLink"],
    ["metadata", "uid"],
    ["metadata", "clusterName"],
    ["metadata", "generation"],
    ["metadata", "managedFields"],
    ["metadata", "resourceVersion"],
).fields


class WriteScope:
    """The endpoint that writes go through; make one for each and keep it.

    `reset_fields` are those that the endpoint ignores, such as status. `convert` leads to the other versions of the
    kind; without it, managers that wrote in other versions are left alone.
    """

    __slots__ = ("_convert", "api_version", "gvk", "reset_fields", "schema", "subresource")

    def __init__(
        self,
        gvk: GroupVersionKind,
        schema: MergeSchema,
        *,
        subresource: str = "",
        reset_fields: FieldSet | None = None,
        convert: Convert | None = None,
    ) -> None:
        self.gvk = gvk
        self.api_version = gvk.api_version
        self.schema = schema
        self.subresource = subresource
        self.reset_fields = reset_fields
        self._convert = convert

    def knows(self, api_version: str) -> bool:
        """Whether we can look at objects in this version. Without a converter, others are none of our business."""
        return self._convert is not None or api_version == self.api_version

    def convert(self, obj: Object, api_version: str) -> tuple[Object, MergeSchema] | None:
        """The object in this version, with its schema; None if there is no such version any more."""
        if api_version == self.api_version and (self._convert is None or obj.get("apiVersion") == api_version):
            return obj, self.schema
        return self._convert(obj, api_version) if self._convert is not None else None


def update_managed_fields(live: Object | None, new: Object, scope: WriteScope, *, manager: str, now: datetime) -> None:
    """Set new["metadata"]["managedFields"], or remove it if nobody manages anything. `live` is None on create.

    Nothing else is changed, but the result shares parts with the managedFields of `live`.
    """
    metadata = new.get("metadata")
    if not isinstance(metadata, dict):
        return
    given = metadata.pop("managedFields", None)
    managers = _managers_before(live, given, scope.subresource)
    if live is not None and not managers and _has_uid(live):
        return  # an object whose managers were cleared is not tracked until it is applied
    key = ManagerKey.of(manager or "unknown", UPDATE, scope.api_version, scope.subresource)
    write = Write(empty_object(scope.schema, new) if live is None else live, new, scope)
    try:
        managers = record_update(managers, write, key, format_time(now))
    except (SchemaError, RecursionError):
        return
    entries = encode_managers(managers)
    if entries:
        metadata["managedFields"] = entries


class Write:
    """One write: the object before and after it, in the version of the endpoint."""

    __slots__ = ("_comparisons", "new", "old", "scope")

    def __init__(self, old: Object, new: Object, scope: WriteScope) -> None:
        self.old = without_managers(old)
        self.new = without_managers(new)
        self.scope = scope
        self._comparisons: dict[str, Comparison | None] = {}

    def comparison(self, api_version: str) -> Comparison | None:
        """What the write changed, but for fields that the endpoint ignores; None if there is no such version.

        Raises SchemaError.
        """
        if api_version not in self._comparisons:
            old, new = self.scope.convert(self.old, api_version), self.scope.convert(self.new, api_version)
            self._comparisons[api_version] = self._compare(old[1], old[0], new[0]) if old and new else None
        return self._comparisons[api_version]

    def _compare(self, schema: MergeSchema, old: Object, new: Object) -> Comparison:
        comparison = compare(schema, old, new)
        ignored = self.scope.reset_fields
        if not ignored:
            return comparison
        return Comparison(*(recursive_difference(fields, ignored.fields) for fields in comparison))


def record_update(managers: Managers, write: Write, key: ManagerKey, now: str) -> Managers:
    """The managers after a write by this one. Raises SchemaError."""
    api_version = write.scope.api_version
    managers = take_from_others(reconcile(managers, write.old, write.scope), write)
    comparison = write.comparison(api_version)
    owned = strip(changed_fields(comparison)) if comparison is not None else {}
    if owned:
        previous = managers.get(key)
        managers[key] = Managed(owned if previous is None else union(owned, previous.fields), api_version, now)
    cap_update_managers(managers)
    return managers


def take_from_others(managers: Managers, write: Write, but: ManagerKey | None = None) -> Managers:
    """The managers without what the write changed or removed; `but` is the one that made it and keeps all."""
    kept: Managers = {}
    for key, managed in managers.items():
        if key == but or not write.scope.knows(managed.api_version):
            kept[key] = managed
            continue
        comparison = write.comparison(managed.api_version)
        if comparison is None:
            continue
        fields = difference(difference(managed.fields, changed_fields(comparison)), comparison.removed)
        if fields:
            kept[key] = managed if fields is managed.fields else managed._replace(fields=fields)
    return kept


def reconcile(managers: Managers, live: Object, scope: WriteScope) -> Managers:
    """The managers as the schema is today: below what has become atomic since there is nothing to own."""
    reconciled: Managers = {}
    for key, managed in managers.items():
        if not scope.knows(managed.api_version):
            reconciled[key] = managed
            continue
        converted = scope.convert(live, managed.api_version)
        if converted is None:
            continue
        fields = _reconcile(managed.fields, converted[1])
        reconciled[key] = managed if fields is managed.fields else managed._replace(fields=fields)
    return reconciled


def strip(fields: Node) -> Node:
    """These fields without those that are the server's business."""
    return difference(fields, _SERVER_FIELDS)


def empty_object(schema: MergeSchema, like: Object) -> Object:
    """What is there before an object is: one of its kind of which nothing is set, as Go writes it.

    Not of every null that Go writes does the schema know, but then it is in the object that is there as well.
    """
    empty = _with_nulls(schema.empty, like) if schema.empty else {}
    return {"apiVersion": like.get("apiVersion"), "kind": like.get("kind"), **empty}


def without_managers(obj: Object) -> Object:
    """The object without its managedFields, which are owned by nobody and too large to be compared for nothing."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def ignore_timestamps(new: Object, old: Object) -> None:
    """Put the old times back if they are all that changed, so that a write which does nothing stores nothing."""
    ours, theirs = _entries_of(new), _entries_of(old)
    if not ours or not theirs or ours == theirs or not same_but_times(ours, theirs):
        return
    if equal(without_managers(new), without_managers(old)):
        new["metadata"]["managedFields"] = theirs


def find_managed_fields_error(entries: Any) -> str:  # noqa: ANN401 - whatever admission made of it
    """Why these entries of managedFields are not valid; empty if they are."""
    try:
        decode_managers(entries)
    except ValueError as error:
        return str(error)
    return ""


def _managers_before(live: Object | None, given: Any, subresource: str) -> Managers:  # noqa: ANN401
    """The managers that the write starts from. A client may set them, but not break them, nor through a subresource."""
    stored = _entries_of(live) if live is not None else None
    if not subresource and given is not None and given != stored:
        if is_reset(given):
            return {}
        managers = _decode_or_none(given)
        if managers:
            return managers
    return _decode_or_none(stored)


def _decode_or_none(entries: Any) -> Managers:  # noqa: ANN401
    try:
        return decode_managers(entries)
    except (ValueError, RecursionError):
        return {}


def _reconcile(node: Node, schema: MergeSchema) -> Node:
    """The node itself if there is nothing to change, which is nearly always."""
    changed: Node = {}
    for element, child in node.items():
        if not child:
            continue  # has nothing below it, whatever it is
        below = _child_schema(schema, element)
        if below is None or below.is_deduced:
            continue
        if below.is_map_atomic if below.is_map else below.is_list_atomic and below.scalar is None:
            changed[element] = {}
        elif (fields := _reconcile(child, below)) is not child:
            changed[element] = fields
    return {**node, **changed} if changed else node


def _child_schema(schema: MergeSchema, element: str) -> MergeSchema | None:
    if schema.is_map:
        return schema.fields.get(element[2:], schema.element) if element[0] == "f" else schema.element
    return schema.item if schema.is_list and schema.scalar is None else None


def _entries_of(obj: Object) -> Any:  # noqa: ANN401
    metadata = obj.get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None


def _with_nulls(empty: Object, like: Object) -> Object:
    filled = {
        key: _with_nulls(value, like[key])
        for key, value in empty.items()
        if isinstance(like.get(key), dict) and isinstance(value, dict)
    }
    return {key: None for key, value in like.items() if value is None} | empty | filled


def _has_uid(obj: Object) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("uid"))
