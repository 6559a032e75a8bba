"""A clock that moves only when told to, so that tests wait for nothing.

Must not be used by the product itself; it ships so that those who embed the server can test with it too.

    clock = FakeClock()
    sleeper = asyncio.create_task(clock.sleep(10))
    await clock.wait_for_sleepers()  # the task has reached its sleep
    clock.advance(10)                # now it is ready to run; it runs when the test next awaits
    await sleeper
"""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta
from typing import Final

_DEFAULT_START: Final = datetime(2025, 1, 1, tzinfo=UTC)
_NANOSECONDS: Final = 1_000_000_000


class FakeClock:
    """Implements `kcp.meta.clock.Clock`. Time is counted in whole nanoseconds: ten steps of 0.1 are exactly one."""

    def __init__(self, start: datetime = _DEFAULT_START) -> None:
        self._start = start
        self._elapsed = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._arrival = asyncio.Event()

    def now(self) -> datetime:
        return self._start + timedelta(microseconds=self._elapsed // 1000)

    def monotonic(self) -> float:
        return self._elapsed / _NANOSECONDS

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + _nanoseconds(seconds), next(self._order), woken))
        self._arrival.set()
        await woken

    @property
    def sleepers(self) -> int:
        """How many are asleep now; cancelled ones do not count."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def advance(self, seconds: float) -> None:
        """Move time forward, waking those whose time has come, earliest first and first come first served.

        They run when the caller next awaits, and all see the new time: to see each moment, advance in steps.
        """
        if seconds < 0:
            raise ValueError(f"time does not run backwards: {seconds}")
        self._elapsed += _nanoseconds(seconds)
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)

    async def wait_for_sleepers(self, count: int = 1) -> None:
        """Return once at least `count` are asleep, that is: once the code under test has nothing left to do."""
        while self.sleepers < count:
            self._arrival.clear()
            await self._arrival.wait()


def _nanoseconds(seconds: float) -> int:
    return round(seconds * _NANOSECONDS)
