"""create"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.admission.attributes import Operation
from kcp.meta import codec, errors
from kcp.meta.clock import format_time
from kcp.meta.names import make_generated_name, make_uid
from kcp.patch.managed_fields import update_managed_fields
from kcp.registry.errors import translate
from kcp.registry.metadata import validate_new_object
from kcp.registry.registry import key_of
from kcp.registry.writing import (
    ADMITTED_DUPLICATES,
    SENT_DUPLICATES,
    drop_duplicate_owners,
    encode,
    make_attributes,
    raise_invalid,
    stored_body,
)
from kcp.store import ABSENT, Check, Conflict, ObjectKey, Put, ResourceKey, StoreError
from kcp.store.value import DELETING

if TYPE_CHECKING:
    from kcp.admission.attributes import Attributes
    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry
    from kcp.registry.request import WriteRequest
    from kcp.registry.resource import Resource
    from kcp.store import Record

GENERATED_NAME_ATTEMPTS = 8
_CRDS = ResourceKey("apiextensions.k8s.io", "customresourcedefinitions")
_TERMINATING = "create not allowed while custom resource definition is terminating"
_WRONG_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


async def create(registry: Registry, resource: Resource, request: WriteRequest, obj: Object) -> bytes:
    """Store a new object, decoded and defaulted before, and return it as JSON."""
    begin(resource, request, obj)
    drop_duplicate_owners(obj["metadata"], request.warnings, SENT_DUPLICATES)
    if request.manager:
        now = registry.clock.now()
        update_managed_fields(None, obj, resource.write_scope(), manager=request.manager, now=now)
    attributes = make_attributes(resource, request, Operation.CREATE, obj, None)
    checks = _make_checks(registry, resource, request, attributes.name)
    await registry.chain.mutate(attributes)
    obj = attributes.obj = attributes.obj or obj
    metadata = obj["metadata"]
    drop_duplicate_owners(metadata, request.warnings, ADMITTED_DUPLICATES)
    if metadata.get("name") or not metadata.get("generateName"):
        return await _store(registry, resource, request, attributes, checks)
    # What changes an object does so once; each name is tried with a copy of what it left.
    for _ in range(GENERATED_NAME_ATTEMPTS):
        attributes.obj = codec.loads(codec.dumps(obj))
        attributes.obj["metadata"]["name"] = make_generated_name(metadata["generateName"])
        try:
            return await _store(registry, resource, request, attributes, checks)
        except errors.AlreadyExists as error:
            taken = error
    raise taken


def begin(resource: Resource, request: WriteRequest, obj: Object) -> Object:
    """Check that the object fits the address it was sent to, and return its metadata."""
    metadata: Object = obj.setdefault("metadata", {})
    _set_namespace(resource, request, metadata)
    if request.name and metadata.get("name", request.name) != request.name:
        raise errors.BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({request.name})"
        )
    if request.name:
        metadata["name"] = request.name
    for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid"):
        metadata.pop(name, None)
    return metadata


def _set_namespace(resource: Resource, request: WriteRequest, metadata: Object) -> None:
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace", "")
    if given and given != request.namespace:
        raise errors.BadRequest(_WRONG_NAMESPACE)
    metadata["namespace"] = request.namespace


async def _store(
    registry: Registry, resource: Resource, request: WriteRequest, attributes: Attributes, checks: list[Check]
) -> bytes:
    """Complete and check what mutating admission left, and commit it. Raises AlreadyExists."""
    assert attributes.obj is not None
    obj = attributes.obj
    prepare(registry, resource, request, obj)
    await registry.chain.validate(attributes)
    name = obj["metadata"]["name"]
    key = key_of(resource, request.cluster, request.namespace, name)
    if request.dry_run:
        if (found := registry.store.get(key)) is not None:
            raise _already_exists(resource, obj, found)
        return codec.dumps(obj)
    if _is_version(obj["metadata"].get("resourceVersion", "")):
        raise errors.StatusError("resourceVersion should not be set on objects to be created")
    value = encode(resource, obj)
    while True:
        try:
            revision = await registry.store.commit([Put(key, value, ABSENT), *checks])
        except Conflict as conflict:
            if conflict.key == key:
                raise _already_exists(resource, obj, conflict.current) from None
            # Only the namespace or the definition changed. It need not be asked again who may do what, but they must
            # still take objects.
            checks = _make_checks(registry, resource, request, attributes.name)
            if resource.namespaced and not _takes_objects(
                registry.namespace_record(request.cluster, request.namespace)
            ):
                await registry.chain.mutate(attributes)
        except StoreError as error:
            raise translate(error, resource.group_resource, name) from error
        else:
            break
    if resource.from_storage is not None:
        obj["metadata"]["resourceVersion"] = str(revision)
        return codec.dumps(obj)
    return stored_body(value, revision)


def _already_exists(resource: Resource, obj: Object, found: Record | None) -> errors.AlreadyExists:
    name, generated = obj["metadata"]["name"], obj["metadata"].get("generateName")
    make = errors.AlreadyExists.for_generated_name if generated else errors.AlreadyExists
    error = make(resource.group_resource, name)
    if found is None or not found.flags & DELETING:
        return error
    message = f"object is being deleted: {error.message}"
    return errors.AlreadyExists.with_message(message, details=error.details)


def _is_version(text: str) -> bool:
    """Whether it is one that an object can have; the store forgets anything else that a client calls a version."""
    return text.isascii() and text.isdigit() and text.strip("0") != ""


def _make_checks(registry: Registry, resource: Resource, request: WriteRequest, name: str) -> list[Check]:
    """The write counts only if what it hangs on is still as it was, so that none lands in a namespace that is deleted,
    or outlives its definition. Raises Forbidden or NotFound where the definition takes no objects."""
    checks = []
    if resource.namespaced:
        namespace = registry.namespace_record(request.cluster, request.namespace)
        if namespace is not None:  # otherwise admission refuses it
            checks.append(Check(namespace.key, namespace.revision))
    if resource.custom:
        gvr = resource.gvr
        definition = registry.store.get(ObjectKey(_CRDS, request.cluster, "", f"{gvr.resource}.{gvr.group}"))
        if definition is not None and not _takes_objects(definition):
            raise errors.Forbidden(resource.group_resource, name, _TERMINATING)
        if definition is not None:
            checks.append(Check(definition.key, definition.revision))
        elif registry.catalogue.find(request.cluster, gvr) is None:  # and not one of this project's own
            raise errors.NotFound(resource.group_resource, name)
    return checks


def _takes_objects(record: Record | None) -> bool:
    return record is not None and not record.flags & DELETING


def prepare(registry: Registry, resource: Resource, request: WriteRequest, obj: Object) -> None:
    """Everything between mutating and validating admission."""
    strategy = resource.strategy
    context = registry.context(request.cluster, request.user)
    metadata = obj["metadata"]
    _set_namespace(resource, request, metadata)
    metadata["uid"] = make_uid()
    metadata["creationTimestamp"] = format_time(context.now)
    if strategy.generation:
        metadata["generation"] = 1
    strategy.prepare_for_create(obj, context)
    raise_invalid(resource, obj, validate_new_object(strategy, obj, context, namespaced=resource.namespaced))
    request.warnings += strategy.warnings_on_create(obj, context)
