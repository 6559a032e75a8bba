"""delete and deletecollection"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kcp.admission.attributes import Operation
from kcp.meta import codec, errors
from kcp.meta.clock import format_time
from kcp.meta.gvk import GroupResource
from kcp.meta.wellknown import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from kcp.registry.bootstrapped import missing
from kcp.registry.errors import translate
from kcp.registry.registry import key_of, read_object
from kcp.registry.writing import encode, make_attributes, stored_body
from kcp.store import Conflict, Delete, Put, ResourceKey, StoreError

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry
    from kcp.registry.request import WriteRequest
    from kcp.registry.resource import Resource
    from kcp.store import Record

_NAMESPACES: Final = ResourceKey("", "namespaces")
_EVENTS: Final = ResourceKey("", "events")
_CRDS: Final = ResourceKey("apiextensions.k8s.io", "customresourcedefinitions")
# Upstream these begin their deletion in code of their own, which speaks in other words.
_OWN_DELETION: Final = frozenset((_NAMESPACES, _CRDS))
_OWN_WORDS: Final = "Precondition failed: {0} in precondition: {1}, {0} in object meta: {2}"
_WRONG_UID: Final = (
    "the UID in the precondition ({}) does not match the UID in record ({}). "
    "The object might have been deleted and then recreated"
)
_WRONG_VERSION: Final = (
    "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). "
    "The object might have been modified"
)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    uid: str | None = None
    resource_version: str | None = None
    propagation_policy: str | None = None  # Orphan, Background or Foreground; None: what the object asks for
    orphan_dependents: bool | None = None


class Deleted:
    """What a deletion left: the object, if finalizers hold it, or the news that it is gone."""

    __slots__ = ("body", "gone", "last")

    def __init__(self, *, body: bytes, last: Object, gone: bool) -> None:
        self.body = body
        self.last = last
        self.gone = gone


async def delete(registry: Registry, resource: Resource, request: WriteRequest, options: DeleteOptions) -> Deleted:
    """Delete one object, or mark it for deletion while finalizers hold it. Raises NotFound and Conflict."""
    key = key_of(resource, request.cluster, request.namespace, request.name)
    while True:
        record = registry.store.get(key)
        if record is None:
            raise missing(registry.store, key, resource.group_resource)
        try:
            return await _delete_once(registry, resource, request, options, record)
        except Conflict:
            continue  # someone changed it meanwhile; preconditions are looked at again
        except StoreError as error:
            raise translate(error, resource.group_resource, request.name) from error


async def _delete_once(
    registry: Registry, resource: Resource, request: WriteRequest, options: DeleteOptions, record: Record
) -> Deleted:
    old = read_object(resource, record)
    check_preconditions(resource, request.name, options, old)
    attributes = make_attributes(resource, request, Operation.DELETE, None, old)
    await registry.chain.mutate(attributes)
    await registry.chain.validate(attributes)
    obj = _marked(registry, resource, options, old)
    if not resource.strategy.is_held(obj):
        if not request.dry_run:
            await registry.store.commit([Delete(record.key, record.revision)])
        return Deleted(body=record.body, last=old, gone=True)
    if obj == old or request.dry_run:
        return Deleted(body=codec.dumps(obj), last=obj, gone=False)
    value = encode(resource, obj)
    revision = await registry.store.commit([Put(record.key, value, record.revision)])
    obj["metadata"]["resourceVersion"] = str(revision)
    body = stored_body(value, revision) if resource.from_storage is None else codec.dumps(obj)
    return Deleted(body=body, last=obj, gone=False)


def check_preconditions(resource: Resource, name: str, options: DeleteOptions, old: Object) -> None:
    metadata = old["metadata"]
    own = resource.key in _OWN_DELETION
    subject = resource.group_resource if own else GroupResource(resource.gvk.group, resource.gvk.kind)
    uid, found = options.uid, metadata.get("uid", "")
    if uid is not None and uid != found:
        why = _OWN_WORDS.format("UID", uid, found) if own else _WRONG_UID.format(uid, found)
        raise errors.Conflict(subject, name, why)
    version, found = options.resource_version, metadata.get("resourceVersion", "")
    if version is not None and version != found:
        why = _OWN_WORDS.format("ResourceVersion", version, found) if own else _WRONG_VERSION.format(version, found)
        raise errors.Conflict(subject, name, why)


def _marked(registry: Registry, resource: Resource, options: DeleteOptions, old: Object) -> Object:
    """The object as it waits for its finalizers. Does not change `old`."""
    obj = dict(old)
    metadata = obj["metadata"] = dict(old["metadata"])
    finalizers = _choose_finalizers(resource, metadata, options)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = format_time(registry.clock.now())
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
        resource.strategy.mark_deleted(obj)
    return obj


def _choose_finalizers(resource: Resource, metadata: Object, options: DeleteOptions) -> list[str]:
    """The garbage collector's finalizers follow the policy asked for; without one, those present stay."""
    present: list[str] = metadata.get("finalizers") or []
    is_first = not metadata.get("deletionTimestamp")
    if resource.key == _CRDS and is_first:
        return present
    orphan, foreground = FINALIZER_ORPHAN in present, FINALIZER_FOREGROUND in present
    if resource.key == _EVENTS:
        orphan = foreground = False  # the collector leaves events alone, so nobody would take its finalizers off
    elif options.orphan_dependents is not None:
        orphan = options.orphan_dependents
        foreground = not orphan and is_first and resource.key == _NAMESPACES
    elif options.propagation_policy is not None:
        orphan = options.propagation_policy == "Orphan"
        foreground = options.propagation_policy == "Foreground"
    kept = [name for name in present if name not in (FINALIZER_ORPHAN, FINALIZER_FOREGROUND)]
    if orphan:
        kept.append(FINALIZER_ORPHAN)
    if foreground:
        kept.append(FINALIZER_FOREGROUND)
    return present if set(kept) == set(present) else kept
