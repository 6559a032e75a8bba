"""Deleting many objects at once: the content of a namespace, the instances of a definition, events whose time is up.

Objects are deleted as by the delete verb, with admission and finalizers, but a hundred to a commit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kcp.admission.attributes import Operation
from kcp.meta import codec, errors
from kcp.meta.gvk import GroupResource
from kcp.registry.delete import DeleteOptions, delete
from kcp.registry.errors import translate
from kcp.registry.registry import read_object
from kcp.registry.request import WriteRequest
from kcp.registry.stored import find_stored
from kcp.registry.writing import make_attributes
from kcp.store import Conflict, Delete, Scope, StoreError

if TYPE_CHECKING:
    from kcp.auth.user import UserInfo
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource
    from kcp.store import ObjectKey, Record, ResourceKey, Store

BATCH: Final = 100  # deletions in one commit; the store takes 128 operations
_SCAN_STEP: Final = 500
_BACKGROUND: Final = DeleteOptions(propagation_policy="Background")


@dataclass(slots=True)
class Remaining:
    """What a sweep could not remove."""

    objects: int = 0
    finalizers: Counter[str] = field(default_factory=Counter)
    """How many objects each finalizer holds."""

    errors: list[errors.StatusError] = field(default_factory=list)
    """Why objects were not even marked: the first reason for each resource."""


def stored_in(registry: Registry, cluster: str, namespace: str) -> list[ResourceKey]:
    """The resources with objects in the namespace, whether anything still serves them or not."""
    counts = registry.store.counts(cluster)
    return [key for key in counts if registry.store.range(Scope(key, cluster, namespace), limit=1).pairs]


async def delete_many(
    registry: Registry, key: ResourceKey, cluster: str, namespace: str | None, user: UserInfo
) -> Remaining:
    """Delete all objects of a resource in a namespace, or in all of them. Raises StatusError if the store cannot.

    Where no definition serves the objects any more, nobody could ever take their finalizers away: they just go.
    """
    resource = find_stored(registry, cluster, key)
    remaining = Remaining()
    scope = Scope(key, cluster, namespace)
    after: ObjectKey | None = None
    while True:
        page = registry.store.range(scope, after=after, limit=BATCH)
        if page.pairs:
            await _delete_page(registry, resource, page.records(), user, remaining)
        after = page.next_after
        if after is None:
            return remaining


async def _delete_page(
    registry: Registry, resource: Resource | None, records: list[Record], user: UserInfo, remaining: Remaining
) -> None:
    free = records if resource is None else []
    if resource is not None:
        for record in records:
            try:
                if await _is_free(registry, resource, record, user):
                    free.append(record)
                else:
                    await _delete_held(registry, resource, record, user, remaining)
            except errors.StatusError as error:
                _note_error(remaining, error)
    await _commit(registry, resource, free, user, remaining)


async def _is_free(registry: Registry, resource: Resource, record: Record, user: UserInfo) -> bool:
    """Whether the object can be removed at once. Raises what admission has against it."""
    if not (resource.namespaced or resource.custom):
        return False  # namespaces and definitions have ways of their own to be deleted
    old = read_object(resource, record)
    if resource.strategy.is_held(old):
        return False
    attributes = make_attributes(resource, _request(record, user), Operation.DELETE, None, old)
    await registry.chain.mutate(attributes)
    await registry.chain.validate(attributes)
    return True


def _request(record: Record, user: UserInfo) -> WriteRequest:
    _, cluster, namespace, name = record.key
    return WriteRequest(cluster, user, namespace, name)


async def _delete_held(
    registry: Registry, resource: Resource, record: Record, user: UserInfo, remaining: Remaining
) -> None:
    """Mark the object, if it is not yet, and count what holds it."""
    metadata = codec.loads(record.body)["metadata"]
    if not metadata.get("deletionTimestamp"):
        try:
            deleted = await delete(registry, resource, _request(record, user), _BACKGROUND)
        except errors.NotFound:
            return
        if deleted.gone:
            return
        metadata = deleted.last["metadata"]
    remaining.objects += 1
    remaining.finalizers.update(metadata.get("finalizers") or ())


async def _commit(
    registry: Registry, resource: Resource | None, records: list[Record], user: UserInfo, remaining: Remaining
) -> None:
    if not records:
        return
    try:
        await registry.store.commit([Delete(record.key, record.revision) for record in records])
    except Conflict:
        # Someone changed one of them: each for itself, by the verb, which reads again.
        for record in records:
            await _delete_one(registry, resource, record, user, remaining)
    except StoreError as error:
        raise _translate(records[0], error) from error


async def _delete_one(
    registry: Registry, resource: Resource | None, record: Record, user: UserInfo, remaining: Remaining
) -> None:
    if resource is not None:
        current = registry.store.get(record.key)
        if current is not None:
            try:
                await _delete_held(registry, resource, current, user, remaining)
            except errors.StatusError as error:
                _note_error(remaining, error)
        return
    try:
        await registry.store.commit([Delete(record.key)])
    except StoreError as error:
        raise _translate(record, error) from error


def _note_error(remaining: Remaining, error: errors.StatusError) -> None:
    remaining.objects += 1
    if not remaining.errors:
        remaining.errors.append(error)


def _translate(record: Record, error: StoreError) -> errors.StatusError:
    return translate(error, GroupResource(record.key.resource.group, record.key.resource.resource), record.key.name)


async def expire(store: Store, key: ResourceKey, before: int, after: ObjectKey | None) -> tuple[int, ObjectKey | None]:
    """Remove objects, of a part of the resource, whose last change is not newer than a revision.

    Returns how many, and where to go on. Raises StatusError. Nobody is asked: to their owners, expired objects never
    were more than passing.
    """
    page = store.range(Scope(key), after=after, limit=_SCAN_STEP)
    old = [record for record in page.records() if record.revision <= before]
    removed = 0
    for start in range(0, len(old), BATCH):
        batch = old[start : start + BATCH]
        try:
            await store.commit([Delete(record.key, record.revision) for record in batch])
        except Conflict:
            continue  # one has changed and lives on; the others wait for the next round
        except StoreError as error:
            raise _translate(batch[0], error) from error
        removed += len(batch)
    return removed, page.next_after
