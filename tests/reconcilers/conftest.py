"""The control plane as a fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.meta.fake_clock import FakeClock
from kcp.store import EmbeddedStore
from tests.reconcilers.control_plane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        plane = ControlPlane(store, FakeClock())
        await plane.create_namespace("default")
        yield plane
        await plane.stop()
