"""Looking for contradictions in a store: what must hold between its tables, whatever happened to the process.

It reports damage and does not stop at it, whatever the bytes are. No table is held in memory: two that must agree are
each walked once, with lookups in the other. Only the log's last word on each object is kept, as a hash.
"""

from __future__ import annotations

import struct
from itertools import groupby
from typing import TYPE_CHECKING

from kcp.store import layout
from kcp.store.environment import KeyTooLong, translated
from kcp.store.errors import Damaged, InvalidCommit, StoreError, Unavailable
from kcp.store.keys import encode_tail
from kcp.store.value import check_value, revision_of, stamp, unstamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kcp.store.engine import Engine
    from kcp.store.environment import Transaction
    from kcp.store.view import View

    Lookup = Callable[[bytes], bytes | None]

# Far beyond any store, and a gap above it still fits into a signed 64-bit number, as etcd's revisions are.
MAX_REVISION = 1 << 62

_NUMBERS_IN_META = (layout.META_REVISION, layout.META_COMPACTED, layout.META_NEXT_RESOURCE)
_U64_BYTES = 8
_GONE = 0  # in place of a hash: the log's last word on an object is that it was deleted


def find_problems(engine: Engine) -> Iterator[str]:
    """Each contradiction in words; none for a sound store. Reads everything, in one view.

    Raises Unavailable for a mirror that is still being filled: nothing is wrong with it, and nothing is right yet.
    """
    try:
        with translated(engine.env.path):
            yield from _find_problems(engine)
    except Damaged as error:
        yield str(error)


def _find_problems(engine: Engine) -> Iterator[str]:
    with engine.env.read() as txn:
        unreadable = [name for name in _NUMBERS_IN_META if len(_meta(engine, txn, name)) != _U64_BYTES]
    for name in unreadable:
        yield f"the store's own record of its {name.decode()} cannot be read"
    if unreadable:
        return
    with engine.view() as view:
        if view.revision == 0 and is_mirror(engine, view):
            raise Unavailable(f"{engine.env.path} is still being filled from etcd: try again when the server is ready")
        yield from _Inspection(engine, view).find_problems()


def is_mirror(engine: Engine, view: View) -> bool:
    return bool(view.txn.get(layout.META_ORIGIN, db=engine.env.meta))


def find_flaw(stored: bytes, newest: int) -> str:
    """Why a store at revision `newest` cannot have these stored bytes in it; empty if it can."""
    try:
        revision = revision_of(stored)
        value = unstamp(stored)
        check_value(value)
        fits = stamp(value, revision) == stored
    except (struct.error, InvalidCommit) as error:
        return f"its value cannot be read ({error})"
    if not 0 < revision <= newest:
        return f"it has revision {revision}, but the newest possible is {newest}"
    return "" if fits else f"its resource version is not that of its revision {revision}"


def _meta(engine: Engine, txn: Transaction, name: bytes) -> bytes:
    return txn.get(name, layout.pack_u64(0), db=engine.env.meta)


class _Inspection:
    """One walk through everything that a view sees."""

    def __init__(self, engine: Engine, view: View) -> None:
        self._env = engine.env
        self._view = view
        self._txn = view.txn
        self._last_number = layout.unpack_u64(_meta(engine, view.txn, layout.META_NEXT_RESOURCE))
        self._last_new: dict[bytes, int] = {}
        self._resource = _forgiving(lambda key: view.txn.get(key, db=engine.env.resources))
        self._entry = _forgiving(lambda key: view.txn.get(key, db=engine.env.log))
        self._step = _forgiving(lambda key: view.txn.get(key, db=engine.env.trail))
        self._count = _forgiving(lambda key: view.txn.get(key, db=engine.env.counts))

    def find_problems(self) -> Iterator[str]:
        if self._view.revision > MAX_REVISION:
            yield f"the store says that it is at revision {self._view.revision}, which cannot be"
        if self._view.compacted > self._view.revision:
            yield f"the store is at revision {self._view.revision}, but compacted to {self._view.compacted}"
        yield from self._check_resources()
        yield from self._check_log()
        yield from self._check_trail()
        yield from self._check_objects()
        yield from self._check_counts()
        yield from self._check_empty_counts()

    def _check_resources(self) -> Iterator[str]:
        with self._txn.cursor(self._env.resources) as cursor:
            for key, found in cursor:
                if self._resource(found) != key:
                    yield f"the resource {key!r} leads to {found!r}, but that does not lead back"

    # -- the log, and the trail to it -----------------------------------------

    def _check_log(self) -> Iterator[str]:
        with self._txn.cursor(self._env.log) as cursor:
            for log_key, entry in cursor:
                change = _unpack_entry(entry)
                if len(log_key) != layout.LOG_KEY_BYTES:
                    yield f"the log has an entry with the impossible key {log_key!r}"
                elif change is None or (flaw := self._find_key_flaw(change.key)):
                    why = "it is cut or scrambled" if change is None else flaw
                    yield f"the log entry {log_key.hex()} cannot be read: {why}"
                else:
                    yield from self._check_change(log_key, change)

    def _check_change(self, log_key: bytes, change: layout.LogEntry) -> Iterator[str]:
        revision, _ = layout.unpack_log_key(log_key)
        name = self._view.key_of(change.key)
        if self._step(layout.trail_key(change.key, log_key)) is None:
            yield f"{name}: revision {revision} is in the log, but no trail leads to it"
        if revision > self._view.revision:
            yield f"{name}: revision {revision} is in the log, but the store is at {self._view.revision}"
        if revision <= self._view.compacted:
            return  # out of reach, and soon removed
        for stored, newest in ((change.old, revision - 1), (change.new, revision)):
            if stored is not None and (flaw := find_flaw(stored, newest)):
                yield f"{name}: revision {revision} in the log cannot be read: {flaw}"
        if not self._continues(change):
            yield f"{name}: revision {revision} does not continue the one before it"
        self._last_new[change.key] = _GONE if change.new is None else hash(change.new)

    def _continues(self, change: layout.LogEntry) -> bool:
        """Whether a change begins with what the one before it left, or with what was there before the log."""
        before = self._last_new.get(change.key)
        if change.old is None:
            return before is None or before == _GONE
        if before is None:
            return len(change.old) >= _U64_BYTES and revision_of(change.old) <= self._view.compacted
        return before == hash(change.old)

    def _check_trail(self) -> Iterator[str]:
        with self._txn.cursor(self._env.trail) as cursor:
            for step in cursor.iternext(keys=True, values=False):
                prefix, log_key = step[: -layout.LOG_KEY_BYTES], step[-layout.LOG_KEY_BYTES :]
                entry = self._entry(log_key)
                change = None if entry is None else _unpack_entry(entry)
                if change is None or _trail_of(change.key) != prefix:
                    yield f"the trail {step!r} does not lead to a change in the log"

    # -- the objects, and how many there are ----------------------------------

    def _check_objects(self) -> Iterator[str]:
        with self._txn.cursor(self._env.now) as cursor:
            for key, stored in cursor:
                expected = self._last_new.pop(key, None)
                if flaw := self._find_key_flaw(key) or find_flaw(stored, self._view.revision):
                    yield f"the object {key!r} cannot be read: {flaw}"
                elif expected is None and revision_of(stored) > self._view.compacted:
                    yield f"{self._view.key_of(key)} has revision {revision_of(stored)}, which is not in the log"
                elif expected is not None and expected != hash(stored):
                    yield f"{self._view.key_of(key)} is not as its last change in the log left it"
        for key, expected in self._last_new.items():
            if expected != _GONE:
                yield f"{self._view.key_of(key)} is missing, but the log does not say that it was deleted"

    def _check_counts(self) -> Iterator[str]:
        with self._txn.cursor(self._env.now) as cursor:
            keys = cursor.iternext(keys=True, values=False)
            for number, keys_of_resource in groupby(keys, lambda key: key[: layout.RESOURCE_BYTES]):
                total = 0
                for cluster, keys_of_cluster in groupby(keys_of_resource, _cluster_of):
                    count = sum(1 for _ in keys_of_cluster)
                    total += count
                    yield from self._check_count(layout.count_key(cluster, number), count)
                yield from self._check_count(layout.count_key(b"", number), total)
                if int.from_bytes(number) > self._last_number:
                    yield f"the resource number {number.hex()} is in use, but counts as free"

    def _check_count(self, key: bytes, count: int) -> Iterator[str]:
        if self._count(key) != layout.pack_u64(count):
            yield f"the object count of {key!r} is wrong: there are {count}"

    def _check_empty_counts(self) -> Iterator[str]:
        """Those of which there are objects were compared already."""
        with self._txn.cursor(self._env.counts) as cursor, self._txn.cursor(self._env.now) as objects:
            for key in cursor.iternext(keys=True, values=False):
                cluster, number = key[: -layout.RESOURCE_BYTES], key[-layout.RESOURCE_BYTES :]
                prefix = number if cluster == b"/" else number + cluster
                if not cluster.endswith(b"/") or not objects.set_range(prefix) or not objects.key().startswith(prefix):
                    yield f"the object count of {key!r} is wrong: there are none"

    # -- keys -----------------------------------------------------------------

    def _find_key_flaw(self, key: bytes) -> str:
        """Why an object cannot have this key; empty if it can."""
        if len(key) <= layout.RESOURCE_BYTES:
            return "its key is too short"
        try:
            encode_tail(self._view.key_of(key))
        except (StoreError, ValueError, TypeError) as error:
            return f"its key cannot be read ({error})"
        return ""


def _forgiving(get: Lookup) -> Lookup:
    """What is damaged may be longer than any key, or empty: then there is nothing."""

    def get_or_none(key: bytes) -> bytes | None:
        try:
            return get(key)
        except KeyTooLong:
            return None

    return get_or_none


def _unpack_entry(entry: bytes) -> layout.LogEntry | None:
    """None for an entry that is cut or scrambled."""
    try:
        change = layout.unpack_log_entry(entry)
    except struct.error:
        return None
    is_whole = layout.pack_log_entry(*change) == entry and change.old != change.new
    return change if is_whole else None


def _cluster_of(key: bytes) -> bytes:
    return key[layout.RESOURCE_BYTES :].partition(b"/")[0]


def _trail_of(key: bytes) -> bytes:
    """The trail of keys that may be damaged."""
    return layout.trail_prefix(_cluster_of(key), key[: layout.RESOURCE_BYTES])
