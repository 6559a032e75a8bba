"""Verbs for controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.controller.keys import ClusterKey, NamespacedKey
from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from kcp.registry.delete import DeleteOptions
from kcp.store import EmbeddedStore
from tests.reconcilers.control_plane import CLUSTER, CONFIGMAPS, WIDGETS, ControlPlane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kcp.meta.codec import Object


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        plane = ControlPlane(store, FakeClock())
        await plane.create_namespace("default")
        yield plane


async def test_objects_are_created_changed_and_deleted(plane: ControlPlane) -> None:
    client = plane.client
    made = await plane.create(CONFIGMAPS, "c", "default", data={"a": "1"})
    assert made["metadata"]["uid"]

    def mutate(obj: Object) -> None:
        obj["data"]["a"] = "2"

    changed = await client.update(CLUSTER, CONFIGMAPS, "default", "c", mutate)
    assert changed["data"] == {"a": "2"}
    assert client.get(CLUSTER, CONFIGMAPS, "default", "c") == changed
    assert client.list(CLUSTER, CONFIGMAPS, "default") == [changed]
    with pytest.raises(errors.Conflict):
        await client.delete(CLUSTER, CONFIGMAPS, "default", "c", DeleteOptions(uid="another"))
    assert await client.delete(CLUSTER, CONFIGMAPS, "default", "c")
    assert not await client.delete(CLUSTER, CONFIGMAPS, "default", "c")


async def test_no_change_is_no_write(plane: ControlPlane) -> None:
    await plane.create(CONFIGMAPS, "c", "default")
    before = plane.store.revision
    await plane.client.update(CLUSTER, CONFIGMAPS, "default", "c", lambda obj: None)
    assert plane.store.revision == before


async def test_resources_that_are_not_served_are_not_found(plane: ControlPlane) -> None:
    with pytest.raises(errors.NotFound):
        await plane.create(WIDGETS, "w", "default")
    with pytest.raises(errors.NotFound):
        await plane.client.update(CLUSTER, CONFIGMAPS, "default", "nobody", lambda obj: None)


def test_keys_print_as_objects_do() -> None:
    assert str(ClusterKey("root", "x")) == "root|x"
    assert str(NamespacedKey("root", "ns", "x")) == "root|ns/x"
