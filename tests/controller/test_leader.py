"""Leadership among several servers, and the controllers that follow it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from kcp.controller.client import LocalClient
from kcp.controller.controller import DONE, Controller, Outcome, Watch
from kcp.controller.leader import LEASE_NAME, LEASES, Leader, LeaderOptions
from kcp.controller.manager import ControllerManager
from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from kcp.registry.changes import ChangeFeed, ResourceKey
from kcp.store import EmbeddedStore
from tests.reconcilers.control_plane import CONFIGMAPS, ControlPlane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kcp.meta.codec import Object

ADMIN = "system:admin"


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        plane = ControlPlane(store, FakeClock())
        await plane.create_namespace("kube-system", cluster=ADMIN)
        await plane.create_namespace("default")
        yield plane


def make_leader(plane: ControlPlane, name: str) -> Leader:
    return Leader(LocalClient(plane.registry, "leader"), plane.clock, name)


def lease_of(plane: ControlPlane) -> Object:
    lease = plane.get(LEASES, LEASE_NAME, "kube-system", ADMIN)
    assert lease is not None
    spec: Object = lease["spec"]
    return spec


async def test_the_first_one_leads(plane: ControlPlane) -> None:
    one, two = make_leader(plane, "one"), make_leader(plane, "two")
    assert await one.try_once()
    assert not await two.try_once()
    assert lease_of(plane) == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2025-01-01T00:00:00.000000Z",
        "renewTime": "2025-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    plane.clock.advance(5)
    assert await one.try_once()
    assert lease_of(plane)["renewTime"] == "2025-01-01T00:00:05.000000Z"
    assert lease_of(plane)["acquireTime"] == "2025-01-01T00:00:00.000000Z"


async def test_a_silent_leader_is_replaced(plane: ControlPlane) -> None:
    one, two = make_leader(plane, "one"), make_leader(plane, "two")
    await one.try_once()
    assert not await two.try_once()
    plane.clock.advance(14)
    assert not await two.try_once()
    plane.clock.advance(1)
    assert await two.try_once()
    assert lease_of(plane)["leaseTransitions"] == 1
    assert not await one.try_once(), "it sees that it was replaced"


async def test_a_released_lease_is_free(plane: ControlPlane) -> None:
    one, two = make_leader(plane, "one"), make_leader(plane, "two")
    await one.try_once()
    await two.release()
    assert lease_of(plane)["holderIdentity"] == "one", "nobody releases for others"
    await one.release()
    assert "holderIdentity" not in lease_of(plane)
    assert await two.try_once()


async def test_two_at_once_are_one(plane: ControlPlane) -> None:
    leaders = [make_leader(plane, name) for name in ("one", "two", "three")]
    results = await asyncio.gather(*(leader.try_once() for leader in leaders))
    assert sorted(results) == [False, False, True]


async def test_a_leader_that_cannot_renew_gives_up(plane: ControlPlane, caplog: pytest.LogCaptureFixture) -> None:
    leader = make_leader(plane, "one")
    await leader.try_once()

    async def fail(*args: object, **options: object) -> Object:
        raise errors.ServiceUnavailable("no storage")

    leader._client.update = fail  # type: ignore[method-assign] # a store that is away
    keeping = asyncio.create_task(leader.keep(asyncio.Event()))
    for _ in range(5):
        await plane.clock.wait_for_sleepers()
        assert not keeping.done()
        plane.clock.advance(2)
        await asyncio.sleep(0)
    await keeping
    assert "no longer leads" in caplog.text


async def test_a_leader_that_was_replaced_stops_at_once(plane: ControlPlane) -> None:
    one, two = make_leader(plane, "one"), make_leader(plane, "two")
    await one.try_once()
    keeping = asyncio.create_task(one.keep(asyncio.Event()))
    await plane.clock.wait_for_sleepers()

    def take(lease: Object) -> None:
        lease["spec"]["holderIdentity"] = "two"

    await plane.client.update(ADMIN, LEASES, "kube-system", LEASE_NAME, take)
    plane.clock.advance(2)
    await keeping
    assert await two.try_once()


async def test_told_to_stop_nobody_waits_for_the_lease(plane: ControlPlane) -> None:
    await make_leader(plane, "one").try_once()
    stopping = asyncio.Event()
    waiting = asyncio.create_task(make_leader(plane, "two").acquire(stopping))
    await plane.clock.wait_for_sleepers()
    stopping.set()
    assert not await waiting
    assert not await make_leader(plane, "three").acquire(stopping)


class Server:
    """One of several servers: a controller that notes what it sees."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.seen: list[str] = []
        self.stopping = asyncio.Event()
        self.leader = make_leader(plane, name)
        controller = Controller(
            "noting",
            self.note,
            watches=(Watch(ResourceKey("", "configmaps"), lambda change: (change.key.name,)),),
        )
        self.manager = ControllerManager([controller], ChangeFeed(plane.store), plane.clock, leader=self.leader)
        self.task = asyncio.create_task(self.manager.run(self.stopping))

    async def note(self, name: str) -> Outcome:
        self.seen.append(name)
        return DONE

    async def wait_for_work(self) -> None:
        while not self.manager.is_idle:
            assert not self.task.done()
            await asyncio.sleep(0)

    async def stop(self) -> None:
        self.stopping.set()
        await self.task


async def test_controllers_run_where_the_lease_says(plane: ControlPlane) -> None:
    one = Server(plane, "one")
    await one.wait_for_work()
    two = Server(plane, "two")
    await plane.create(CONFIGMAPS, "a", "default")
    await one.wait_for_work()
    assert (one.seen, two.seen) == (["a"], [])
    assert not two.manager.is_idle, "it does not run"
    await one.stop()
    await plane.create(CONFIGMAPS, "b", "default")
    plane.clock.advance(2)
    await two.wait_for_work()
    assert (one.seen, two.seen) == (["a"], ["b"]), "the checkpoint goes from one to the other"
    await two.stop()


async def test_a_leader_that_lost_the_lease_comes_back(plane: ControlPlane, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    one = Server(plane, "one")
    await one.wait_for_work()

    def take(lease: Object) -> None:
        lease["spec"]["holderIdentity"] = "stranger"

    await plane.client.update(ADMIN, LEASES, "kube-system", LEASE_NAME, take)
    while "no longer leads" not in caplog.text:
        await plane.clock.wait_for_sleepers()
        plane.clock.advance(2)
        await asyncio.sleep(0)
    while caplog.text.count("one leads the controllers") < 2:
        await plane.clock.wait_for_sleepers()
        plane.clock.advance(2)
        await asyncio.sleep(0)
    await one.wait_for_work()
    await plane.create(CONFIGMAPS, "a", "default")
    await one.wait_for_work()
    assert one.seen == ["a"]
    await one.stop()


async def test_options_leave_time_to_stop() -> None:
    options = LeaderOptions()
    assert options.retry_seconds < options.renew_seconds < options.lease_seconds
