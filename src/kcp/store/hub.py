"""Fan-out: the writer's events to the watchers whose scope has them.

Watchers are indexed by (resource, cluster, namespace), so an event costs what its own watchers cost, however many
others there are. Everything here runs on the event loop, between two awaits: publishing and subscribing cannot overlap,
which is the whole proof that a watcher sees no gap and no repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store.errors import Compacted
from kcp.store.watcher import HubWatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.store.events import Event
    from kcp.store.interface import AcceptEvent
    from kcp.store.keys import ResourceKey, Revision, Scope
    from kcp.store.options import StoreOptions
    from kcp.store.view import View


class Hub:
    """Knows every watcher of one store.

    `view` gives what the loop reads from. It may be ahead of what was published, never behind: a watcher that starts at
    the view's revision, or reads the log up to it, passes over what is published late.
    """

    def __init__(self, view: Callable[[], View], options: StoreOptions) -> None:
        self._view = view
        self.options = options
        self.revision: Revision = view().revision  # all events up to here have been published
        # The inner dict is an ordered set: first come, first served.
        self._index: dict[tuple[ResourceKey | None, str | None, str | None], dict[HubWatcher, None]] = {}

    def watch(self, scope: Scope, after: Revision, accept: AcceptEvent | None) -> HubWatcher:
        self._view().check_reach(after)
        watcher = HubWatcher(self, scope, after, accept)
        self._index.setdefault(scope, {})[watcher] = None
        return watcher

    def forget(self, watcher: HubWatcher) -> None:
        watchers = self._index.get(watcher.scope, {})
        watchers.pop(watcher, None)
        if not watchers:
            self._index.pop(watcher.scope, None)

    def publish(self, events: list[Event], revision: Revision) -> None:
        """Hand out the events of whole revisions, in order. `revision` is the last, also when it had no events."""
        if self._index:
            for event in events:
                for scope in _scopes_of(event):
                    if watchers := self._index.get(scope):
                        for watcher in watchers:
                            watcher.offer(event)
        self.revision = revision

    def read_changes(self, scope: Scope, after: Revision) -> tuple[list[Event], Revision]:
        return self._view().changes(scope, after, self.options.catch_up_events, self.options.watch_buffer_bytes)

    def expire(self, revision: Revision) -> None:
        """End every watch: history was replaced and begins at `revision`, whatever the watchers' own numbers say."""
        for watcher in self._watchers():
            watcher.fail(Compacted(watcher.revision, revision))

    def close(self) -> None:
        for watcher in self._watchers():
            watcher.close()

    def __len__(self) -> int:
        return sum(len(watchers) for watchers in self._index.values())

    def _watchers(self) -> list[HubWatcher]:
        return [watcher for watchers in self._index.values() for watcher in watchers]


def _scopes_of(event: Event) -> tuple[tuple[ResourceKey | None, str | None, str | None], ...]:
    """Each way to ask for an object of this key. Plain tuples hash and compare as Scopes do, and are made faster."""
    resource, cluster, namespace, _ = event.key
    return (
        (resource, cluster, namespace),
        (resource, cluster, None),
        (resource, None, None),
        (resource, None, namespace),
        (None, cluster, None),
        (None, None, None),
        (None, cluster, namespace),
        (None, None, namespace),
    )
