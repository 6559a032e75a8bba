"""The store at one moment: every read of one view sees the same revision, whatever is written meanwhile.

A view is an LMDB read transaction with the meaning of the tables added. It belongs to one thread, costs about a
microsecond to open, and keeps the pages it sees from being reused, so nobody keeps one for long.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import merge
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from kcp.store import layout
from kcp.store.environment import KeyTooLong
from kcp.store.errors import Compacted, FutureRevision
from kcp.store.events import Event
from kcp.store.interface import Page
from kcp.store.keys import (
    ObjectKey,
    ResourceKey,
    Revision,
    Scope,
    after_prefix,
    can_have_keys,
    decode_tail,
    encode_tail,
    scope_prefix,
)
from kcp.store.value import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from kcp.store.engine import Engine
    from kcp.store.interface import AcceptRecord

    Pair = tuple[bytes, bytes]
    AcceptPair = Callable[[Pair], bool] | None
    Bounds = tuple[bytes, bytes]

_END = b"\xff" * 8  # behind every key
_NUMBER = layout.RESOURCE_BYTES


class View:
    """Made by `Engine.view`; close it, or use it in a `with`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._env = engine.env
        self._numbers = engine.numbers
        self.txn = engine.env.read()
        self.revision = engine.revision_in(self.txn)
        self.compacted = engine.compacted_in(self.txn)

    def close(self) -> None:
        self.txn.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    # -- the present ----------------------------------------------------------

    def get(self, key: ObjectKey) -> Record | None:
        resource, cluster, namespace, name = key
        number = self._numbers.get(resource) or self.number_of(resource)
        if number is None:
            return None
        try:
            # Not `encode_tail`, whose checks would be a third of the cost: what it refuses was never stored, so that
            # a part with a `/` in it cannot lead to another key.
            stored = self.txn.get(number + f"{cluster}/{namespace}/{name}".encode())
        except (UnicodeEncodeError, KeyTooLong):
            return None
        return None if stored is None else Record(key, stored)

    def range(
        self,
        scope: Scope,
        *,
        after: ObjectKey | None = None,
        limit: int = 0,
        revision: Revision | None = None,
        accept: AcceptRecord | None = None,
        contains: bytes = b"",
    ) -> Page:
        at = self.revision if revision is None else revision
        self.check_reach(at)
        bounds = self._bounds(scope, after)
        if bounds is None:
            return Page(at, [], None, {})
        accept_pair = _pair_filter(scope, accept)
        with self.txn.cursor(self._env.now) as cursor:
            source: Iterable[Pair]
            if at != self.revision:
                source = self._scan_at(scope, bounds, at)
            elif contains and scope.resource is not None and scope.cluster is not None:
                source = self._matching(scope, bounds, contains)
            else:
                source = self._walk(cursor, bounds)
            if accept_pair is not None:
                source = filter(accept_pair, source)
            # One more than wanted tells whether there are more.
            pairs = list(source if not limit else islice(source, limit + 1))
        next_after = None
        if limit and len(pairs) > limit:
            pairs.pop()
            next_after = self.key_of(pairs[-1][0])
        if scope.resource is not None:
            resources = {key[:_NUMBER]: scope.resource for key, _ in pairs[:1]}
        else:
            resources = {number: self.resource_of(number) for number in {key[:_NUMBER] for key, _ in pairs}}
        return Page(at, pairs, next_after, resources)

    def _matching(self, scope: Scope, bounds: Bounds, contains: bytes) -> Iterator[Pair]:
        whole = self._bounds(scope, None)
        assert whole is not None
        keys = self._engine.matches.find(self, scope, whole, contains)
        for key in keys[bisect_left(keys, bounds[0]) :]:
            stored = self.txn.get(key)
            if stored is not None:
                yield key, stored

    def between(self, resource: ResourceKey, after: ObjectKey | None, last: ObjectKey | None) -> dict[ObjectKey, bytes]:
        """Stored bytes by key, of the resource's objects behind `after` up to and with `last`; None is no bound."""
        bounds = self._bounds(Scope(resource), after)
        if bounds is None:
            return {}
        number = bounds[0][: layout.RESOURCE_BYTES]
        stop = bounds[1] if last is None else number + encode_tail(last) + b"\0"
        return {self.key_of(key): stored for key, stored in self.scan((bounds[0], stop))}

    def count(self, scope: Scope, *, after: ObjectKey | None = None) -> int:
        bounds = self._bounds(scope, after)
        if bounds is None:
            return 0
        if after is None and scope.namespace is None and scope.resource is not None:
            number = bounds[0][: layout.RESOURCE_BYTES]
            key = layout.count_key((scope.cluster or "").encode(), number)
            return layout.unpack_u64(self.txn.get(key, db=self._env.counts))
        accept = _pair_filter(scope, None)
        with self.txn.cursor(self._env.now) as cursor:
            if not cursor.set_range(bounds[0]):
                return 0
            keys = takewhile(bounds[1].__gt__, cursor.iternext(keys=True, values=False))
            return sum(1 for _ in keys) if accept is None else sum(accept((found, b"")) for found in keys)

    def counts(self, cluster: str) -> dict[ResourceKey, int]:
        if not can_have_keys(Scope(cluster=cluster)):
            return {}
        return self._counts(cluster.encode())

    def totals(self) -> dict[ResourceKey, int]:
        """How many objects of each resource there are in all clusters."""
        return self._counts(b"")

    def _counts(self, cluster: bytes) -> dict[ResourceKey, int]:
        prefix = layout.count_key(cluster, b"")
        found: dict[ResourceKey, int] = {}
        with self.txn.cursor(self._env.counts) as cursor:
            if cursor.set_range(prefix):
                for key, number_of_objects in cursor:
                    if not key.startswith(prefix):
                        break
                    found[self.resource_of(key[len(prefix) :])] = layout.unpack_u64(number_of_objects)
        return found

    def object_count(self) -> int:
        """How many objects there are in all."""
        return int(self.txn.stat(self._env.now)["entries"])

    def scan(self, bounds: Bounds = (b"", _END)) -> Iterator[Pair]:
        """Keys and stored bytes between two keys, everything by default."""
        with self.txn.cursor(self._env.now) as cursor:
            yield from self._walk(cursor, bounds)

    @staticmethod
    def _walk(cursor: Any, bounds: Bounds) -> Iterable[Pair]:  # noqa: ANN401 - of lmdb, whose door is elsewhere
        """The same, from a cursor. A pair is compared with a tuple of the end alone: it stands before that as long as
        its key stands before the end. So the walk runs in C, which makes a list of thousands twice as fast."""
        start, stop = bounds
        return takewhile((stop,).__gt__, cursor) if cursor.set_range(start) else ()

    def _bounds(self, scope: Scope, after: ObjectKey | None) -> Bounds | None:
        """The first key of the scope and the first behind it; None if the scope must be empty."""
        if scope.resource is None:
            if scope.cluster is not None or scope.namespace is not None:
                raise ValueError("a range without a resource is over the whole store: use counts() for one cluster")
            prefix = b""
        else:
            number = self.number_of(scope.resource)
            if number is None or not can_have_keys(scope):
                return None
            prefix = number + scope_prefix(scope)
        start = prefix
        if after is not None and (number := self.number_of(after.resource)) is not None:
            start = max(prefix, number + encode_tail(after) + b"\0")
        return start, after_prefix(prefix) or _END

    # -- resources and their numbers, in this view's own transaction ----------

    def number_of(self, resource: ResourceKey) -> bytes | None:
        return self._engine.number_in(self.txn, resource)

    def resource_of(self, number: bytes) -> ResourceKey:
        return self._engine.resource_in(self.txn, number)

    def key_of(self, key: bytes) -> ObjectKey:
        return decode_tail(self.resource_of(key[:_NUMBER]), key[_NUMBER:])

    # -- the past -------------------------------------------------------------

    def check_reach(self, revision: int) -> None:
        """Raise unless the log has everything after `revision`."""
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)

    def changes(
        self, scope: Scope, after: Revision, limit: int, limit_bytes: int = 1 << 62
    ) -> tuple[list[Event], Revision]:
        """Events of the scope after a revision, and the revision up to which they are complete.

        Looks at about `limit` log entries and `limit_bytes` of events, and always ends between two revisions. The
        revision returned is the view's own if the end was reached.
        """
        self.check_reach(after)
        events: list[Event] = []
        size = 0
        reached = after
        for looked_at, (log_key, data) in enumerate(self._log(scope, after)):
            revision = layout.unpack_log_key(log_key)[0]
            if (looked_at >= limit or size >= limit_bytes) and revision != reached:
                return events, reached
            reached = Revision(revision)
            if scope.contains(key := self.key_of(layout.log_entry_key(data))):
                entry = layout.unpack_log_entry(data)
                events.append(Event(key, reached, entry.old, entry.new))
                size += len(data)
        return events, self.revision

    def last_time_ms(self) -> int:
        """When the newest change in the log was made; 0 if the log is empty."""
        with self.txn.cursor(self._env.log) as cursor:
            return layout.log_entry_time(cursor.value()) if cursor.last() else 0

    def revision_before(self, time_ms: int) -> Revision:
        """The newest revision in the log that was committed before a time, by bisection; `compacted` if none was."""
        low, high = self.compacted, self.revision
        with self.txn.cursor(self._env.log) as cursor:
            while low < high:
                middle = (low + high + 1) // 2
                # Revisions may be missing from the log (a mirror's are etcd's), so the next one present decides.
                found = cursor.set_range(layout.pack_log_key(middle))
                if found and layout.log_entry_time(cursor.value()) < time_ms:
                    low = Revision(middle)
                else:
                    high = Revision(middle - 1)
        return low

    def _scan_at(self, scope: Scope, bounds: Bounds, revision: Revision) -> Iterator[Pair]:
        """The pairs between the bounds as they were at `revision`: the present, with later changes undone."""
        changed = self._engine.past.changed_since(self, scope, revision)
        present = (pair for pair in self.scan(bounds) if pair[0] not in changed)
        return merge(present, self._before(changed, bounds))

    def _before(self, changed: dict[bytes, bytes], bounds: Bounds) -> Iterator[Pair]:
        """Changed keys with the bytes they had before; those that did not exist are left out."""
        for key in sorted(key for key in changed if bounds[0] <= key < bounds[1]):
            old = layout.unpack_log_entry(self.txn.get(changed[key], b"", db=self._env.log)).old
            if old is not None:
                yield key, old

    def log_keys(self, scope: Scope, after: int) -> Iterator[tuple[bytes, bytes]]:
        """For each change after a revision that may be in the scope, its key in the log and the key that changed."""
        for log_key, entry in self._log(scope, after):
            yield log_key, layout.log_entry_key(entry)

    def _log(self, scope: Scope, after: int) -> Iterable[Pair]:
        """Log entries after a revision that may be in the scope, with their keys."""
        if not can_have_keys(scope):
            return ()
        if scope.resource is None:
            return self._whole_log(after)
        number = self.number_of(scope.resource)
        if number is None:
            return ()
        if scope.cluster is None:
            return self._whole_log(after)
        return self._trail(layout.trail_prefix(scope.cluster.encode(), number), after)

    def _whole_log(self, after: int) -> Iterator[Pair]:
        with self.txn.cursor(self._env.log) as cursor:
            if cursor.set_range(layout.pack_log_key(after + 1)):
                yield from cursor

    def _trail(self, prefix: bytes, after: int) -> Iterator[Pair]:
        with self.txn.cursor(self._env.trail) as cursor:
            if not cursor.set_range(prefix + layout.pack_log_key(after + 1)):
                return
            for step in cursor.iternext(keys=True, values=False):
                if not step.startswith(prefix):
                    return
                log_key = step[len(prefix) :]
                # A trail and its log entries are written and removed in one transaction, so the entry is there.
                yield log_key, self.txn.get(log_key, b"", db=self._env.log)


def _pair_filter(scope: Scope, accept: AcceptRecord | None) -> AcceptPair:
    """`accept`, and the namespace of a scope that is not a prefix."""
    if scope.namespace is not None and scope.cluster is None:
        namespace = scope.namespace.encode()

        def accept_in_namespace(pair: Pair) -> bool:
            in_namespace = pair[0][_NUMBER:].split(b"/", 2)[1] == namespace
            return in_namespace and (accept is None or accept(pair[1]))

        return accept_in_namespace
    return None if accept is None else lambda pair: accept(pair[1])
