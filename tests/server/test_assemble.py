"""What is looked at and counted in an assembled server."""

from __future__ import annotations

import asyncio
import builtins
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcp.endpoints.flow import Flow, FlowOptions, Lane
from kcp.meta.clock import SystemClock
from kcp.server.assemble import Parts, add_checks, add_figures, resident_memory_bytes
from kcp.server.certificates import Authority
from kcp.server.options import ServerOptions
from kcp.store import EmbeddedStore
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
