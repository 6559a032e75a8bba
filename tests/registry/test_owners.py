"""Finding dependents without a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.registry.owners import SCAN_STEP, OwnerIndex, find_dependents, owned_records
from kcp.store import EmbeddedStore, ObjectKey, Put, ResourceKey, pack_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kcp.store import Record, Store

WIDGETS = ResourceKey("example.io", "widgets")
GADGETS = ResourceKey("example.io", "gadgets")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        yield store


async def put(store: Store, name: str, *owners: str, resource: ResourceKey = WIDGETS, cluster: str = "root") -> None:
    metadata = {"name": name, "ownerReferences": [{"uid": owner} for owner in owners]}
    await store.commit([Put(ObjectKey(resource, cluster, "", name), pack_object({"metadata": metadata}))])


def names(records: list[Record]) -> list[str]:
    return sorted(record.key.name for record in records)


async def test_dependents_are_found_in_their_cluster_only(store: Store) -> None:
    await put(store, "a", "u1")
    await put(store, "b", "u2", "u1", resource=GADGETS)
    await put(store, "c", "u2")
    await put(store, "d")
    await put(store, "e", "u1", cluster="other")
    assert names(await find_dependents(store, "root", frozenset({"u1"}))) == ["a", "b"]
    assert names(await find_dependents(store, "root", frozenset({"u1", "u2"}))) == ["a", "b", "c"]
    assert names(await find_dependents(store, "empty", frozenset({"u1"}))) == []


async def test_long_lists_are_read_in_steps(store: Store) -> None:
    for start in range(0, SCAN_STEP * 2, 100):
        operations = []
        for number in range(start, start + 100):
            metadata = {"name": f"w{number}", "ownerReferences": [{"uid": f"u{number % 2}"}]}
            key = ObjectKey(WIDGETS, "root", "", f"w{number}")
            operations.append(Put(key, pack_object({"metadata": metadata})))
        await store.commit(operations)
    assert len([record async for record in owned_records(store, "root")]) == SCAN_STEP * 2
    assert len(await find_dependents(store, "root", frozenset({"u1"}))) == SCAN_STEP


async def test_the_index_remembers_who_owns(store: Store) -> None:
    index = OwnerIndex(store)
    await put(store, "a", "u1")
    assert index.may_own("root", "u9"), "nothing is known yet"
    assert names(await index.find_dependents("root", frozenset({"u9"}))) == []
    assert index.may_own("root", "u1")
    assert not index.may_own("root", "u9")
    await put(store, "b", "u9")
    index.note("root", ["u9"])
    index.note("elsewhere", ["u9"])
    assert index.may_own("root", "u9")
    assert names(await index.find_dependents("root", frozenset({"u9"}))) == ["b"]
    assert await index.find_dependents("root", frozenset({"nobody"})) == []


async def test_what_is_noted_during_a_scan_is_not_lost(store: Store) -> None:
    index = OwnerIndex(store)
    for start in range(0, SCAN_STEP + 100, 100):
        await store.commit(
            [
                Put(ObjectKey(WIDGETS, "root", "", f"w{number}"), pack_object({"metadata": {"name": "w"}}))
                for number in range(start, start + 100)
            ]
        )

    async def meanwhile() -> None:
        index.note("root", ["late"])

    import asyncio

    await asyncio.gather(index.find_dependents("root", frozenset({"u"})), meanwhile())
    assert index.may_own("root", "late")


async def test_ignored_resources_own_nothing(store: Store) -> None:
    index = OwnerIndex(store, frozenset({GADGETS}))
    await put(store, "a", "u1", resource=GADGETS)
    assert await index.find_dependents("root", frozenset({"u1"})) == []
    assert not index.may_own("root", "u1")


async def test_the_memory_is_bounded(store: Store) -> None:
    index = OwnerIndex(store, max_uids=20)
    for number in range(5):
        await put(store, "a", f"u{number}", cluster=f"c{number}")
        await index.find_dependents(f"c{number}", frozenset({"x"}))
    known = [number for number in range(5) if not index.may_own(f"c{number}", "x")]
    assert known == [1, 2, 3, 4]
    index.note("c4", [f"v{number}" for number in range(30)])
    assert all(index.may_own(f"c{number}", "x") for number in range(5))
