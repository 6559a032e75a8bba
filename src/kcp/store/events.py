"""What a watcher receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kcp.store.value import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from kcp.store.keys import ObjectKey, Revision


class Event:
    """One key's change: created (no `old`), updated (both) or deleted (no `new`), at `revision`.

    All watchers of a change share one Event, and so share the frames that were encoded for it.
    """

    __slots__ = ("_frames", "key", "new_stored", "old_stored", "revision")

    def __init__(self, key: ObjectKey, revision: Revision, old_stored: bytes | None, new_stored: bytes | None) -> None:
        self.key = key
        self.revision = revision
        self.old_stored = old_stored
        self.new_stored = new_stored
        self._frames: dict[Hashable, bytes] | None = None

    @property
    def old(self) -> Record | None:
        return None if self.old_stored is None else Record(self.key, self.old_stored)

    @property
    def new(self) -> Record | None:
        return None if self.new_stored is None else Record(self.key, self.new_stored)

    @property
    def size(self) -> int:
        """The bytes that an event keeps alive while it waits in a buffer."""
        return len(self.old_stored or b"") + len(self.new_stored or b"")

    def frame(self, representation: Hashable, encode: Callable[[Event], bytes]) -> bytes:
        """This event as `representation` (such as "json, ADDED"), encoded by the first watcher that asks."""
        if self._frames is None:
            self._frames = {}
        encoded = self._frames.get(representation)
        if encoded is None:
            encoded = self._frames[representation] = encode(self)
        return encoded

    def __repr__(self) -> str:
        verb = "created" if self.old_stored is None else "deleted" if self.new_stored is None else "updated"
        return f"Event({self.key} {verb} at {self.revision})"


class Batch(NamedTuple):
    """Events in order, whole revisions only; a watch resumed after `revision` misses and repeats nothing.

    A batch without events is a bookmark: nothing in the scope changed, but `revision` moved on.
    """

    events: list[Event]
    revision: Revision
