"""One watcher's place in the stream: *synced* with the hub, or *behind* and reading the log.

    synced ──── its buffer is full ────> behind ──── the log has what it missed ────> synced
                                           └──────── the log does not ──────────────> Compacted

A watcher that does not keep up costs a bounded buffer, which is dropped when it overflows; the log has the same events.
The writer and the other watchers never wait for it. `_position` is the only truth about progress: everything up to it
was handed out, and the buffer holds only what is newer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kcp.store.errors import Closed
from kcp.store.events import Batch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType
    from typing import Self

    from kcp.store.events import Event
    from kcp.store.hub import Hub
    from kcp.store.interface import AcceptEvent
    from kcp.store.keys import Revision, Scope


class HubWatcher:
    """See `Watcher` in interface.py. One task at a time may wait in `next`."""

    __slots__ = (
        "_accept",
        "_behind",
        "_buffer",
        "_buffered_bytes",
        "_closed",
        "_error",
        "_hub",
        "_position",
        "_waiter",
        "scope",
    )

    def __init__(self, hub: Hub, scope: Scope, after: Revision, accept: AcceptEvent | None) -> None:
        self.scope = scope
        self._hub = hub
        self._accept = accept
        self._position = after
        self._behind = after < hub.revision  # what was published before now is only in the log
        self._buffer: list[Event] = []
        self._buffered_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._closed = False

    @property
    def revision(self) -> Revision:
        if self._behind or self._buffer:
            return self._position
        return max(self._position, self._hub.revision)

    # -- the hub's side -------------------------------------------------------

    def offer(self, event: Event) -> None:
        if self._behind or event.revision <= self._position:
            return
        if self._accept is not None and not self._accepts(event):
            return
        if not self._buffer:
            # All that was published before was taken. Without this, a watcher that is idle for long would, when it
            # falls behind, ask the log for a time before its last event and find it compacted.
            self._position = max(self._position, self._hub.revision)
        self._buffer.append(event)
        self._buffered_bytes += event.size
        options = self._hub.options
        if len(self._buffer) > options.watch_buffer_events or (
            self._buffered_bytes > options.watch_buffer_bytes and len(self._buffer) > 1
        ):
            self.fall_behind()
        else:
            self._wake()

    def _accepts(self, event: Event) -> bool:
        """A filter must not raise. If it does, that is the trouble of its own watcher, not of the commit."""
        assert self._accept is not None
        try:
            return self._accept(event)
        except Exception as error:
            self.fail(error)
            return False

    def fail(self, error: Exception) -> None:
        """Hand out nothing more; `next` raises the error."""
        self._error = error
        self._behind = True
        self._buffer = []
        self._wake()

    def fall_behind(self) -> None:
        self._behind = True
        self._buffer = []
        self._buffered_bytes = 0
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._buffer = []
        self._hub.forget(self)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- the reader's side ----------------------------------------------------

    async def next(self, timeout: float | None = None) -> Batch:
        if self._waiter is not None:
            raise RuntimeError("another task waits for this watcher already")
        if self._behind:
            # Between chunks others get their turn, also when this watcher's socket never makes it wait.
            await asyncio.sleep(0)
        while not self._closed:
            if self._error is not None:
                raise self._error
            if self._behind:
                batch = self._catch_up()
                if batch.events:
                    return batch
                await asyncio.sleep(0)
            elif self._buffer:
                return self._take()
            elif not await self._wait(timeout):
                return self._take() if not (self._behind or self._closed) else Batch([], self._position)
        raise Closed

    def _take(self) -> Batch:
        events, self._buffer = self._buffer, []
        self._buffered_bytes = 0
        # The hub publishes whole groups without a pause, so whatever it has published was offered to us.
        self._position = max(self._position, self._hub.revision)
        return Batch(events, self._position)

    def _catch_up(self) -> Batch:
        events, reached = self._hub.read_changes(self.scope, self._position)
        self._position = reached
        self._behind = reached < self._hub.revision
        if self._accept is not None:
            events = [event for event in events if self._accept(event)]
        return Batch(events, reached)

    async def _wait(self, timeout: float | None) -> bool:
        """True if something may have happened, False if the time is up."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, _time_out, waiter)
        try:
            return await waiter is None
        except TimeoutError:
            return False
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self._batches()

    async def _batches(self) -> AsyncIterator[Batch]:
        while not self._closed:
            try:
                yield await self.next()
            except Closed:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def _time_out(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
