"""The work queue."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kcp.controller.queue import ShutDown, WorkQueue
from kcp.meta.fake_clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def queue(clock: FakeClock) -> AsyncIterator[WorkQueue]:
    queue = WorkQueue(clock)
    delays = asyncio.create_task(queue.run_delays())
    yield queue
    delays.cancel()
    await asyncio.gather(delays, return_exceptions=True)


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_keys_come_in_order_and_once(queue: WorkQueue) -> None:
    for key in ("a", "b", "a"):
        queue.add(key, 1)
    assert len(queue) == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0
    assert queue.running == 2


async def test_a_key_is_not_run_twice_at_once(queue: WorkQueue) -> None:
    queue.add("a", 1)
    await queue.get()
    queue.add("a", 2)
    queue.add("b", 3)
    assert await queue.get() == "b"
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    queue.done("b")
    assert queue.running == 0


async def test_delayed_keys_come_when_it_is_time(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add_after("late", 20, 1)
    await turns()
    queue.add_after("early", 10, 1)
    queue.add_after("now", 0, 1)
    assert await queue.get() == "now"
    await turns()
    clock.advance(10)
    assert await queue.get() == "early"
    assert queue.delayed == 1
    await turns()
    clock.advance(10)
    assert await queue.get() == "late"


async def test_the_earlier_of_two_delays_counts(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add_after("a", 10, 5)
    queue.add_after("a", 20, 3)
    queue.add_after("b", 20, 5)
    queue.add_after("b", 5, 7)
    assert queue.oldest == 3
    await turns()
    clock.advance(5)
    assert await queue.get() == "b"
    await turns()
    clock.advance(5)
    assert await queue.get() == "a"
    await turns()
    clock.advance(100)
    await turns()
    assert len(queue) == 0


async def test_a_run_is_what_a_delay_waited_for(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add_after("a", 10, 1)
    queue.add("a", 9)
    assert await queue.get() == "a"
    assert queue.since("a") == 1
    queue.done("a")
    await turns()
    clock.advance(10)
    await turns()
    assert len(queue) == 0
    assert queue.oldest is None


async def test_failures_are_tried_again_ever_more_rarely(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add("a", 1)
    delays = []
    for _ in range(22):
        await queue.get()
        delays.append(queue.retry("a"))
        queue.done("a")
        await turns()
        clock.advance(delays[-1])
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-2:] == [1000, 1000]
    await queue.get()
    assert queue.failures("a") == 22
    queue.forget("a")
    assert queue.retry("a") == 0.005


async def test_the_oldest_revision_not_done_is_known(queue: WorkQueue) -> None:
    queue.add("a", 7)
    queue.add("a", 5)
    queue.add("b", 9)
    assert queue.oldest == 5
    await queue.get()
    assert queue.oldest == 5
    queue.done("a")
    assert queue.oldest == 9


async def test_a_full_queue_makes_others_wait(queue: WorkQueue) -> None:
    await queue.wait_for_room(1)
    queue.add("a", 1)
    waiting = asyncio.create_task(queue.wait_for_room(1))
    await turns()
    assert not waiting.done()
    await queue.get()
    await waiting


async def test_shutting_down_wakes_every_worker(queue: WorkQueue) -> None:
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await turns()
    queue.shut_down()
    assert [type(error) for error in await asyncio.gather(*workers, return_exceptions=True)] == [ShutDown] * 3


async def test_nothing_is_handed_out_after_shutting_down(queue: WorkQueue) -> None:
    queue.add("a", 1)
    queue.shut_down()
    with pytest.raises(ShutDown):
        await queue.get()
    assert queue.oldest == 1, "it is still to be done, by whoever comes next"
