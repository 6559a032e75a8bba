"""Server-side apply: an object becomes what its managers want it to be, each for the fields it applies.

The steps of one apply: check the configuration against the schema; merge it into the live object; take out what this
manager applied before, does not apply now and nobody else owns; see whose fields that changes and refuse, or force;
note the new owner. Must not default or validate by the rules of the kind: who calls does that with the result.
"""

from datetime import datetime
from typing import NamedTuple

from kcp.meta.clock import format_time
from kcp.meta.codec import Object
from kcp.meta.errors import BadRequest, Conflict, StatusCause, StatusError
from kcp.meta.gvk import GroupVersionKind, parse_gvk
from kcp.patch import last_applied
from kcp.patch.comparison import SchemaError, changed_fields, owned_fields
from kcp.patch.field_set import (
    Node,
    difference,
    ensure_named_fields,
    intersection,
    recursive_difference,
    union,
)
from kcp.patch.go_values import equal
from kcp.patch.managed_fields import (
    Write,
    WriteScope,
    empty_object,
    reconcile,
    record_update,
    strip,
    take_from_others,
    without_managers,
)
from kcp.patch.managers import (
    APPLY,
    UPDATE,
    Managed,
    ManagerKey,
    Managers,
    decode_managers,
    describe_conflicts,
    encode_managers,
)
from kcp.patch.merge_schema import MergeSchema
from kcp.patch.merging import merge, remove_items
from kcp.patch.typed_value import describe_type_errors, find_type_errors

_BEFORE_FIRST_APPLY = "before-first-apply"
_BAD_CONFIG = "failed to create typed patch object ({})"
_BAD_UNMANAGED = "failed to create manager for existing fields: failed to convert new object ({}) to smd typed"
_BAD_LIVE = "failed to create typed live object ({})"


class _Conflicts(Exception):
    def __init__(self, conflicts: dict[ManagerKey, Node]) -> None:
        super().__init__()
        self.conflicts = conflicts


class _Applier(NamedTuple):
    """One apply: what of which manager, when, and whether others' fields may be taken."""

    config: Object
    scope: WriteScope
    key: ManagerKey
    now: str
    force: bool


def apply(
    live: Object | None, config: Object, scope: WriteScope, *, manager: str, now: datetime, force: bool = False
) -> Object:
    """The object after the apply, with its managedFields; a new one if there is none yet. No argument is changed.

    Raises BadRequest if the configuration is of another kind, Conflict if it changes what others own, and StatusError
    (500, as Kubernetes does) if it does not fit the schema.
    """
    key = ManagerKey.of(manager, APPLY, scope.api_version, scope.subresource)
    try:
        return _apply(live, _Applier(config, scope, key, format_time(now), force))
    except _Conflicts as error:
        message, causes = describe_conflicts(error.conflicts)
        raise Conflict.with_message(
            message, details={}, causes=[StatusCause("FieldManagerConflict", *cause) for cause in causes]
        ) from None
    except SchemaError as error:
        raise StatusError(f"failed to merge config: {error}") from None
    except RecursionError:
        raise StatusError("failed to merge config: the object is nested too deeply") from None


def _apply(live: Object | None, applier: _Applier) -> Object:
    _check_config(applier)
    schema = applier.scope.schema
    live = empty_object(schema, applier.config) if live is None else live
    metadata = live.get("metadata")
    try:
        managers = decode_managers(metadata.get("managedFields") if isinstance(metadata, dict) else None)
    except ValueError as error:
        raise StatusError(f"failed to decode managed fields: {error}") from None
    live = without_managers(live)
    if managers:
        _check_types(applier.config, schema, _BAD_CONFIG, allow_duplicates=False)
        _check_types(live, schema, _BAD_LIVE, allow_duplicates=True)
    else:
        _check_types(live, schema, _BAD_UNMANAGED, allow_duplicates=True)
        managers = _managers_before_first_apply(live, applier)
        _check_types(applier.config, schema, _BAD_CONFIG, allow_duplicates=False)
    is_kubectl = applier.key.manager == last_applied.MANAGER
    try:
        applied = _merge_and_own(live, managers, applier)
    except _Conflicts as error:
        if not is_kubectl:
            raise
        conflicts = last_applied.without_allowed(error.conflicts, live, applier.scope.api_version, schema)
        if conflicts:
            raise _Conflicts(conflicts) from None
        applied = _merge_and_own(live, managers, applier._replace(force=True))
    if is_kubectl:
        last_applied.renew(applied, applier.config)
    return applied


def _check_config(applier: _Applier) -> None:
    gvk = _gvk_of(applier.config)
    if gvk != applier.scope.gvk:
        raise BadRequest(f"invalid object type: {gvk}")
    metadata = applier.config.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
        raise BadRequest("metadata.managedFields must be nil")


def _check_types(obj: Object, schema: MergeSchema, complaint: str, *, allow_duplicates: bool) -> None:
    """See that an object fits the schema; a stored one need not, if the schema has changed since."""
    errors = find_type_errors(schema, obj, allow_duplicates=allow_duplicates)
    if errors:
        raise StatusError(f"{complaint.format(_identify(obj))}: {describe_type_errors(errors)}")


def _managers_before_first_apply(live: Object, applier: _Applier) -> Managers:
    """An object that nobody manages yet is owned by whoever wrote it, so that an apply does not take it unasked."""
    scope = applier.scope
    key = ManagerKey.of(_BEFORE_FIRST_APPLY, UPDATE, scope.api_version, scope.subresource)
    return record_update({}, Write(empty_object(scope.schema, live), live, scope), key, applier.now)


def _merge_and_own(live: Object, managers: Managers, applier: _Applier) -> Object:
    config, scope, key, now, force = applier
    managers = reconcile(managers, live, scope)
    merged = merge(scope.schema, live, config)
    last = managers.get(key)
    fields = owned_fields(scope.schema, config)
    if scope.reset_fields:
        fields = recursive_difference(fields, scope.reset_fields.fields)
    managers[key] = Managed(fields, scope.api_version, last.time if last is not None else "")
    if last is not None:
        merged = _prune(merged, managers, last, fields, scope)
    write = Write(live, merged, scope)
    if not force:
        _refuse_conflicts(managers, write, key)
    managers = take_from_others(managers, write, but=key)
    _settle(managers, key, now if not equal(live, merged) else None)
    metadata = merged.setdefault("metadata", {})
    if managers and isinstance(metadata, dict):
        metadata["managedFields"] = encode_managers(managers)
    return merged


def _refuse_conflicts(managers: Managers, write: Write, key: ManagerKey) -> None:
    conflicts: dict[ManagerKey, Node] = {}
    for other, managed in managers.items():
        if other == key or not write.scope.knows(managed.api_version):
            continue
        comparison = write.comparison(managed.api_version)
        if comparison is not None and (taken := intersection(managed.fields, changed_fields(comparison))):
            conflicts[other] = taken
    if conflicts:
        raise _Conflicts(conflicts)


def _settle(managers: Managers, key: ManagerKey, now: str | None) -> None:
    """Write down what the applier owns now, if anything. Its time is that of the last apply that changed the object."""
    managed = managers.pop(key)
    fields = strip(managed.fields)
    if fields:
        managers[key] = managed._replace(fields=fields, time=managed.time if now is None else now)


def _prune(merged: Object, managers: Managers, last: Managed, fields: Node, scope: WriteScope) -> Object:
    """The merged object without what the manager applied last time and now neither it nor anybody else wants.

    The road is long because taking out an item of a list takes along all that is in it: first everything that was
    applied goes, then what has an owner comes back, then what was not applied by this manager in the first place.
    """
    same_version = last.api_version == scope.api_version
    if same_version and not difference(last.fields, fields):
        return merged
    converted = scope.convert(merged, last.api_version)
    if converted is None:
        return merged
    whole, schema = converted
    before = ensure_named_fields(last.fields, schema)
    pruned = remove_items(schema, whole, before) or {}
    pruned = _add_back_owned(whole, pruned, managers, last.api_version, scope)
    rest = scope.convert(pruned, last.api_version)
    if rest is None:
        return merged
    pruned = rest[0]
    kept = ensure_named_fields(owned_fields(schema, pruned), schema)
    everything = ensure_named_fields(owned_fields(schema, whole), schema)
    pruned = remove_items(schema, whole, intersection(difference(everything, kept), before)) or {}
    if same_version:
        return pruned
    back = scope.convert(pruned, scope.api_version)
    return merged if back is None else back[0]


def _add_back_owned(whole: Object, pruned: Object, managers: Managers, first: str, scope: WriteScope) -> Object:
    """The pruned object with all that has an owner, version by version; the result may be in any of them."""
    owned: dict[str, Node] = {first: {}}
    for managed in managers.values():
        owned[managed.api_version] = union(owned.get(managed.api_version, {}), managed.fields)
    for api_version, fields in owned.items():
        ours, theirs = scope.convert(whole, api_version), scope.convert(pruned, api_version)
        if ours is None or theirs is None:
            continue
        (everything, schema), (rest, _) = ours, theirs
        kept = union(ensure_named_fields(owned_fields(schema, rest), schema), ensure_named_fields(fields, schema))
        gone = difference(ensure_named_fields(owned_fields(schema, everything), schema), kept)
        pruned = remove_items(schema, everything, gone) or {}
    return pruned


def _gvk_of(config: Object) -> GroupVersionKind:
    api_version, kind = config.get("apiVersion"), config.get("kind")
    try:
        return parse_gvk(api_version if isinstance(api_version, str) else "", kind if isinstance(kind, str) else "")
    except ValueError:
        return GroupVersionKind("", "", "")


def _identify(obj: Object) -> str:
    metadata = obj.get("metadata")
    namespace, name = (metadata.get("namespace"), metadata.get("name")) if isinstance(metadata, dict) else ("", "")
    return f"{namespace if isinstance(namespace, str) else ''}/{name if isinstance(name, str) else ''}; {_gvk_of(obj)}"
