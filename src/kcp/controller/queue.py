"""A queue of keys: each at most once, each by one worker at a time, failed ones again after a growing while.

Must not know what a key stands for. Nothing is kept of a key that is neither waiting, running nor failing.

    add(k)            waiting [k]
    get() -> k        running {k}
    add(k), add(k)    running {k}, again {k}          not handed to a second worker
    done(k)           waiting [k]
    retry(k)          delayed until now + 5 ms, then 10 ms, 20 ms … 1000 s, while it goes on failing
    forget(k)         the next failure counts as the first

Each waiting key remembers the oldest revision that asked for it, so that `oldest` tells up to where all is done.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import TYPE_CHECKING, Final

from kcp.controller.waiting import wait_any

if TYPE_CHECKING:
    from collections.abc import Hashable

    from kcp.meta.clock import Clock

BASE_DELAY: Final = 0.005
MAX_DELAY: Final = 1000.0  # as client-go: a bit over a quarter of an hour
_RESOLUTION: Final = 1e-6  # seconds; what sums of delays may differ by is no reason to sleep again
_END: Final = object()


class ShutDown(Exception):
    """There will be no more keys."""


class WorkQueue:
    def __init__(self, clock: Clock, *, base_delay: float = BASE_DELAY, max_delay: float = MAX_DELAY) -> None:
        self._clock = clock
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._ready: asyncio.Queue[Hashable] = asyncio.Queue()
        self._waiting: dict[Hashable, int] = {}  # ready, or to be run again once done; and since which revision
        self._running: dict[Hashable, int] = {}
        self._delayed: dict[Hashable, tuple[float, int]] = {}  # when, and since which revision
        self._heap: list[tuple[float, int, Hashable]] = []
        self._order = itertools.count()
        self._earlier = asyncio.Event()  # a delay was added that ends before all others
        self._failures: dict[Hashable, int] = {}
        self._room = asyncio.Event()

    def __len__(self) -> int:
        """Keys that are ready or will be as soon as they are done."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def delayed(self) -> int:
        return len(self._delayed)

    @property
    def oldest(self) -> int | None:
        """The oldest revision that asked for something not done yet."""
        pending = itertools.chain(
            self._waiting.values(), self._running.values(), (since for _, since in self._delayed.values())
        )
        return min(pending, default=None)

    def add(self, key: Hashable, since: int) -> None:
        known = self._waiting.get(key)
        if known is not None:
            self._waiting[key] = min(known, since)
            return
        self._waiting[key] = since
        if key not in self._running:
            self._ready.put_nowait(key)

    def add_after(self, key: Hashable, seconds: float, since: int) -> None:
        """Add the key after a while, or when somebody adds it before."""
        if seconds <= 0:
            self.add(key, since)
            return
        when = self._clock.monotonic() + seconds
        known = self._delayed.get(key)
        if known is not None:
            since = min(since, known[1])
            if known[0] <= when:
                self._delayed[key] = (known[0], since)
                return
        self._delayed[key] = (when, since)
        heapq.heappush(self._heap, (when, next(self._order), key))
        if self._heap[0][2] == key:
            self._earlier.set()

    def retry(self, key: Hashable) -> float:
        """Run a key that failed again; returns in how many seconds. Call it before `done`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # Beyond 60 doublings every delay is the longest, and the number would soon not fit.
        delay = min(self._base_delay * 2.0 ** min(failures, 60), self._max_delay)
        self.add_after(key, delay, self.since(key))
        return delay

    def failures(self, key: Hashable) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: Hashable) -> None:
        self._failures.pop(key, None)

    def since(self, key: Hashable) -> int:
        """The revision on whose behalf a running key runs."""
        return self._running[key]

    async def get(self) -> Hashable:
        """The next key; `done` must follow. Raises ShutDown."""
        key = await self._ready.get()
        if key is _END:
            self._ready.put_nowait(_END)  # wakes the next worker
            raise ShutDown
        since = self._waiting.pop(key)
        delayed = self._delayed.pop(key, None)  # this run is what it waited for
        self._running[key] = since if delayed is None else min(since, delayed[1])
        self._room.set()
        return key

    def done(self, key: Hashable) -> None:
        del self._running[key]
        if key in self._waiting:
            self._ready.put_nowait(key)

    async def wait_for_room(self, limit: int) -> None:
        """Return once fewer than `limit` keys wait."""
        while len(self._waiting) >= limit:
            self._room.clear()
            await self._room.wait()

    def shut_down(self) -> None:
        """Hand out nothing more. Keys that run now may still be done."""
        while not self._ready.empty():
            self._ready.get_nowait()
        self._ready.put_nowait(_END)

    async def run_delays(self) -> None:
        """Move delayed keys to the ready ones when their time comes, until cancelled."""
        while True:
            self._earlier.clear()
            pause = self._release_due()
            if pause is None:
                await self._earlier.wait()
            else:
                await self._sleep(pause)

    def _release_due(self) -> float | None:
        """Add what is due; returns the seconds until the next is."""
        now = self._clock.monotonic()
        while self._heap:
            when, _, key = self._heap[0]
            delayed = self._delayed.get(key)
            if delayed is not None and delayed[0] == when:
                if when - now > _RESOLUTION:
                    return when - now
                del self._delayed[key]
                self.add(key, delayed[1])
            heapq.heappop(self._heap)
        return None

    async def _sleep(self, seconds: float) -> None:
        """Sleep, unless something shorter comes up."""
        await wait_any(self._earlier.wait(), self._clock.sleep(seconds))
