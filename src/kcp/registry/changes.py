"""What happens in the store, as controllers follow it: changes in all logical clusters, and how far each one got.

Must not know what a controller does with a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.meta import codec, wellknown
from kcp.meta.gvk import GroupResource
from kcp.registry.errors import translate
from kcp.store import (
    Closed,
    Compacted,
    Event,
    FutureRevision,
    ObjectKey,
    Put,
    ResourceKey,
    Revision,
    Scope,
    StoreError,
    pack_object,
)
from kcp.store.value import DELETING, FINALIZERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from kcp.meta.codec import Object
    from kcp.store import Record, Store, Watcher

    Wants = Callable[[Event], bool]

__all__ = [
    "DELETING",
    "FINALIZERS",
    "Change",
    "ChangeFeed",
    "ChangeStream",
    "Ended",
    "Lost",
    "ObjectKey",
    "Page",
    "ResourceKey",
    "is_released",
]

# `key`, `revision`, and the records `old` and `new`, of which one may be None. The header of a record (flags, labels,
# owners) is read without parsing its body.
Change = Event

CHECKPOINTS: Final = ResourceKey(wellknown.GROUP_INTERNAL, "checkpoints")
_CHECKPOINTS: Final = GroupResource(*CHECKPOINTS[:2])


class Lost(Exception):
    """The changes since that revision are no longer known: look at everything instead."""


class Ended(Exception):
    """The store was closed."""


class Page(NamedTuple):
    """A part of everything there is, each object as if it had just been created."""

    changes: list[Change]
    next_after: ObjectKey | None


class ChangeStream:
    """The changes of one resource, or of all. One task may wait for it."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    @property
    def revision(self) -> int:
        """Every change up to here was handed out."""
        return self._watcher.revision

    async def next(self) -> Sequence[Change]:
        """Wait for changes. Raises Lost and Ended."""
        try:
            return (await self._watcher.next()).events
        except Compacted as error:
            raise Lost from error
        except Closed as error:
            raise Ended from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._watcher.close()


class ChangeFeed:
    """A store, as the worker loop sees it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def revision(self) -> int:
        return self._store.revision

    def watch(self, resource: ResourceKey | None, after: int, wants: Wants | None = None) -> ChangeStream:
        """Every change of the resource after the revision. `wants` is asked while the write is being published: it
        must be quick and must not raise. Raises Lost and Ended."""
        try:
            return ChangeStream(self._store.watch(Scope(resource), Revision(after), accept=wants))
        except (Compacted, FutureRevision) as error:
            raise Lost from error
        except Closed as error:
            raise Ended from error

    def scan(self, resource: ResourceKey | None, after: ObjectKey | None, limit: int) -> Page:
        """The next objects in the order of keys. Raises Ended."""
        try:
            page = self._store.range(Scope(resource), after=after, limit=limit)
        except Closed as error:
            raise Ended from error
        return Page([Event(each.key, each.revision, None, each.stored) for each in page.records()], page.next_after)

    def load(self, name: str) -> Object | None:
        """What a controller noted."""
        record = self._store.get(_checkpoint_key(name))
        if record is None:
            return None
        obj: Object = codec.loads(record.body)
        return dict(obj["data"])

    async def save(self, name: str, note: Object) -> None:
        """Keep a note over a restart, and for the server that goes on. Raises StatusError if the store cannot."""
        value = pack_object({"metadata": {"name": name}, "data": note})
        try:
            await self._store.commit([Put(_checkpoint_key(name), value)])
        except StoreError as error:
            raise translate(error, _CHECKPOINTS, name) from error


def _checkpoint_key(name: str) -> ObjectKey:
    return ObjectKey(CHECKPOINTS, wellknown.ADMIN_CLUSTER, "", name)


def is_released(change: Change) -> bool:
    """Whether an object that had to wait for its finalizers is gone now: somebody may have waited for that."""
    old = change.old_stored
    return change.new_stored is None and old is not None and bool(_flags(change.old) & DELETING)


def _flags(record: Record | None) -> int:
    return 0 if record is None else record.flags
