"""Writing: several commits staged in memory, checked against each other and the tables, then flushed together.

Everything here runs in the writer's thread, inside one LMDB transaction. Staging does not touch the tables, so a commit
that fails its expectations changes nothing, and each table is written in one call for the whole group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store import layout
from kcp.store.errors import Conflict, FutureRevision
from kcp.store.events import Event
from kcp.store.interface import ANY, Delete, Put
from kcp.store.keys import ObjectKey, ResourceKey, Revision, encode_tail
from kcp.store.value import Record, revision_of, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kcp.store.engine import Engine
    from kcp.store.environment import Transaction
    from kcp.store.interface import Operation


class Group:
    """The changes that one LMDB transaction will make."""

    def __init__(self, engine: Engine, txn: Transaction, time_ms: int) -> None:
        self.engine = engine
        self.txn = txn
        self.revision = engine.revision_in(txn)
        self.compacted = engine.compacted_in(txn)
        self.events: list[Event] = []
        self.is_changed = False  # otherwise there is nothing to make durable
        self.is_new_history = False  # so that watchers of the old one have to be told
        self.new_resources: dict[ResourceKey, bytes] = {}
        self._time_ms = time_ms
        self._staged: dict[bytes, bytes | None] = {}
        self._log: list[tuple[bytes, bytes]] = []
        self._trail: list[tuple[bytes, bytes]] = []
        self._counts: dict[bytes, int] = {}

    def commit(self, operations: Sequence[Operation]) -> Revision:
        """Stage a commit at the next revision; see Store.commit for what it returns and raises."""
        writes: list[tuple[ObjectKey, bytes, bytes | None, bytes | None]] = []
        for operation in operations:
            key = self._key(operation.key)
            old = self._read(key)
            expect = operation.expect
            if expect is not ANY and expect != (0 if old is None else revision_of(old)):
                raise Conflict(operation.key, None if old is None else Record(operation.key, old))
            if type(operation) is Put:
                writes.append((operation.key, key, old, operation.value))
            elif type(operation) is Delete and old is not None:
                writes.append((operation.key, key, old, None))
        if not writes:
            return self.revision
        self.revision = Revision(self.revision + 1)
        for index, (object_key, key, old, value) in enumerate(writes):
            self._stage(index, object_key, key, old, None if value is None else stamp(value, self.revision))
        return self.revision

    def apply(self, revision: Revision, changes: Iterable[tuple[ObjectKey, bytes | None]]) -> None:
        """Stage a commit that was decided elsewhere, at its own revision; one that is here already is passed over."""
        if revision <= self.revision:
            return
        # Whatever can be refused is refused before anything is staged.
        resolved = [(object_key, self._key(object_key), value) for object_key, value in changes]
        self.revision = revision
        self.is_changed = True
        index = 0
        for object_key, key, value in resolved:
            old = self._read(key)
            if old is not None or value is not None:
                self._stage(index, object_key, key, old, None if value is None else stamp(value, revision))
                index += 1

    def advance(self, revision: Revision) -> None:
        """Take note that nothing changed up to a revision."""
        if revision > self.revision:
            self.revision = revision
            self.is_changed = True

    def compact(self, revision: Revision) -> None:
        """From this commit on nobody reads before `revision`; the entries themselves go later."""
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision > self.compacted:
            self.compacted = revision
            self.is_changed = True

    def overwrite(self, objects: Iterable[tuple[ObjectKey, bytes | None]]) -> None:
        """Put objects in place, or remove them, without events or history; `restart_history` has to follow.

        Takes stored bytes, so that each object keeps the revision it had.
        """
        for key, stored in [(self._key(object_key), stored) for object_key, stored in objects]:
            self._count(key, int(self._read(key) is None) - int(stored is None))
            self._staged[key] = stored
        self.is_changed = True

    def restart_history(self, revision: Revision) -> None:
        """Make the present the state at `revision`, which may be older, with nothing in reach before it."""
        self.txn.drop(self.engine.env.log, delete=False)
        self.txn.drop(self.engine.env.trail, delete=False)
        self.revision = self.compacted = revision
        self.is_changed = self.is_new_history = True

    def flush(self) -> None:
        """Write what was staged into the tables."""
        txn, env = self.txn, self.engine.env
        for resource, number in self.new_resources.items():
            name = layout.pack_resource_name(resource)
            txn.put(name, number, db=env.resources)
            txn.put(number, name, db=env.resources)
        if self._staged:
            with txn.cursor(env.now) as cursor:
                cursor.putmulti([(key, stored) for key, stored in self._staged.items() if stored is not None])
            for key, stored in self._staged.items():
                if stored is None:
                    txn.delete(key)
        if self._log:
            with txn.cursor(env.log) as cursor:
                cursor.putmulti(self._log, append=True)
            with txn.cursor(env.trail) as cursor:
                cursor.putmulti(self._trail)
        self._flush_counts()
        txn.put(layout.META_REVISION, layout.pack_u64(self.revision), db=env.meta)
        txn.put(layout.META_COMPACTED, layout.pack_u64(self.compacted), db=env.meta)

    def _flush_counts(self) -> None:
        counts = self.engine.env.counts
        for key, change in self._counts.items():
            if change:
                total = layout.unpack_u64(self.txn.get(key, db=counts)) + change
                if total:
                    self.txn.put(key, layout.pack_u64(total), db=counts)
                else:
                    self.txn.delete(key, db=counts)

    def _stage(self, index: int, object_key: ObjectKey, key: bytes, old: bytes | None, new: bytes | None) -> None:
        self.is_changed = True
        self._staged[key] = new
        log_key = layout.pack_log_key(self.revision, index)
        self._log.append((log_key, layout.pack_log_entry(self._time_ms, key, old, new)))
        self._trail.append((layout.trail_key(key, log_key), b""))
        if old is None or new is None:
            self._count(key, (old is None) - (new is None))
        self.events.append(Event(object_key, self.revision, old, new))

    def _count(self, key: bytes, change: int) -> None:
        number, cluster = key[: layout.RESOURCE_BYTES], layout.cluster_of(key)
        for count_key in (layout.count_key(cluster, number), layout.count_key(b"", number)):
            self._counts[count_key] = self._counts.get(count_key, 0) + change

    def _read(self, key: bytes) -> bytes | None:
        if key in self._staged:
            return self._staged[key]
        return self.txn.get(key)

    def _key(self, key: ObjectKey) -> bytes:
        resource = key.resource
        number = self.new_resources.get(resource) or self.engine.number_in(self.txn, resource)
        if number is None:
            number = self._number_new(resource)
        return number + encode_tail(key)

    def _number_new(self, resource: ResourceKey) -> bytes:
        meta = self.engine.env.meta
        following = layout.unpack_u64(self.txn.get(layout.META_NEXT_RESOURCE, db=meta)) + 1
        self.txn.put(layout.META_NEXT_RESOURCE, layout.pack_u64(following), db=meta)
        number = self.new_resources[resource] = layout.pack_resource(following)
        return number
