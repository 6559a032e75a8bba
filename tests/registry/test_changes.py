"""The change feed and its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.meta import errors
from kcp.registry.changes import Change, ChangeFeed, Ended, Lost, is_released
from kcp.store import EmbeddedStore, ObjectKey, Put, ResourceKey, Revision, pack_object
from kcp.store.value import stamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kcp.meta.codec import Object
    from kcp.store import Store

WIDGETS = ResourceKey("example.io", "widgets")
GADGETS = ResourceKey("example.io", "gadgets")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        yield store


async def put(store: Store, name: str, resource: ResourceKey = WIDGETS, cluster: str = "root") -> None:
    value = pack_object({"metadata": {"name": name}})
    await store.commit([Put(ObjectKey(resource, cluster, "", name), value)])


async def test_changes_of_a_resource_in_all_clusters_come_in_order(store: Store) -> None:
    feed = ChangeFeed(store)
    with feed.watch(WIDGETS, 0) as stream:
        await put(store, "a")
        await put(store, "x", GADGETS)
        await put(store, "a", cluster="other")
        changes = [*await stream.next()]
        assert [(each.key.cluster, each.key.name, each.old) for each in changes] == [
            ("root", "a", None),
            ("other", "a", None),
        ]
        assert stream.revision == feed.revision == 3


async def test_everything_can_be_looked_at_in_steps(store: Store) -> None:
    feed = ChangeFeed(store)
    for name in "abc":
        await put(store, name)
    first = feed.scan(WIDGETS, None, 2)
    second = feed.scan(WIDGETS, first.next_after, 2)
    assert [change.key.name for change in (*first.changes, *second.changes)] == ["a", "b", "c"]
    assert second.next_after is None
    assert all(change.new is not None and change.old is None for change in first.changes)


async def test_a_compacted_or_future_revision_is_lost(store: Store) -> None:
    feed = ChangeFeed(store)
    for name in "abc":
        await put(store, name)
    await store.compact(Revision(2))
    with pytest.raises(Lost):
        feed.watch(WIDGETS, 1)
    with pytest.raises(Lost):
        feed.watch(WIDGETS, 100)


async def test_a_closed_store_ends_everything(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "closed")
    feed = ChangeFeed(store)
    stream = feed.watch(WIDGETS, 0)
    await store.aclose()
    with pytest.raises(Ended):
        await stream.next()
    with pytest.raises(Ended):
        feed.watch(WIDGETS, 0)
    with pytest.raises(Ended):
        feed.scan(WIDGETS, None, 1)
    with pytest.raises(errors.ServiceUnavailable):
        await feed.save("x", {})


async def test_a_slow_stream_may_be_lost(store: Store) -> None:
    feed = ChangeFeed(store)
    await put(store, "a")
    stream = feed.watch(WIDGETS, 0)
    for name in "bcd":
        await put(store, name)
    await store.compact(Revision(3))
    with stream, pytest.raises(Lost):
        await stream.next()


async def test_notes_are_kept(store: Store) -> None:
    feed = ChangeFeed(store)
    assert feed.load("x") is None
    await feed.save("x", {"revision": 1})
    await feed.save("x", {"revision": 2})
    assert feed.load("x") == {"revision": 2}


@pytest.mark.parametrize(
    ("metadata", "is_gone", "expected"),
    [
        ({"deletionTimestamp": "2025-01-01T00:00:00Z"}, True, True),
        ({"deletionTimestamp": "2025-01-01T00:00:00Z"}, False, False),
        ({}, True, False),
    ],
    ids=["was waiting", "waits", "went at once"],
)
def test_released_objects_are_told_from_others(metadata: Object, is_gone: bool, expected: bool) -> None:
    stored = stamp(pack_object({"metadata": {"name": "x", **metadata}}), 1)
    change = Change(ObjectKey(WIDGETS, "root", "", "x"), Revision(2), stored, None if is_gone else stored)
    assert is_released(change) is expected
    assert not is_released(Change(change.key, Revision(1), None, stored))
