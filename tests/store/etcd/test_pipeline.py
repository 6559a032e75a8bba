"""Changes on their way into the mirror, with a writer that does what the test says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from kcp.store.errors import NoSpace
from kcp.store.etcd.pipeline import Pipeline
from tests.store.etcd.calls import wait_for_other_tasks

if TYPE_CHECKING:
    from kcp.store.transaction import Group
    from kcp.store.writer import Writer


class FakeWriter:
    """Leaves every job under way."""

    def __init__(self) -> None:
        self.jobs: list[asyncio.Future[None]] = []

    def submit(self, run: object, size: int) -> asyncio.Future[None]:
        self.jobs.append(asyncio.get_running_loop().create_future())
        return self.jobs[-1]


def job(group: Group) -> None:
    """What it does is for the writer to say."""


def make_pipeline() -> tuple[FakeWriter, Pipeline]:
    writer = FakeWriter()
    return writer, Pipeline(cast("Writer", writer))


async def submit_and_wait(pipeline: Pipeline, jobs: int) -> None:
    async with pipeline:
        for _ in range(jobs):
            await pipeline.submit(job, 1)
        await asyncio.get_running_loop().create_future()  # for the next batch, which never comes


@pytest.mark.parametrize("failing", [0, 1, 2], ids=["oldest", "middle", "newest"])
async def test_a_failure_is_noticed_without_another_batch(failing: int) -> None:
    writer, pipeline = make_pipeline()
    following = asyncio.create_task(submit_and_wait(pipeline, 3))
    await asyncio.sleep(0)
    writer.jobs[failing].set_exception(NoSpace("full"))
    await asyncio.wait([following], timeout=0.01)
    assert not following.done()  # the others are still on their way
    for each in writer.jobs:
        if not each.done():
            each.set_result(None)
    with pytest.raises(NoSpace, match="full"):
        await following
    await wait_for_other_tasks()


async def test_cancellation_waits_for_what_is_under_way_and_is_passed_on() -> None:
    writer, pipeline = make_pipeline()
    following = asyncio.create_task(submit_and_wait(pipeline, 2))
    await asyncio.sleep(0)
    following.cancel()
    await asyncio.wait([following], timeout=0.01)
    assert not following.done()
    writer.jobs[0].set_exception(NoSpace("full"))
    writer.jobs[1].set_result(None)
    with pytest.raises(asyncio.CancelledError):
        await following
    await wait_for_other_tasks()


@pytest.mark.parametrize(("jobs", "size"), [(300, 1), (40, 1 << 20)], ids=["jobs", "bytes"])
async def test_what_is_under_way_is_bounded(jobs: int, size: int) -> None:
    writer, pipeline = make_pipeline()

    async def submit() -> None:
        async with pipeline:
            for _ in range(jobs):
                await pipeline.submit(job, size)

    submitting = asyncio.create_task(submit())
    await asyncio.wait([submitting], timeout=0.01)
    bound = len(writer.jobs)
    assert bound < jobs
    writer.jobs[0].set_result(None)
    await asyncio.wait([submitting], timeout=0.01)
    assert len(writer.jobs) == bound + 1
    while not submitting.done():
        for each in writer.jobs:
            if not each.done():
                each.set_result(None)
        await asyncio.sleep(0)
    await submitting
    assert len(writer.jobs) == jobs


async def test_a_failure_after_the_body_is_raised_as_well() -> None:
    writer, pipeline = make_pipeline()

    async def submit() -> None:
        async with pipeline:
            await pipeline.submit(job, 1)

    submitting = asyncio.create_task(submit())
    await asyncio.wait([submitting], timeout=0.01)
    writer.jobs[0].set_exception(NoSpace("full"))
    with pytest.raises(NoSpace, match="full"):
        await submitting
