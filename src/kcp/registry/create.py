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
from kcp.store import ABSENT, Check, Conflict, ObjectKey, Put, ResourceKey, Revision, StoreError
from kcp.store.value import DELETING

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry
    from kcp.registry.request import WriteRequest
    from kcp.registry.resource import Resource

GENERATED_NAME_ATTEMPTS = 8
_NAMESPACES = ResourceKey("", "namespaces")
_WRONG_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


async def create(registry: Registry, resource: Resource, request: WriteRequest, obj: Object) -> bytes:
    """Store a new object, decoded and defaulted before, and return it as JSON."""
    metadata = begin(resource, request, obj)
    given_name = metadata.get("name", "")
    generate = metadata.get("generateName", "") if not given_name else ""
    for attempt in range(GENERATED_NAME_ATTEMPTS):
        if generate:
            metadata["name"] = make_generated_name(generate)
        try:
            return await _create_once(registry, resource, request, obj)
        except _Exists as exists:
            if generate and attempt + 1 < GENERATED_NAME_ATTEMPTS:
                metadata = obj["metadata"]
                continue
            name = exists.name
            if generate:
                raise errors.AlreadyExists.for_generated_name(resource.group_resource, name) from None
            raise errors.AlreadyExists(resource.group_resource, name) from None
    raise AssertionError("unreachable")


class _Exists(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def begin(resource: Resource, request: WriteRequest, obj: Object) -> Object:
    """Check that the object fits the address it was sent to, and return its metadata."""
    metadata: Object = obj.setdefault("metadata", {})
    if resource.namespaced:
        given = metadata.get("namespace", "")
        if given and given != request.namespace:
            raise errors.BadRequest(_WRONG_NAMESPACE)
        metadata["namespace"] = request.namespace
    else:
        metadata.pop("namespace", None)
    if request.name and metadata.get("name", request.name) != request.name:
        raise errors.BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({request.name})"
        )
    if request.name:
        metadata["name"] = request.name
    for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid"):
        metadata.pop(name, None)
    return metadata


async def _create_once(registry: Registry, resource: Resource, request: WriteRequest, obj: Object) -> bytes:
    drop_duplicate_owners(obj["metadata"], request.warnings, SENT_DUPLICATES)
    if request.manager:
        now = registry.clock.now()
        update_managed_fields(None, obj, resource.write_scope(), manager=request.manager, now=now)
    attributes = make_attributes(resource, request, Operation.CREATE, obj, None)
    namespace_check = _namespace_check(registry, resource, request)
    await registry.chain.mutate(attributes)
    obj = attributes.obj or obj
    drop_duplicate_owners(obj["metadata"], request.warnings, ADMITTED_DUPLICATES)
    prepare(registry, resource, request, obj)
    await registry.chain.validate(attributes)
    name = obj["metadata"]["name"]
    key = key_of(resource, request.cluster, request.namespace, name)
    if request.dry_run:
        if registry.store.get(key) is not None:
            raise _Exists(name)
        return codec.dumps(obj)
    value = encode(resource, obj)
    while True:
        try:
            revision = await registry.store.commit([Put(key, value, ABSENT), *namespace_check])
        except Conflict as conflict:
            if conflict.key == key:
                raise _Exists(name) from None
            # Only the namespace changed. It need not be asked again who may do what, but it must still take objects.
            namespace_check = _namespace_check(registry, resource, request)
            if not namespace_check or conflict.current is None or conflict.current.flags & DELETING:
                await registry.chain.mutate(attributes)
        except StoreError as error:
            raise translate(error, resource.group_resource, name) from error
        else:
            break
    if resource.from_storage is not None:
        obj["metadata"]["resourceVersion"] = str(revision)
        return codec.dumps(obj)
    return stored_body(value, revision)


def _namespace_check(registry: Registry, resource: Resource, request: WriteRequest) -> list[Check]:
    """The write counts only if the namespace is still as admission saw it, so that none lands in a deleted one."""
    if not resource.namespaced:
        return []
    record = registry.namespace_record(request.cluster, request.namespace)
    if record is None:
        return []  # admission refuses it
    return [Check(ObjectKey(_NAMESPACES, request.cluster, "", request.namespace), Revision(record.revision))]


def prepare(registry: Registry, resource: Resource, request: WriteRequest, obj: Object) -> None:
    """Everything between mutating and validating admission."""
    strategy = resource.strategy
    context = registry.context(request.cluster, request.user)
    metadata = obj["metadata"]
    if metadata.pop("resourceVersion", ""):
        raise errors.StatusError("resourceVersion should not be set on objects to be created")
    metadata["uid"] = make_uid()
    metadata["creationTimestamp"] = format_time(context.now)
    if strategy.generation:
        metadata["generation"] = 1
    strategy.prepare_for_create(obj, context)
    raise_invalid(resource, obj, validate_new_object(strategy, obj, context, namespaced=resource.namespaced))
    request.warnings += strategy.warnings_on_create(obj, context)
