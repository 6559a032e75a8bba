"""What both stores have in common on this machine, where the contract's suite cannot look."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kcp.meta.fake_clock import FakeClock
from kcp.store import Compacted, EmbeddedStore, Put, Revision, Scope, StoreOptions, pack
from tests.store.objects import CONFIGMAPS, EVERYTHING, create, key, take, text_of, update, value

if TYPE_CHECKING:
    from pathlib import Path

    from kcp.store.transaction import Group

IN_ROOT = Scope(CONFIGMAPS, "root")


@pytest.mark.parametrize("begins", [3, 50, 1000], ids=["in the past", "at the present", "in the future"])
async def test_a_new_history_ends_every_watch(tmp_path: Path, begins: int) -> None:
    """As when a mirror is read anew: whatever the numbers say, nobody goes on from one history into another."""

    def restart(group: Group) -> None:
        group.overwrite([(key("a"), None)])
        group.restart_history(Revision(begins))

    async with await EmbeddedStore.open(tmp_path / "store") as store:
        for number in range(50):
            await update(store, "a", str(number))
        idle = store.watch(IN_ROOT, store.revision)
        behind = store.watch(IN_ROOT, Revision(10))
        waiting = asyncio.create_task(store.watch(IN_ROOT, store.revision).next())
        full = store.watch(IN_ROOT, store.revision)
        await update(store, "a", "not taken")
        await waiting
        running = [asyncio.create_task(watcher.next()) for watcher in (idle, full, behind)]
        await store._writer.submit(restart)
        for _ in range(60):
            await update(store, "b", "a new history, longer than the old one")
        await asyncio.gather(*running, return_exceptions=True)
        for watcher in (idle, full, behind):
            with pytest.raises(Compacted):
                await watcher.next()
        with store.watch(IN_ROOT, Revision(begins)) as fresh:
            assert len(await take(fresh, 60)) == 60


async def test_catching_up_on_large_objects_takes_bounded_memory(tmp_path: Path) -> None:
    options = StoreOptions(watch_buffer_bytes=1_000_000)
    async with await EmbeddedStore.open(tmp_path / "store", options=options) as store:
        for _ in range(20):
            await store.commit([Put(key("a"), pack(b"x" * 400_000))])
        with store.watch(IN_ROOT, Revision(0)) as watcher:
            sizes = []
            while watcher.revision < store.revision:
                batch = await watcher.next()
                sizes.append(sum(event.size for event in batch.events))
        assert max(sizes) < 2_000_000
        assert len(sizes) > 5


async def test_the_log_is_bounded_under_a_flood(tmp_path: Path) -> None:
    options = StoreOptions(compact_max_revisions=20, compact_min_revisions=0, compact_step=10, compact_interval=1)
    clock = FakeClock()
    async with await EmbeddedStore.open(tmp_path / "store", options=options, clock=clock) as store:

        async def flood(writer: int) -> None:
            for number in range(20):
                names = [f"{writer}-{number % 3}-{each}" for each in range(50)]
                await store.commit([Put(key(name), value()) for name in names])

        async def tick() -> None:
            while True:
                await clock.wait_for_sleepers()
                clock.advance(1)
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        await asyncio.gather(*(flood(writer) for writer in range(8)))
        await clock.wait_for_sleepers()
        ticking.cancel()
        with store._engine.view() as view:
            entries = view.txn.stat(store._engine.env.log)["entries"]
        assert entries < 8 * 20 * 50 / 2


async def test_a_watcher_with_a_failing_filter_hears_of_it(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        with store.watch(EVERYTHING, Revision(0), accept=lambda event: bool(1 / 0)) as watcher:
            await create(store, "a")
            with pytest.raises(ZeroDivisionError):
                await watcher.next()
        assert text_of(store.get(key("a"))) == "x"
