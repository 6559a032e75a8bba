"""Objects whose owners are gone, and owners that wait for their dependents.

Watches: everything with owners, everything that is deleted, and what waits with a finalizer.
Writes: deletes dependents; `ownerReferences` and the finalizers `foregroundDeletion` and `orphan`.
Steps, for an object: if it is being deleted in the foreground, have its blocking dependents deleted and, when there are
none, let it go; if its dependents are to be orphaned, take it out of their references and let it go; else look at its
owners, and delete it if none is left, or forget those that are gone.

There is no graph: see `kcp.registry.owners` for how dependents are found. Owners are always looked up before anything
is deleted, so that a missed or repeated change does no harm.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.controller.client import LocalClient
from kcp.controller.controller import DONE, Controller, Later, Outcome, Watch
from kcp.meta import codec, errors
from kcp.meta.wellknown import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from kcp.registry.changes import DELETING, FINALIZERS, ObjectKey, ResourceKey
from kcp.registry.delete import DeleteOptions
from kcp.registry.owners import OwnerIndex, owned_records
from kcp.registry.registry import key_of
from kcp.registry.stored import find_kind, find_stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from kcp.meta.codec import Object
    from kcp.registry.changes import Change
    from kcp.registry.registry import Registry

NAME: Final = "garbage-collector"
CRDS: Final = ResourceKey("apiextensions.k8s.io", "customresourcedefinitions")
# As in Kubernetes, nobody collects events: they end by themselves.
IGNORED: Final = frozenset((ResourceKey("", "events"),))
SETTLE_SECONDS: Final = 2.0
_ORPHANED_AT_ONCE: Final = 50
_HELD: Final = DELETING | FINALIZERS


@dataclass(frozen=True, slots=True)
class DeletedIn:
    """A logical cluster in which something was deleted that may have had dependents."""

    cluster: str


@dataclass(frozen=True, slots=True)
class KindsOf:
    """A logical cluster in which a kind may be served that was not before: references to it can be judged now."""

    cluster: str


Key = ObjectKey | DeletedIn | KindsOf


class Item(NamedTuple):
    """An object as it is now."""

    key: ObjectKey
    obj: Object

    @property
    def uid(self) -> str:
        return str(self.obj["metadata"].get("uid", ""))

    @property
    def references(self) -> list[Object]:
        return list(self.obj["metadata"].get("ownerReferences") or ())

    @property
    def is_deleted(self) -> bool:
        return bool(self.obj["metadata"].get("deletionTimestamp"))

    def has_finalizer(self, finalizer: str) -> bool:
        return finalizer in (self.obj["metadata"].get("finalizers") or ())

    @property
    def waits_for_dependents(self) -> bool:
        return self.is_deleted and self.has_finalizer(FINALIZER_FOREGROUND)

    def blocks(self, uid: str) -> bool:
        return any(each.get("uid") == uid and each.get("blockOwnerDeletion") for each in self.references)


class UnknownKind(Exception):
    """A reference names a kind that is not served here; it may be one day."""


class ImpossibleOwner(Exception):
    """A cluster-scoped object names a namespaced owner: there is no saying in which namespace."""


@dataclass(frozen=True, slots=True)
class Deps:
    read: Callable[[ObjectKey], Item | None]
    is_held: Callable[[ObjectKey], bool]
    """Whether the object is being deleted and waits for finalizers."""

    owner_key: Callable[[ObjectKey, Object], ObjectKey]
    """Where the owner of an object would be, by a reference. Raises UnknownKind and ImpossibleOwner."""

    find_dependents: Callable[[str, frozenset[str]], Awaitable[list[Item]]]
    owned_keys: Callable[[str], AsyncIterator[ObjectKey]]
    """All objects of a logical cluster that have owners."""

    update: Callable[[Item, Callable[[Object], None]], Awaitable[None]]
    """Change the object, unless it is another one of the same name by now."""

    delete: Callable[[Item, str], Awaitable[None]]
    """With a propagation policy. Raises Conflict if the object has changed."""

    sync: Callable[[], Awaitable[object]]
    """Make reads as fresh as the whole installation."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What is waited for. All of it can be found again by looking at everything."""

    deleted: dict[str, set[str]] = field(default_factory=dict)
    """Uids, by logical cluster, whose dependents are still to be found."""

    blocking: dict[ObjectKey, set[ObjectKey]] = field(default_factory=dict)
    """The dependents that each owner in foreground deletion waited for when it was last looked at. It is looked at
    again when they are all gone, not whenever one goes."""


async def reconcile(key: Key, deps: Deps, memory: Memory) -> Outcome:
    if isinstance(key, DeletedIn):
        return await reconcile_deleted(key.cluster, deps, memory)
    if isinstance(key, KindsOf):
        return Outcome(keys=tuple([each async for each in deps.owned_keys(key.cluster)]))
    item = deps.read(key)
    if item is None or key.resource in IGNORED:
        memory.blocking.pop(key, None)
        return DONE
    try:
        return await reconcile_item(item, deps, memory)
    except errors.NotFound:
        return DONE  # it went meanwhile


async def reconcile_deleted(cluster: str, deps: Deps, memory: Memory) -> Outcome:
    uids = memory.deleted.pop(cluster, set())
    if not uids:
        return DONE
    try:
        dependents = await deps.find_dependents(cluster, frozenset(uids))
    except BaseException:
        memory.deleted.setdefault(cluster, set()).update(uids)
        raise
    return Outcome(keys=tuple(item.key for item in dependents))


async def reconcile_item(item: Item, deps: Deps, memory: Memory) -> Outcome:
    if item.is_deleted and item.has_finalizer(FINALIZER_ORPHAN):
        return await reconcile_orphans(item, deps)
    if item.waits_for_dependents:
        return await reconcile_foreground(item, deps, memory)
    if item.is_deleted or not item.references:
        return DONE
    return await reconcile_owners(item, deps)


async def reconcile_orphans(item: Item, deps: Deps) -> Outcome:
    uid = item.uid
    dependents = await deps.find_dependents(item.key.cluster, frozenset((uid,)))
    for start in range(0, len(dependents), _ORPHANED_AT_ONCE):
        async with asyncio.TaskGroup() as tasks:
            for dependent in dependents[start : start + _ORPHANED_AT_ONCE]:
                tasks.create_task(_forget_owners(dependent, frozenset((uid,)), deps))
    await _remove_finalizer(item, FINALIZER_ORPHAN, deps)
    return DONE


async def reconcile_foreground(item: Item, deps: Deps, memory: Memory) -> Outcome:
    uid = item.uid
    found = await deps.find_dependents(item.key.cluster, frozenset((uid,)))
    # Whoever went while we were looking has been announced already, so only those count that are there now.
    blocking = [now for dependent in found if (now := deps.read(dependent.key)) is not None and now.blocks(uid)]
    if not blocking:
        memory.blocking.pop(item.key, None)
        await _remove_finalizer(item, FINALIZER_FOREGROUND, deps)
        return DONE
    memory.blocking[item.key] = {dependent.key for dependent in blocking}
    return Outcome(keys=tuple(dependent.key for dependent in blocking if not dependent.waits_for_dependents))


class _Owners(NamedTuple):
    """An object's references, by what has become of the owners."""

    solid: list[Object]
    dangling: list[Object]
    waiting: list[Object]
    """Being deleted, once their dependents are."""


def classify(item: Item, deps: Deps) -> _Owners:
    owners = _Owners([], [], [])
    for reference in item.references:
        owner = deps.read(deps.owner_key(item.key, reference))
        if owner is None or owner.uid != reference.get("uid"):
            owners.dangling.append(reference)
        elif owner.waits_for_dependents:
            owners.waiting.append(reference)
        else:
            owners.solid.append(reference)
    return owners


async def reconcile_owners(item: Item, deps: Deps) -> Outcome:
    try:
        owners = classify(item, deps)
        if owners.dangling:
            await deps.sync()
            latest = deps.read(item.key)
            if latest is None:
                return DONE
            item, owners = latest, classify(latest, deps)
    except (UnknownKind, ImpossibleOwner):
        return DONE  # a new kind brings the object back; the other has to be corrected by whoever wrote it
    if owners.solid:
        gone = frozenset(reference["uid"] for reference in (*owners.dangling, *owners.waiting))
        if gone:
            # Those that wait for this object would wait for ever.
            await _forget_owners(item, gone, deps)
        return DONE
    if owners.waiting and (dependents := await deps.find_dependents(item.key.cluster, frozenset((item.uid,)))):
        if any(dependent.waits_for_dependents for dependent in dependents):
            # Probably a circle, in which each would wait for the next.
            item = await _unblock(item, deps)
        await deps.delete(item, "Foreground")
        return DONE
    await deps.delete(item, _choose_policy(item))
    return DONE


def _choose_policy(item: Item) -> str:
    if item.has_finalizer(FINALIZER_ORPHAN):
        return "Orphan"
    return "Foreground" if item.has_finalizer(FINALIZER_FOREGROUND) else "Background"


async def _forget_owners(item: Item, uids: frozenset[str], deps: Deps) -> None:
    def mutate(obj: Object) -> None:
        metadata = obj["metadata"]
        kept = [each for each in metadata.get("ownerReferences") or () if each.get("uid") not in uids]
        if kept:
            metadata["ownerReferences"] = kept
        else:
            metadata.pop("ownerReferences", None)

    try:
        await deps.update(item, mutate)
    except errors.NotFound:
        return


async def _unblock(item: Item, deps: Deps) -> Item:
    def mutate(obj: Object) -> None:
        references = obj["metadata"].get("ownerReferences") or ()
        obj["metadata"]["ownerReferences"] = [
            {**each, "blockOwnerDeletion": False} if each.get("blockOwnerDeletion") else each for each in references
        ]

    await deps.update(item, mutate)
    return deps.read(item.key) or item


async def _remove_finalizer(item: Item, finalizer: str, deps: Deps) -> None:
    def mutate(obj: Object) -> None:
        metadata = obj["metadata"]
        kept = [each for each in metadata.get("finalizers") or () if each != finalizer]
        if kept:
            metadata["finalizers"] = kept
        else:
            metadata.pop("finalizers", None)

    await deps.update(item, mutate)


class Feed:
    """Makes keys of changes."""

    def __init__(self, index: OwnerIndex, memory: Memory, deps: Deps) -> None:
        self._index = index
        self._memory = memory
        self._deps = deps

    def wants(self, change: Change) -> bool:
        key, new, old = change.key, change.new, change.old
        if key.resource in IGNORED:
            return False
        if new is None or key.resource == CRDS:
            return True
        return new.flags & _HELD == _HELD or bool(new.owners) or (old is not None and bool(old.owners))

    def make_keys(self, change: Change) -> Iterable[Key | Later[Key]]:
        key, new, old = change.key, change.new, change.old
        if new is None:
            assert old is not None
            yield from self._of_deleted(Item(key, codec.loads(old.body)))
            return
        owners = new.owners
        if owners:
            self._index.note(key.cluster, owners)
        if key.resource == CRDS:
            yield KindsOf(key.cluster)
        if old is None and owners:
            # Its owner may have been made through another server, and not be seen here yet.
            yield Later(key, SETTLE_SECONDS)
        elif new.flags & _HELD == _HELD or (owners and old is not None and old.owners != owners):
            yield key
        if old is not None and old.owners:
            yield from self._of_released(Item(key, codec.loads(old.body)), Item(key, codec.loads(new.body)))

    def _of_deleted(self, item: Item) -> Iterable[Key]:
        cluster = item.key.cluster
        if self._index.may_own(cluster, item.uid):
            self._memory.deleted.setdefault(cluster, set()).add(item.uid)
            yield DeletedIn(cluster)
        for reference in item.references:
            yield from self._released_owner(item.key, reference)

    def _of_released(self, before: Item, after: Item) -> Iterable[Key]:
        """Owners that the object no longer blocks."""
        for reference in before.references:
            uid = reference.get("uid", "")
            if before.blocks(uid) and not after.blocks(uid):
                yield from self._released_owner(before.key, reference)

    def _released_owner(self, dependent: ObjectKey, reference: Object) -> Iterable[Key]:
        try:
            owner = self._deps.owner_key(dependent, reference)
        except (UnknownKind, ImpossibleOwner):
            return
        blocking = self._memory.blocking.get(owner)
        if blocking is None:
            if self._deps.is_held(owner):  # since before we started
                yield owner
            return
        blocking.discard(dependent)
        if not blocking:
            yield owner


def new(registry: Registry) -> Controller[Key]:
    index = OwnerIndex(registry.store, IGNORED)
    memory = Memory()
    deps = make_deps(registry, index)
    feed = Feed(index, memory, deps)
    return Controller(
        NAME,
        lambda key: reconcile(key, deps, memory),
        watches=(Watch(None, feed.make_keys, feed.wants),),
        workers=16,
    )


def make_deps(registry: Registry, index: OwnerIndex) -> Deps:
    client = LocalClient(registry, NAME)

    def read(key: ObjectKey) -> Item | None:
        record = registry.store.get(key)
        return None if record is None else Item(key, codec.loads(record.body))

    def is_held(key: ObjectKey) -> bool:
        record = registry.store.get(key)
        return record is not None and record.flags & _HELD == _HELD

    def owner_key(dependent: ObjectKey, reference: Object) -> ObjectKey:
        kind = reference.get("kind", "")
        resource = find_kind(registry, dependent.cluster, reference.get("apiVersion", ""), kind)
        if resource is None:
            raise UnknownKind(kind)
        if resource.namespaced and not dependent.namespace:
            raise ImpossibleOwner(kind)
        return key_of(resource, dependent.cluster, dependent.namespace, reference.get("name", ""))

    async def find_dependents(cluster: str, uids: frozenset[str]) -> list[Item]:
        records = await index.find_dependents(cluster, uids)
        return [Item(record.key, codec.loads(record.body)) for record in records]

    async def owned_keys(cluster: str) -> AsyncIterator[ObjectKey]:
        async for record in owned_records(registry.store, cluster):
            if record.key.resource not in IGNORED:
                yield record.key

    async def update(item: Item, mutate: Callable[[Object], None]) -> None:
        resource = find_stored(registry, item.key.cluster, item.key.resource)
        if resource is None:
            return

        def mutate_same(obj: Object) -> None:
            if obj["metadata"].get("uid") != item.uid:
                raise errors.NotFound(resource.group_resource, item.key.name)
            mutate(obj)

        await client.update(item.key.cluster, resource, item.key.namespace, item.key.name, mutate_same)

    async def delete(item: Item, policy: str) -> None:
        resource = find_stored(registry, item.key.cluster, item.key.resource)
        if resource is not None:
            version = item.obj["metadata"]["resourceVersion"]
            options = DeleteOptions(uid=item.uid, resource_version=version, propagation_policy=policy)
            await client.delete(item.key.cluster, resource, item.key.namespace, item.key.name, options)

    return Deps(read, is_held, owner_key, find_dependents, owned_keys, update, delete, registry.store.sync)
