"""Following changes: every one is told, and before whoever made it is answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from kcp.registry import feed
from kcp.store import Compacted, ObjectKey, Put, ResourceKey, Unavailable, pack_object
from tests.registry.verbs import RacingStore

if TYPE_CHECKING:
    from kcp.store import Store

ROLES, QUOTAS = ResourceKey("rbac.authorization.k8s.io", "roles"), ResourceKey("", "resourcequotas")


async def write(store: Store, resource: ResourceKey, *clusters: str) -> None:
    value = pack_object({"metadata": {"name": "x"}})
    await store.commit([Put(ObjectKey(resource, cluster, "n", "x"), value) for cluster in clusters])


class Heard:
    """Collects what is told, and waits for it."""

    def __init__(self) -> None:
        self.news: list[tuple[str | None, ResourceKey]] = []
        self._more = asyncio.Event()

    def __call__(self, cluster: str | None, resource: ResourceKey) -> None:
        self.news.append((cluster, resource))
        self._more.set()

    async def wait_for(self, count: int) -> None:
        while len(self.news) < count:
            self._more.clear()
            await asyncio.wait_for(self._more.wait(), 10)


@pytest.fixture
async def heard() -> Heard:
    return Heard()


async def test_at_the_start_anything_may_have_been_missed(embedded: Store, heard: Heard) -> None:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(feed.follow(embedded, (ROLES, QUOTAS), heard))
        await heard.wait_for(2)
        assert sorted(heard.news) == [(None, QUOTAS), (None, ROLES)]
        task.cancel()


async def test_a_change_is_told_before_its_writer_is_answered(embedded: Store, heard: Heard) -> None:
    """Who takes a permission away and hears that it is done must not see it work once more."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(feed.follow(embedded, (ROLES, QUOTAS), heard))
        await heard.wait_for(2)
        for number in range(20):
            heard.news.clear()
            await write(embedded, ROLES, f"c{number}", "other")
            assert sorted(cluster or "" for cluster, _ in heard.news) == [f"c{number}", "other"]
        task.cancel()


async def test_changes_of_other_resources_are_not_told(embedded: Store, heard: Heard) -> None:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(feed.follow(embedded, (ROLES,), heard))
        await heard.wait_for(1)
        await write(embedded, QUOTAS, "a")
        await write(embedded, ROLES, "b")
        assert heard.news == [(None, ROLES), ("b", ROLES)]
        task.cancel()


class Broken:
    """A watch that ends badly, once."""

    def __init__(self, store: Store, error: Exception) -> None:
        self._store = store
        self._error: Exception | None = error

    def watch(self, *arguments: object) -> object:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return cast("Any", self._store).watch(*arguments)


@pytest.mark.parametrize("error", [Compacted(1, 5), Unavailable("no etcd")], ids=["too slow", "not now"])
async def test_after_a_gap_anything_may_have_been_missed(
    embedded: Store, heard: Heard, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "RETRY_SECONDS", 0)
    store = RacingStore(embedded)
    cast("Any", store).watch = Broken(embedded, error).watch
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(feed.follow(cast("Store", store), (ROLES,), heard))
        await heard.wait_for(1)
        await write(embedded, ROLES, "a")
        assert heard.news == [(None, ROLES), ("a", ROLES)]
        task.cancel()


async def test_it_ends_with_the_store(embedded: Store, heard: Heard) -> None:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(feed.follow(embedded, (ROLES, QUOTAS), heard))
        await heard.wait_for(2)
        await embedded.aclose()
        await asyncio.wait_for(task, 10)
