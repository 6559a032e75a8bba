"""Two servers on one etcd, of which one runs the controllers."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from kcp.controller.client import LocalClient
from kcp.controller.leader import Leader
from kcp.meta.fake_clock import FakeClock
from kcp.reconcilers.all import new_all
from kcp.store.etcd.options import EtcdOptions
from kcp.store.etcd.store import EtcdStore
from tests.reconcilers.control_plane import CONFIGMAPS, NAMESPACES, SERVICE_ACCOUNTS, ControlPlane, owned_by
from tests.store.etcd.etcd_server import EtcdNotFound, EtcdServer, find_etcd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    try:
        find_etcd()
    except EtcdNotFound as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    with EtcdServer(tmp_path) as server:
        yield server


def start(plane: ControlPlane, name: str) -> None:
    leader = Leader(LocalClient(plane.registry, "leader"), plane.clock, name)
    plane.start(*new_all(plane.registry, sign_token=lambda *names: "", root_ca=b""), leader=leader)


async def until(is_so: Callable[[], bool], clock: FakeClock) -> None:
    """What is told by etcd comes when it comes; the clock goes on so that nobody waits for it."""
    async with asyncio.timeout(60):
        while not is_so():
            clock.advance(0.001)
            await asyncio.sleep(0)


async def test_the_second_goes_on_where_the_first_stopped(etcd: EtcdServer, tmp_path: Path) -> None:
    options, clock = EtcdOptions((etcd.endpoint,)), FakeClock()
    async with (
        await EtcdStore.open(tmp_path / "one", options, prefix="/kcp") as first,
        await EtcdStore.open(tmp_path / "two", options, prefix="/kcp") as second,
    ):
        one, two = ControlPlane(first, clock), ControlPlane(second, clock)
        await one.create_namespace("kube-system", cluster="system:admin")
        await two.create_namespace("default")
        start(one, "one")
        await until(lambda: one.manager is not None and one.manager.is_idle, clock)
        start(two, "two")
        await until(lambda: two.get(SERVICE_ACCOUNTS, "default", "default") is not None, clock)
        owner = await two.create(CONFIGMAPS, "owner", "default")
        await two.create(CONFIGMAPS, "child", "default", metadata=owned_by(owner))
        await two.create_namespace("doomed")
        await one.stop()
        await two.delete(CONFIGMAPS, "owner", "default")
        await two.delete(NAMESPACES, "doomed")
        await until(lambda: two.names(CONFIGMAPS) == [], clock)
        await until(lambda: two.names(NAMESPACES) == ["default"], clock)
        await two.stop()
