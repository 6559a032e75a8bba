"""Fan-out: how fast one change reaches one watcher, and a thousand."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.measure import Timed, best, latency_of, progress, quiet_collector
from benchmarks.report import Section, rate_row
from benchmarks.store import objects
from kcp.store import Closed, EmbeddedStore, Put, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.report import Row
    from benchmarks.store.settings import Settings
    from kcp.store import Watcher

_WRITERS = 32
_CLUSTER = "root"
_SINGLE_EVENTS = 300
_BOOKMARK_SECONDS = 60.0  # a server's watches wait no longer than this without a word


class Audience:
    """Watchers of one scope, each read by a task of its own, and a wait for the last of them."""

    def __init__(self, store: Store, size: int) -> None:
        self.size = size
        self._watchers = [store.watch(objects.in_cluster(_CLUSTER), store.revision) for _ in range(size)]
        self._done = 0
        self._target = 0
        self._reached = asyncio.Event()

    def expect(self, events: int) -> asyncio.Event:
        """Set once every watcher has received this many more events."""
        self._target += events
        self._done = 0
        self._reached.clear()
        return self._reached

    async def listen(self) -> None:
        async with asyncio.TaskGroup() as group:
            for watcher in self._watchers:
                group.create_task(self._receive(watcher))

    async def _receive(self, watcher: Watcher) -> None:
        received = 0
        while True:
            try:
                batch = await watcher.next(_BOOKMARK_SECONDS)
            except Closed:
                return
            before = received
            received += len(batch.events)
            if before < self._target <= received:
                self._done += 1
                if self._done == self.size:
                    self._reached.set()

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.close()


async def measure_watches(settings: Settings) -> Section:
    """Commits of 1 KiB in one cluster, and watchers of that cluster."""
    rows: list[Row] = []
    async with await EmbeddedStore.open(settings.directory / "watches") as store:
        for size in (1, settings.watchers):
            watchers = "1 watcher" if size == 1 else f"{size:,} watchers"
            progress(f"events to {watchers}")
            events = max(min(settings.fan_out_events // size, settings.commits), 1)
            async with _audience(store, size) as audience:
                flood = best([await _flood(store, audience, events) for _ in range(settings.rounds)])
                single = await _one_by_one(store, audience, min(events, _SINGLE_EVENTS))
            timed = Timed(flood.per_second, single.latency)
            note = "latency of one change, from calling commit (fsync included) to the last watcher"
            rows.append(rate_row(f"events to {watchers} from {_WRITERS} writers", timed, note=note))
    return Section("watch fan-out", rows)


@asynccontextmanager
async def _audience(store: Store, size: int) -> AsyncIterator[Audience]:
    audience = Audience(store, size)
    async with asyncio.TaskGroup() as group:
        group.create_task(audience.listen())
        yield audience
        audience.close()


async def _flood(store: Store, audience: Audience, events: int) -> Timed:
    """As many commits as the writers manage, until the last watcher has the last event."""
    packed = objects.value()
    reached = audience.expect(events)
    commits = ([Put(objects.key(number, _CLUSTER), packed)] for number in range(events))
    with quiet_collector():
        start = time.perf_counter()
        await objects.commit_all(store, commits, writers=_WRITERS)
        await reached.wait()
        return Timed(events * audience.size / (time.perf_counter() - start))


async def _one_by_one(store: Store, audience: Audience, events: int) -> Timed:
    packed = objects.value()
    seconds = []
    with quiet_collector():
        for number in range(events):
            reached = audience.expect(1)
            start = time.perf_counter()
            await store.commit([Put(objects.key(number, _CLUSTER), packed)])
            await reached.wait()
            seconds.append(time.perf_counter() - start)
    return Timed(events * audience.size / sum(seconds), latency_of(seconds))
