"""Many who ask, one question."""

from __future__ import annotations

import asyncio

import pytest

from kcp.store.errors import Closed, Unavailable
from kcp.store.etcd.barrier import Barrier


class Etcd:
    """Answers when told to."""

    def __init__(self) -> None:
        self.questions: list[asyncio.Future[int]] = []

    async def ask(self) -> int:
        self.questions.append(asyncio.get_running_loop().create_future())
        return await self.questions[-1]


async def turn() -> None:
    """Let every task come as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_those_who_come_later_share_the_next_round_and_its_failure() -> None:
    etcd = Etcd()
    barrier = Barrier(etcd.ask)
    running = asyncio.create_task(barrier.run())
    first = asyncio.create_task(barrier.revision())
    await turn()
    later = [asyncio.create_task(barrier.revision()) for _ in range(5)]
    await turn()
    etcd.questions[0].set_result(7)
    assert await first == 7
    await turn()
    assert not any(task.done() for task in later)
    etcd.questions[1].set_exception(Unavailable("away"))
    outcomes = await asyncio.gather(*later, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["away"] * 5
    assert len(etcd.questions) == 2
    running.cancel()


async def test_one_who_gives_up_does_not_take_the_question_back() -> None:
    etcd = Etcd()
    barrier = Barrier(etcd.ask)
    running = asyncio.create_task(barrier.run())
    impatient, patient = asyncio.create_task(barrier.revision()), asyncio.create_task(barrier.revision())
    await turn()
    impatient.cancel()
    await turn()
    etcd.questions[0].set_result(7)
    assert await patient == 7
    running.cancel()


async def test_all_who_wait_are_told_of_the_end() -> None:
    etcd = Etcd()
    barrier = Barrier(etcd.ask)
    running = asyncio.create_task(barrier.run())
    first = asyncio.create_task(barrier.revision())
    await turn()
    second = asyncio.create_task(barrier.revision())
    await turn()
    running.cancel()
    for task in (first, second):
        with pytest.raises(Closed):
            await task
