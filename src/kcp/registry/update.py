"""update, and every kind of patch: read, change, check, commit, and again if someone else was faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.admission.attributes import Operation
from kcp.auth.attributes import Attributes as Question
from kcp.auth.authorizer import forbidden
from kcp.meta import codec, errors, field
from kcp.meta.gotext import quote
from kcp.meta.gvk import GroupKind
from kcp.patch.managed_fields import ignore_timestamps, update_managed_fields
from kcp.registry.bootstrapped import find_bootstrapped, missing
from kcp.registry.create import create
from kcp.registry.errors import MODIFIED, translate
from kcp.registry.metadata import validate_changed_object
from kcp.registry.registry import key_of, read_object
from kcp.registry.writing import (
    ADMITTED_DUPLICATES,
    METADATA,
    SENT_DUPLICATES,
    drop_duplicate_owners,
    encode,
    is_same,
    make_attributes,
    raise_invalid,
    stored_body,
    strategy_for,
)
from kcp.store import Conflict, Delete, Put, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry
    from kcp.registry.request import WriteRequest
    from kcp.registry.resource import Resource
    from kcp.registry.strategy import Strategy, WriteContext
    from kcp.store import Record

    # The object as it shall be, decoded and defaulted, of the one that is there (None: there is none).
    Transform = Callable[[Object | None], Object]

_LAST_VERSION: Final = 2**64 - 1
_LONGEST_VERSION: Final = len(str(_LAST_VERSION))


class Change(NamedTuple):
    """How an update makes the new object."""

    transform: Transform
    may_create: bool = False
    """Server-side apply, and kinds that PUT may create."""

    consumes: bool = False
    """The transform changes the object it is given."""

    sets_managers: bool = False
    """The transform wrote metadata.managedFields itself, as apply does."""

    tracked_as: str = ""
    """The subresource that managers are recorded under, where that is not the one whose rules count."""

    attempts: int = 0
    """How often a lost race is run again; 0 is until it is won."""


class Written(NamedTuple):
    body: bytes
    created: bool = False


async def update(registry: Registry, resource: Resource, request: WriteRequest, change: Change) -> Written:
    """Change one object. Raises NotFound, Conflict, Invalid and whatever the transform raises."""
    key = key_of(resource, request.cluster, request.namespace, request.name)
    attempt = 0
    while True:
        attempt += 1
        record = registry.store.get(key)
        if record is None:
            try:
                return await _create_instead(registry, resource, request, change)
            except errors.AlreadyExists:
                if registry.store.get(key) is None:
                    raise
                continue  # someone else was faster: now there is something to change
        try:
            return Written(await _update_once(registry, resource, request, change, record))
        except Conflict:
            if change.attempts and attempt >= change.attempts:
                raise errors.Conflict(resource.group_resource, request.name, MODIFIED) from None


async def _create_instead(registry: Registry, resource: Resource, request: WriteRequest, change: Change) -> Written:
    key = key_of(resource, request.cluster, request.namespace, request.name)
    if not change.may_create or request.subresource:
        raise missing(registry.store, key, resource.group_resource)
    obj = change.transform(None)
    metadata = obj.setdefault("metadata", {})
    if metadata.get("uid") and not change.sets_managers:
        if find_bootstrapped(registry.store, key) is not None:
            raise missing(registry.store, key, resource.group_resource)
        raise _uid_conflict(resource, request.name, metadata["uid"], "")
    if metadata.get("resourceVersion"):
        raise errors.Conflict(resource.group_resource, request.name, MODIFIED)
    _authorize_create(registry, resource, request)
    manager, request.manager = request.manager, "" if change.sets_managers else request.manager
    try:
        return Written(await create(registry, resource, request, obj), created=True)
    finally:
        request.manager = manager


def _authorize_create(registry: Registry, resource: Resource, request: WriteRequest) -> None:
    """Whoever may only change objects may not bring one into being."""
    gvr = resource.gvr
    question = Question(
        request.user,
        "create",
        request.cluster,
        group=gvr.group,
        version=gvr.version,
        resource=gvr.resource,
        namespace=request.namespace,
        name=request.name,
    )
    decision = registry.authorizer.authorize(question)
    if not decision.allowed:
        raise forbidden(question, decision.reason)


async def _update_once(
    registry: Registry, resource: Resource, request: WriteRequest, change: Change, record: Record
) -> bytes:
    old = read_object(resource, record)
    obj = change.transform(read_object(resource, record) if change.consumes else old)
    strategy = strategy_for(resource, request.subresource)
    _check_address(resource, request, obj)
    _check_preconditions(resource, request, strategy, obj, old, is_replacement=not change.consumes)
    if not change.consumes:  # a patch is looked at once, after admission
        drop_duplicate_owners(obj["metadata"], request.warnings, SENT_DUPLICATES)
    attributes = make_attributes(resource, request, Operation.UPDATE, obj, old)
    context = registry.context(request.cluster, request.user)
    if request.manager and not change.sets_managers:
        scope = resource.write_scope(change.tracked_as or request.subresource)
        update_managed_fields(old, obj, scope, manager=request.manager, now=context.now)
        if change.tracked_as:
            _drop_times(obj["metadata"], change.tracked_as)
    await registry.chain.mutate(attributes)
    obj = attributes.obj or obj
    drop_duplicate_owners(obj["metadata"], request.warnings, ADMITTED_DUPLICATES)
    _carry_over(obj["metadata"], old["metadata"])
    strategy.prepare_for_update(obj, old, context)
    _set_generation(strategy, obj, old)
    _validate(resource, request, strategy, context, obj, old)
    await registry.chain.validate(attributes)
    return await _commit(registry, resource, request, record, obj, old)


def _check_address(resource: Resource, request: WriteRequest, obj: Object) -> None:
    metadata = obj.setdefault("metadata", {})
    name = metadata.get("name", "")
    if name and name != request.name:
        raise errors.BadRequest(f"the name of the object ({name}) does not match the name on the URL ({request.name})")
    metadata["name"] = request.name
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    namespace = metadata.get("namespace", "")
    if namespace and namespace != request.namespace:
        raise errors.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = request.namespace


def _check_preconditions(
    resource: Resource, request: WriteRequest, strategy: Strategy, obj: Object, old: Object, *, is_replacement: bool
) -> None:
    metadata, before = obj["metadata"], old["metadata"]
    uid = metadata.get("uid", "")
    if is_replacement and uid and uid != before.get("uid"):
        raise _uid_conflict(resource, request.name, uid, before.get("uid", ""))
    version = metadata.get("resourceVersion", "")
    if not version.strip("0"):
        if not strategy.allow_unconditional_update:
            path = METADATA.child("resourceVersion")
            problem = field.invalid(path, 0, "must be specified for an update")
            kind = GroupKind(*resource.group_resource)  # upstream takes the one for the other here
            raise errors.Invalid(kind, request.name, [problem])
        return
    if not version.isascii() or not version.isdigit():
        raise errors.StatusError(f"strconv.ParseUint: parsing {quote(version)}: invalid syntax")
    number = version.lstrip("0")
    if len(number) > _LONGEST_VERSION or int(number or "0") > _LAST_VERSION:
        raise errors.StatusError(f"strconv.ParseUint: parsing {quote(version)}: value out of range")
    if number != before["resourceVersion"]:
        raise errors.Conflict(resource.group_resource, request.name, MODIFIED)


def _uid_conflict(resource: Resource, name: str, uid: str, found: str) -> errors.Conflict:
    why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    return errors.Conflict(resource.group_resource, name, why)


def _carry_over(metadata: Object, before: Object) -> None:
    """What no update changes, whatever it sends."""
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in before:
            metadata[name] = before[name]
    if "deletionGracePeriodSeconds" in before and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = before["deletionGracePeriodSeconds"]
    if not metadata.get("uid"):
        metadata["uid"] = before["uid"]
    if "generation" in before:
        metadata["generation"] = before["generation"]
    else:
        metadata.pop("generation", None)
    metadata.pop("selfLink", None)
    metadata["resourceVersion"] = before["resourceVersion"]


def _drop_times(metadata: Object, subresource: str) -> None:
    """What is managed through another kind's endpoint is translated there, and loses its time on the way."""
    entries = metadata.get("managedFields")
    if entries:
        metadata["managedFields"] = [
            {name: value for name, value in entry.items() if name != "time"}
            if entry.get("subresource") == subresource
            else entry
            for entry in entries
        ]


def _set_generation(strategy: Strategy, obj: Object, old: Object) -> None:
    if strategy.generation and not is_same(strategy.spec_of(obj), strategy.spec_of(old)):
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _validate(
    resource: Resource, request: WriteRequest, strategy: Strategy, context: WriteContext, obj: Object, old: Object
) -> None:
    problems = validate_changed_object(strategy, obj, old, context, namespaced=resource.namespaced)
    raise_invalid(resource, obj, problems)
    request.warnings += strategy.warnings_on_update(obj, old, context)


async def _commit(
    registry: Registry, resource: Resource, request: WriteRequest, record: Record, obj: Object, old: Object
) -> bytes:
    """Write the change, unless there is none. An object that only waited for this change to be deleted is."""
    ignore_timestamps(obj, old)
    if is_same(obj, old):
        return record.body if resource.from_storage is None else codec.dumps(obj)
    value = encode(resource, obj)
    is_last = bool(obj["metadata"].get("deletionTimestamp")) and not resource.strategy.is_held(obj)
    if request.dry_run:
        return codec.dumps(obj)
    operation = Delete(record.key, record.revision) if is_last else Put(record.key, value, record.revision)
    try:
        revision = await registry.store.commit([operation])
    except Conflict:
        raise
    except StoreError as error:
        raise translate(error, resource.group_resource, request.name) from error
    if is_last:
        return codec.dumps(obj)  # it was never stored in this form, so it has no version of its own
    if resource.from_storage is not None:
        obj["metadata"]["resourceVersion"] = str(revision)
        return codec.dumps(obj)
    return stored_body(value, revision)
