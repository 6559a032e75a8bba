"""What both stores have on this machine: the engine, its writer, the hub, and upkeep of the log.

A store adds how commits are decided and when reads are fresh.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kcp.meta.clock import SystemClock
from kcp.store import compaction
from kcp.store.engine import Engine
from kcp.store.errors import Closed, StoreError
from kcp.store.hub import Hub
from kcp.store.options import StoreOptions
from kcp.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self

    from kcp.meta.clock import Clock
    from kcp.store.interface import AcceptEvent, AcceptRecord, Page
    from kcp.store.keys import ObjectKey, ResourceKey, Revision, Scope
    from kcp.store.transaction import Group
    from kcp.store.value import Record
    from kcp.store.view import View
    from kcp.store.watcher import HubWatcher

log = logging.getLogger(__name__)


class LocalStore:
    """The reading half of `Store`; see interface.py for the contract of each method.

    Its tasks are held in a list rather than a TaskGroup, because a store is often opened in one task and closed in
    another (a server's start and stop), which a TaskGroup does not allow. `aclose` cancels and awaits each.
    """

    def __init__(
        self, path: Path, options: StoreOptions | None, clock: Clock | None, *, durable: bool, origin: str
    ) -> None:
        self.options = options or StoreOptions()
        self.clock = clock or SystemClock()
        self._engine = Engine(path, map_bytes=self.options.map_bytes, durable=durable, origin=origin)
        self._closed = False
        self._closing = asyncio.Lock()
        self._is_released = False
        self._view: View | None = None
        self._hub = Hub(self._open_view, self.options)
        self._writer = Writer(
            self._engine,
            self.clock,
            deliver=self._deliver,
            grow=self._grow,
            group_jobs=self.options.group_jobs,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._spawn(self._keep_compacting())

    @property
    def revision(self) -> Revision:
        return self._open_view().revision

    @property
    def compacted(self) -> Revision:
        return self._open_view().compacted

    def get(self, key: ObjectKey) -> Record | None:
        return (self._view or self._open_view()).get(key)

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
        view = self._open_view()
        return view.range(scope, after=after, limit=limit, revision=revision, accept=accept, contains=contains)

    def count(self, scope: Scope, *, after: ObjectKey | None = None) -> int:
        return self._open_view().count(scope, after=after)

    def counts(self, cluster: str) -> dict[ResourceKey, int]:
        return self._open_view().counts(cluster)

    def watch(self, scope: Scope, after: Revision, *, accept: AcceptEvent | None = None) -> HubWatcher:
        self._check_open()
        return self._hub.watch(scope, after, accept)

    async def compact(self, revision: Revision) -> None:
        self._check_open()
        await self._writer.submit(lambda group: group.compact(revision))
        await self._remove_compacted()

    async def _remove_compacted(self) -> None:
        while await self._writer.submit(lambda group: compaction.remove_step(group, self.options.compact_step)):
            pass

    async def aclose(self) -> None:
        self._closed = True
        # Whoever comes second, or again after a cancelled first time, finishes the work or waits until it is done.
        async with self._closing:
            if not self._is_released:
                await self._drain()
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
                self._hub.close()
                await self._writer.aclose()
                await self._release()
                self._is_released = True

    async def _drain(self) -> None:
        """Wait for commits that are decided elsewhere; the writer's own are finished when it closes."""

    async def _release(self) -> None:
        self._close_view()
        self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed

    def _open_view(self) -> View:
        """What the loop reads from until the next group is delivered.

        It is given up before a commit's caller or watchers hear of it, so whoever was told of a commit reads it.
        """
        if self._view is None:
            self._check_open()
            self._view = self._engine.view()
        return self._view

    def _close_view(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None

    def _deliver(self, group: Group) -> None:
        self._close_view()
        if group.is_new_history:
            self._engine.past.clear()
            self._hub.expire(group.revision)
        self._hub.publish(group.events, group.revision)

    def _grow(self) -> None:
        self._close_view()
        self._engine.env.grow()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def _keep_compacting(self) -> None:
        while True:
            try:
                self._engine.env.clear_dead_readers()
                view = self._open_view()
                revision = compaction.choose_revision(view, self.options, self.clock.now())
                if revision > view.compacted:
                    await self.compact(revision)
                else:
                    await self._remove_compacted()  # what a crash may have left
            except StoreError as error:
                # A full disk, say. The log only grows longer until the next look.
                log.warning("the log was not compacted: %s", error)
            await self.clock.sleep(self.options.compact_interval)
