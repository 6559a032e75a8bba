"""What is looked at and counted in an assembled server."""

from __future__ import annotations

import asyncio
import builtins
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcp.auth import x509
from kcp.endpoints.flow import Flow, FlowOptions, Lane
from kcp.meta.clock import SystemClock
from kcp.meta.fake_clock import FakeClock
from kcp.server.assemble import (
    ControllerFigures,
    Parts,
    add_checks,
    add_figures,
    make_manager,
    resident_memory_bytes,
)
from kcp.server.certificates import Authority
from kcp.server.options import ServerOptions
from kcp.store import EmbeddedStore, ResourceKey
from kcp.store.etcd.options import EtcdOptions
from tests.endpoints.api import API, USER, open_api
from tests.store.objects import create

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with await EmbeddedStore.open(tmp_path) as store:
        yield Parts(
            options=ServerOptions(tmp_path),
            store=store,
            clock=SystemClock(),
            url="https://127.0.0.1:6443",
            admins={},
            client_authority=Authority(b"", b""),
            signing_key=b"",
            verification_keys=(),
            stopping=asyncio.Event(),
            draining=asyncio.Event(),
        )


async def test_a_server_that_stops_is_alive_but_not_ready(parts: Parts) -> None:
    add_checks(parts)
    parts.stopping.set()
    codes = {
        path: report.code for path in ("/livez", "/healthz", "/readyz") if (report := parts.health.respond(path, []))
    }
    assert codes == {"/livez": 200, "/healthz": 200, "/readyz": 500}


async def test_figures_of_the_store_and_of_requests(parts: Parts) -> None:
    flow = Flow(FlowOptions())
    add_figures(parts, flow)
    await create(parts.store, "x")
    flow.try_take("root", Lane.MUTATING)
    lines = parts.metrics.render().decode().splitlines()
    assert "kcp_store_objects 1" in lines
    assert "kcp_store_revision 1" in lines
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 1' in lines
    assert 'apiserver_current_inqueue_requests{request_kind="readOnly"} 0' in lines


def test_memory_is_unknown_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    if Path("/proc/self/statm").exists():
        assert resident_memory_bytes() > 1 << 20

    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", refuse)
    assert resident_memory_bytes() == 0


# -- who gets what ------------------------------------------------------------


@pytest.fixture
async def api(parts: Parts, tmp_path: Path) -> AsyncIterator[API]:
    api = await open_api(tmp_path, parts.store, FakeClock(), x509.make_key())
    yield api
    await api.assembled.webhooks.aclose()


@pytest.mark.parametrize("shares_its_store", [False, True])
async def test_controllers_of_servers_that_share_a_store_have_a_leader(
    api: API, tmp_path: Path, shares_its_store: bool
) -> None:
    etcd = EtcdOptions(endpoints=("http://127.0.0.1:2379",)) if shares_its_store else None
    parts = dataclasses.replace(api.parts, options=ServerOptions(tmp_path, etcd=etcd))
    manager = make_manager(parts, api.assembled, b"")
    assert (manager._leader is not None) is shares_its_store


async def test_figures_of_controllers(parts: Parts) -> None:
    figures = ControllerFigures(parts.metrics)
    figures.reconciled("gc", 0.5, failed=False)
    figures.reconciled("gc", 0.5, failed=True)
    figures.queued("gc", 7)
    lines = parts.metrics.render().decode().splitlines()
    assert 'workqueue_work_duration_seconds_count{name="gc"} 2' in lines
    assert 'workqueue_retries_total{name="gc"} 1' in lines
    assert 'workqueue_depth{name="gc"} 7' in lines


async def test_a_change_of_roles_counts_once_the_server_hears_of_it(api: API) -> None:
    async def status() -> int:
        return (await api.get("/api/v1/namespaces", token=USER)).status

    assert await status() == 403
    await api.grant(["list"], ["namespaces"])  # tells the server
    assert await status() == 200
    api.assembled.on_change(None, ResourceKey("rbac.authorization.k8s.io", "clusterroles"))
    api.assembled.on_change("root", ResourceKey("", "resourcequotas"))
    assert await status() == 200
