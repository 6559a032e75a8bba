"""A registry on an empty embedded store, the time stopped, with a namespace to write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.meta.fake_clock import FakeClock
from kcp.store import EmbeddedStore
from tests.registry.verbs import NAMESPACES, Verbs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kcp.store import Store


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[Store]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        yield store


@pytest.fixture
async def verbs(embedded: Store) -> Verbs:
    verbs = Verbs(embedded, FakeClock())
    await verbs.create(NAMESPACES, "default")
    return verbs
