"""The contract of every store: a single growing revision, and five things to do with it.

Terms are etcd's. A *commit* is one atomic transaction on up to 128 keys; each commit that changes anything takes the
next *revision*, which becomes the resource version of every object it wrote. Reads are answered from the local machine
without waiting; `sync` is the one call that makes them as fresh as the whole installation. One suite,
tests/store/test_contract.py, runs on every implementation.

    r1  commit(Put a=1)            range(a..)      -> a=1 at r1
    r2  commit(Put b=1, Put a=2)   range(a.., r1)  -> a=1 at r1           the past, until it is compacted
    r3  commit(Delete a)           watch after r1  -> [a=2, b=1] at r2, [a deleted] at r3
        compact(r2)                watch after r1  -> Compacted; after r2 still works
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from kcp.store import layout
from kcp.store.keys import ObjectKey, ResourceKey, Revision, Scope, decode_tail
from kcp.store.value import Record, bodies_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from kcp.store.events import Batch, Event

    # Says of stored bytes, or of an event, whether the caller wants them. Must be quick and must not raise.
    AcceptRecord = Callable[[bytes], bool]
    AcceptEvent = Callable[[Event], bool]

ANY: None = None  # no expectation
ABSENT = Revision(0)  # expects that the key does not exist


class Put(NamedTuple):
    """Create or replace. `value` comes from `pack` or `pack_object`."""

    key: ObjectKey
    value: bytes
    expect: Revision | None = ANY


class Delete(NamedTuple):
    """Remove. Without an expectation, deleting what is not there is no change."""

    key: ObjectKey
    expect: Revision | None = ANY


class Check(NamedTuple):
    """Change nothing, but commit only if `key` is as expected: a namespace that still exists, say."""

    key: ObjectKey
    expect: Revision


Operation = Put | Delete | Check


class Page(NamedTuple):
    """A range's answer, all of it true at `revision`. Records are made only for those who ask for them."""

    revision: Revision
    pairs: list[tuple[bytes, bytes]]  # the engine's keys, and stored bytes
    next_after: ObjectKey | None  # where to go on if `limit` cut the range, to be passed as `after`
    resources: dict[bytes, ResourceKey]  # by what the engine's keys begin with

    def records(self) -> list[Record]:
        number = layout.RESOURCE_BYTES
        return [Record(decode_tail(self.resources[key[:number]], key[number:]), stored) for key, stored in self.pairs]

    def bodies(self, skip: int = 0) -> list[bytes]:
        """The JSON of each object, without its first bytes: what a list sends, without a look at the keys."""
        return bodies_of(self.pairs, skip)


class Watcher(Protocol):
    """A place in the stream of events of one scope."""

    @property
    def revision(self) -> Revision:
        """Every event up to here has been handed out."""
        ...

    async def next(self, timeout: float | None = None) -> Batch:
        """Wait for events. After `timeout` seconds without any, a batch without events: a bookmark.

        Raises Compacted if this watcher was so slow that the log no longer has what it missed, and Closed once the
        watcher or the store is closed. Cancelling a wait loses nothing.
        """
        ...

    def close(self) -> None:
        """Stop receiving. A waiting `next` raises Closed."""
        ...

    def __aiter__(self) -> AsyncIterator[Batch]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...


class Store(Protocol):
    """All methods belong to the event loop the store was opened in. Closed stores raise Closed."""

    @property
    def revision(self) -> Revision:
        """The newest revision that local reads show."""
        ...

    @property
    def compacted(self) -> Revision:
        """The oldest revision that ranges and watches may still name."""
        ...

    async def sync(self) -> Revision:
        """Make local reads show every commit acknowledged, by any server, before this call began.

        Raises Unavailable if that cannot be known now.
        """
        ...

    def get(self, key: ObjectKey) -> Record | None:
        """The object as it is now."""
        ...

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
        """Objects of the scope in key order: those behind `after`, at most `limit` (0 is no limit) that `accept` takes.

        `contains` spares `accept` the records whose stored bytes do not have these bytes in them: packed labels have
        bytes that no JSON has, so most of what a label selector does not want is passed over without a call.

        With a `revision`, as they were then: raises FutureRevision, or Compacted if it is out of reach or so many
        changes ago that undoing them would hold up everyone. The scope names a resource, or is the whole store.
        """
        ...

    def count(self, scope: Scope, *, after: ObjectKey | None = None) -> int:
        """How many objects a range would give. For a resource in one or all clusters it is a look-up, not a walk."""
        ...

    def counts(self, cluster: str) -> Mapping[ResourceKey, int]:
        """How many objects of each resource a logical cluster holds; empty means the cluster is."""
        ...

    async def commit(self, operations: Sequence[Operation]) -> Revision:
        """Apply all operations, or none. On return the commit is durable and local reads show it.

        Returns its revision, or the current one if nothing changed. Raises Conflict for the first expectation that
        does not hold (local reads show why), InvalidCommit or TooLarge, Unavailable or NoSpace when nothing was
        written, and OutcomeUnknown when that cannot be known. Cancelling the call does not take the commit back.
        """
        ...

    def watch(self, scope: Scope, after: Revision, *, accept: AcceptEvent | None = None) -> Watcher:
        """Every change of the scope after the revision: in order, no gap, no repeat, each commit in one batch.

        Raises Compacted or FutureRevision if `after` is out of reach.
        """
        ...

    async def compact(self, revision: Revision) -> None:
        """Forget how things were before `revision`. Older watches and ranges raise Compacted from now on.

        Space is freed in small steps between other commits. Raises FutureRevision; an older one than before is no
        change.
        """
        ...

    async def aclose(self) -> None:
        """Finish what was asked for, end all watches, release the files."""
        ...
