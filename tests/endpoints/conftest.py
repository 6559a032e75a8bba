"""The assembled application as a fixture, on a store of its own and with the time stopped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kcp.auth import x509
from kcp.meta.fake_clock import FakeClock
from kcp.store import EmbeddedStore
from tests.endpoints.api import API, open_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(scope="session")
def signing_key() -> bytes:
    return x509.make_key()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        yield store


@pytest.fixture
async def api(tmp_path: Path, store: EmbeddedStore, clock: FakeClock, signing_key: bytes) -> AsyncIterator[API]:
    api = await open_api(tmp_path, store, clock, signing_key)
    yield api
    await api.assembled.webhooks.aclose()


class LoopTime:
    """The time of the event loop, which timeouts go by: it runs on, and can be moved forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        self._ahead = 0.0
        monkeypatch.setattr(loop, "time", lambda: real() + self._ahead)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


@pytest.fixture
async def loop_time(monkeypatch: pytest.MonkeyPatch) -> LoopTime:
    return LoopTime(monkeypatch)
