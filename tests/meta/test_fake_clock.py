import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kcp.meta.fake_clock import FakeClock


async def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock = FakeClock()
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with asyncio.TaskGroup() as tasks:
        for name, seconds in (("late", 3.0), ("early", 1.0), ("also early", 1.0)):
            tasks.create_task(sleeper(name, seconds))
        await clock.wait_for_sleepers(3)
        clock.advance(5)
    assert woken == ["early", "also early", "late"]


async def test_nobody_wakes_too_soon() -> None:
    clock = FakeClock()
    sleeper = asyncio.create_task(clock.sleep(1))
    await clock.wait_for_sleepers()
    clock.advance(0.999_999_999)
    await asyncio.sleep(0)
    assert not sleeper.done()
    clock.advance(0.000_000_001)
    await sleeper


async def test_small_steps_add_up_exactly() -> None:
    clock = FakeClock()
    sleeper = asyncio.create_task(clock.sleep(1))
    await clock.wait_for_sleepers()
    for _ in range(10):
        clock.advance(0.1)
    await sleeper
    assert clock.monotonic() == 1.0


def test_both_times_move_together() -> None:
    start = datetime(2020, 2, 28, tzinfo=UTC)
    clock = FakeClock(start)
    clock.advance(86400.5)
    assert clock.now() == start + timedelta(days=1, seconds=0.5)
    assert clock.monotonic() == 86400.5


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    sleeper = asyncio.create_task(clock.sleep(1))
    await clock.wait_for_sleepers()
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert clock.sleepers == 0
    clock.advance(2)


async def test_sleeping_for_nothing_gives_others_a_turn() -> None:
    clock = FakeClock()
    other = asyncio.create_task(asyncio.sleep(0))
    await clock.sleep(0)
    await clock.sleep(-1)
    assert other.done()


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        FakeClock().advance(-1)
