"""Whether the store answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from kcp.meta.fake_clock import FakeClock
from kcp.server.store_health import INTERVAL_SECONDS, StoreHealth
from kcp.store import Closed, Revision, Unavailable

if TYPE_CHECKING:
    import pytest

    from kcp.store import Store


class FakeStore:
    def __init__(self) -> None:
        self.trouble: Exception | None = None

    async def sync(self) -> Revision:
        if isinstance(self.trouble, TimeoutError):
            await asyncio.Event().wait()
        if self.trouble is not None:
            raise self.trouble
        return Revision(1)


async def look_again(clock: FakeClock) -> None:
    await clock.wait_for_sleepers()
    clock.advance(INTERVAL_SECONDS)
    for _ in range(5):
        await asyncio.sleep(0)


async def test_trouble_shows_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcp.server.store_health.TIMEOUT_SECONDS", 0.01)
    store, clock = FakeStore(), FakeClock()
    health = StoreHealth(cast("Store", store), clock)
    running = asyncio.create_task(health.run())
    await clock.wait_for_sleepers()
    assert health.check() == ""
    store.trouble = Unavailable("no leader")
    await look_again(clock)
    assert health.check() == "no leader"
    store.trouble = TimeoutError()
    await look_again(clock)
    await clock.wait_for_sleepers()
    assert "did not answer" in health.check()
    store.trouble = None
    await look_again(clock)
    assert health.check() == ""
    store.trouble = Closed()
    await look_again(clock)
    await running
    assert health.check() == "the store is closed"
