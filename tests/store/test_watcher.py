"""Watchers that are slow, late, cancelled, closed or many: no gap, no repeat, and nobody waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.meta.fake_clock import FakeClock
from kcp.store import Batch, Closed, Compacted, Delete, EmbeddedStore, Put, Revision, Scope, StoreOptions, pack
from tests.store.objects import CONFIGMAPS, EVERYTHING, SECRETS, WIDGETS, create, key, take, told, update, value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kcp.store import Event, Watcher
    from kcp.store.transaction import Group

IN_ROOT = Scope(CONFIGMAPS, "root")
SCOPES = [EVERYTHING, Scope(CONFIGMAPS), IN_ROOT, Scope(None, "root"), Scope(CONFIGMAPS, None, "default")]

TINY = StoreOptions(watch_buffer_events=3, catch_up_events=2, compact_step=2)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    """With buffers so small that every watcher falls behind, and a log that is compacted only by hand."""
    async with await EmbeddedStore.open(tmp_path / "store", options=TINY, clock=FakeClock()) as store:
        yield store


async def write(store: EmbeddedStore, count: int, start: int = 0) -> list[Revision]:
    """One commit each, all at once."""
    return await asyncio.gather(*(update(store, f"n{number}", "x") for number in range(start, start + count)))


async def drain(watcher: Watcher) -> list[int]:
    """The revisions of all events that are there. Each batch must hold whole revisions, and say where it ends."""
    revisions: list[int] = []
    while True:
        batch = await watcher.next(timeout=0)
        if not batch.events:
            return revisions
        found = [event.revision for event in batch.events]
        assert not revisions or revisions[-1] < found[0]
        assert found[-1] <= batch.revision
        revisions += found


class Gate:
    """A job that holds the writer's thread until it is let go."""

    def __init__(self) -> None:
        self._open = threading.Event()

    def run(self, group: Group) -> None:
        assert self._open.wait(60)

    def open(self) -> None:
        self._open.set()


# -- slow ---------------------------------------------------------------------


@pytest.mark.parametrize("scope", SCOPES, ids=str)
async def test_a_slow_watcher_catches_up_from_the_log(store: EmbeddedStore, scope: Scope) -> None:
    with store.watch(scope, Revision(0)) as watcher:
        revisions = await write(store, 50)
        assert await drain(watcher) == revisions
        assert watcher.revision == store.revision
        later = await write(store, 2)
        assert await drain(watcher) == later


async def test_a_slow_watcher_that_is_never_waited_for_costs_a_bounded_buffer(store: EmbeddedStore) -> None:
    with store.watch(EVERYTHING, Revision(0)) as watcher:
        for _ in range(10):
            await write(store, 10)
            assert len(watcher._buffer) <= TINY.watch_buffer_events
        assert await drain(watcher) == list(range(1, 101))


async def test_a_watcher_that_falls_behind_again_and_again_misses_nothing(store: EmbeddedStore) -> None:
    seen: list[int] = []
    with store.watch(IN_ROOT, Revision(0)) as watcher:
        for burst in (1, 3, 4, 2, 10, 1, 5, 30, 3):
            await write(store, burst)
            batch = await watcher.next()  # one batch of many
            seen += [event.revision for event in batch.events]
            assert seen[-1] == batch.revision == watcher.revision
        seen += await drain(watcher)
    assert seen == list(range(1, store.revision + 1))


async def test_a_watcher_that_catches_up_while_writes_go_on_reaches_the_present(store: EmbeddedStore) -> None:
    seen: list[int] = []
    with store.watch(EVERYTHING, Revision(0)) as watcher:

        async def read() -> None:
            while len(seen) < 400:
                batch = await watcher.next()
                seen.extend(event.revision for event in batch.events)

        await asyncio.gather(read(), *(update(store, f"n{number}", "x") for number in range(400)))
    assert seen == list(range(1, 401))


async def test_a_watcher_whose_past_was_compacted_is_told_so(store: EmbeddedStore) -> None:
    with store.watch(IN_ROOT, Revision(0)) as watcher, store.watch(IN_ROOT, Revision(0)) as prompt:
        await write(store, 3)
        assert await drain(prompt) == [1, 2, 3]
        await write(store, 7)
        await store.compact(Revision(8))
        for _ in range(2):
            with pytest.raises(Compacted) as compacted:
                await watcher.next()
            assert (compacted.value.revision, compacted.value.compacted) == (0, 8)
        with pytest.raises(Compacted):
            await prompt.next()
        assert watcher.revision == 0
    with store.watch(IN_ROOT, Revision(8)) as watcher:
        assert await drain(watcher) == [9, 10]


async def test_a_watcher_whose_past_is_compacted_between_two_chunks_is_told_so(store: EmbeddedStore) -> None:
    with store.watch(IN_ROOT, Revision(0)) as watcher:
        await write(store, 10)
        assert [event.revision for event in (await watcher.next()).events] == [1, 2]
        await store.compact(Revision(2))
        assert [event.revision for event in (await watcher.next()).events] == [3, 4]
        await store.compact(Revision(5))
        with pytest.raises(Compacted):
            await watcher.next()


async def test_a_watcher_keeps_what_it_has_buffered_when_the_log_goes(store: EmbeddedStore) -> None:
    with store.watch(IN_ROOT, Revision(0)) as watcher:
        await write(store, 3)
        await store.compact(store.revision)
        assert await drain(watcher) == [1, 2, 3]


async def test_an_idle_watcher_does_not_expire_when_it_falls_behind(store: EmbeddedStore) -> None:
    """Its own last event is long compacted, but it has missed nothing since."""
    elsewhere = Scope(SECRETS, "other")
    with (
        store.watch(elsewhere, Revision(0)) as live,
        store.watch(elsewhere, Revision(0), accept=lambda event: "wanted" in event.key.name) as filtering,
    ):
        await write(store, 20)
        await store.compact(store.revision)
        burst = [Put(key(f"wanted{number}", cluster="other", resource=SECRETS), value()) for number in range(10)]
        revision = await store.commit(burst)
        for watcher in (live, filtering):
            events = await take(watcher, 10)
            assert {event.revision for event in events} == {revision}


async def test_an_idle_watcher_that_rejects_every_event_does_not_expire(store: EmbeddedStore) -> None:
    with store.watch(IN_ROOT, Revision(0), accept=lambda event: event.key.name.startswith("wanted")) as watcher:
        await write(store, 20)
        assert watcher.revision == 20
        await store.compact(store.revision)
        await asyncio.gather(*(update(store, f"wanted{number}", "x") for number in range(10)))
        assert await drain(watcher) == list(range(21, 31))


# -- the buffer ---------------------------------------------------------------


async def test_large_events_fill_the_buffer_by_their_bytes(tmp_path: Path) -> None:
    options = StoreOptions(watch_buffer_bytes=10_000, catch_up_events=2)
    async with await EmbeddedStore.open(tmp_path / "store", options=options, clock=FakeClock()) as store:
        with store.watch(IN_ROOT, Revision(0)) as watcher:
            for number in range(20):
                await store.commit([Put(key(f"n{number}"), pack(b"x" * 3000))])
                assert watcher._buffered_bytes == sum(event.size for event in watcher._buffer) <= 10_000
            assert watcher._behind
            assert await drain(watcher) == list(range(1, 21))
            for number in range(20):  # an update keeps the old bytes alive too
                await store.commit([Put(key(f"n{number}"), pack(b"y" * 3000))])
                assert len(watcher._buffer) <= 1
            assert await drain(watcher) == list(range(21, 41))


async def test_one_event_larger_than_the_buffer_is_delivered(tmp_path: Path) -> None:
    options = StoreOptions(watch_buffer_bytes=1000)
    async with await EmbeddedStore.open(tmp_path / "store", options=options, clock=FakeClock()) as store:
        with store.watch(IN_ROOT, Revision(0)) as watcher:
            for revision in (1, 2, 3):
                await store.commit([Put(key("a"), pack(b"x" * 50_000))])
                assert [event.revision for event in (await watcher.next()).events] == [revision]
                assert not watcher._behind


async def test_a_commit_larger_than_the_buffer_arrives_whole(store: EmbeddedStore) -> None:
    with store.watch(IN_ROOT, Revision(0)) as watcher:
        await store.commit([Put(key(f"n{number:03}"), value()) for number in range(100)])
        await store.commit([Delete(key(f"n{number:03}")) for number in range(100)])
        for revision in (1, 2):
            batch = await watcher.next()
            assert [event.key.name for event in batch.events] == [f"n{number:03}" for number in range(100)]
            assert {event.revision for event in batch.events} == {batch.revision} == {revision}


# -- filters ------------------------------------------------------------------


async def test_a_filter_holds_live_and_from_the_log(store: EmbeddedStore) -> None:
    def is_odd(event: Event) -> bool:
        return int(event.key.name[1:]) % 2 == 1

    await write(store, 30)
    with store.watch(IN_ROOT, Revision(0), accept=is_odd) as watcher:
        assert await drain(watcher) == list(range(2, 31, 2))  # n1 is revision 2
        live: list[int] = []
        for number in range(30, 60):
            await update(store, f"n{number}", "x")
            if number % 7 == 0:  # now within the buffer, now behind
                live += await drain(watcher)
        assert live + await drain(watcher) == list(range(32, 61, 2))
        assert watcher.revision == 60


async def test_a_filter_sees_old_and_new(store: EmbeddedStore) -> None:
    def was_labelled(event: Event) -> bool:
        return event.old is not None and event.old.labels == {"app": "web"}

    await store.commit([Put(key("a"), value("1", labels={"app": "web"}))])
    with store.watch(IN_ROOT, store.revision, accept=was_labelled) as live:
        await store.commit([Put(key("a"), value("2"))])
        await store.commit([Put(key("a"), value("3", labels={"app": "web"}))])
        await store.commit([Delete(key("a"))])
        with store.watch(IN_ROOT, Revision(0), accept=was_labelled) as late:
            for watcher in (live, late):
                assert told(await take(watcher, 2)) == [("a", "1", "2", 2), ("a", "3", None, 4)]


async def test_a_filter_that_rejects_all_of_a_long_log_ends_in_a_bookmark(store: EmbeddedStore) -> None:
    await write(store, 50)
    with store.watch(EVERYTHING, Revision(0), accept=lambda event: False) as watcher:
        assert await watcher.next(timeout=0) == Batch([], Revision(50))


async def test_a_filter_that_fails_is_the_trouble_of_its_own_watcher(store: EmbeddedStore) -> None:
    """It must not raise. If it does, the commit was made all the same, and the others have to hear of it."""

    def fail(event: Event) -> bool:
        raise ValueError("a bug in a filter")

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: None)
    with (
        store.watch(IN_ROOT, Revision(0)) as before,
        store.watch(IN_ROOT, Revision(0), accept=fail),
        store.watch(IN_ROOT, Revision(0)) as behind,
    ):
        async with asyncio.timeout(1):
            assert await create(store, "a") == 1
        assert await create(store, "b") == 2
        assert await drain(before) == await drain(behind) == [1, 2]


# -- in and out of step with the hub ------------------------------------------


async def commit_unheard(store: EmbeddedStore, *names: str) -> asyncio.Task[list[Revision]]:
    """Commits that are in the tables, while the loop has had no turn to hear of them."""
    target = store.revision + len(names)
    commits = asyncio.gather(*(asyncio.ensure_future(create(store, name)) for name in names))

    async def all_of_them() -> list[Revision]:
        return await commits

    task = asyncio.ensure_future(all_of_them())
    gate = Gate()
    store._writer.submit(gate.run)
    await asyncio.sleep(0)  # the commits are submitted, behind the gate
    store._close_view()
    gate.open()
    while True:  # on purpose without an await
        with store._engine.view() as view:
            if view.revision >= target:
                return task


@pytest.mark.parametrize("scope", SCOPES, ids=str)
async def test_a_watch_that_starts_ahead_of_the_hub_sees_each_event_once(store: EmbeddedStore, scope: Scope) -> None:
    await write(store, 5)
    unheard = await commit_unheard(store, "a", "b", "c")
    assert (store.revision, store._hub.revision) == (8, 5)
    watchers = {after: store.watch(scope, Revision(after)) for after in range(9)}
    with pytest.raises(Exception, match="future"):
        store.watch(scope, Revision(9))
    assert [await watcher.next(timeout=0) for watcher in (watchers[8],)] == [Batch([], Revision(8))]
    await unheard
    await write(store, 5)
    for after, watcher in watchers.items():
        assert await drain(watcher) == list(range(after + 1, 14))
        watcher.close()


async def test_a_watcher_that_catches_up_ahead_of_the_hub_repeats_nothing(store: EmbeddedStore) -> None:
    with store.watch(IN_ROOT, Revision(0)) as watcher:
        await write(store, 5)
        unheard = await commit_unheard(store, "a", "b")
        assert store._hub.revision == 5
        # No turn of the loop in which it could hear of them: the chunks are read by hand.
        seen: list[int] = []
        while watcher._behind:
            seen += [event.revision for event in watcher._catch_up().events]
        assert seen[-1] > 5
        assert watcher.revision == seen[-1]
        await unheard
        await write(store, 3)
        assert seen + await drain(watcher) == list(range(1, 11))


async def test_a_watch_of_a_resource_that_is_new_to_the_store_sees_its_first_object(store: EmbeddedStore) -> None:
    widgets = Scope(WIDGETS, "root")
    await create(store, "before")
    with store.watch(widgets, Revision(0)) as early:
        revision = await create(store, "w", resource=WIDGETS)
        with store.watch(widgets, Revision(0)) as late:
            assert await drain(early) == await drain(late) == [revision]


# -- tasks and cancellation ---------------------------------------------------


async def test_one_task_after_another_may_wait(store: EmbeddedStore) -> None:
    with store.watch(IN_ROOT, Revision(0)) as watcher:
        first = asyncio.create_task(watcher.next())
        await asyncio.sleep(0)
        first.cancel()
        second = asyncio.create_task(watcher.next())
        await asyncio.sleep(0)
        await create(store, "a")
        assert [event.key.name for event in (await second).events] == ["a"]
        assert first.cancelled()


async def test_a_second_task_that_waits_at_the_same_time_is_not_forgotten(store: EmbeddedStore) -> None:
    """One may wait at a time. A second one is told so, or served; it does not hang, nor make the first one hang."""
    with store.watch(IN_ROOT, Revision(0)) as watcher:
        waiting = [asyncio.create_task(watcher.next()) for _ in range(2)]
        await asyncio.sleep(0)
        await create(store, "a")
        await create(store, "b")
        watcher.close()
        done, hanging = await asyncio.wait(waiting, timeout=1)
        for task in hanging:
            task.cancel()
        assert not hanging
        told_of = [event.revision for task in done if not task.exception() for event in task.result().events]
        assert told_of == sorted(set(told_of))


@pytest.mark.parametrize("first", [True, False], ids=["before it is woken", "after it is woken"])
async def test_a_wait_cancelled_in_the_turn_in_which_it_is_woken_loses_nothing(
    store: EmbeddedStore, first: bool
) -> None:
    waiting: list[asyncio.Task[Batch]] = []

    def cancel(event: Event) -> bool:
        return waiting[-1].cancel()

    with contextlib.ExitStack() as watchers:
        canceller = watchers.enter_context(store.watch(IN_ROOT, Revision(0), accept=cancel)) if first else None
        watcher = watchers.enter_context(store.watch(IN_ROOT, Revision(0)))
        canceller = canceller or watchers.enter_context(store.watch(IN_ROOT, Revision(0), accept=cancel))
        for revision in range(1, 6):
            waiting.append(asyncio.create_task(watcher.next()))
            await asyncio.sleep(0)
            await update(store, "a", str(revision))
            with pytest.raises(asyncio.CancelledError):
                await waiting[-1]
            assert await drain(watcher) == await drain(canceller) == [revision]


steps = st.lists(
    st.tuples(st.sampled_from(["write", "write one", "write elsewhere", "compact"]), st.integers(0, 6)), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(steps, st.lists(st.integers(0, 4), min_size=1, max_size=20), st.sampled_from(SCOPES), st.booleans())
def test_cancelling_at_any_await_loses_and_repeats_nothing(
    plan: list[tuple[str, int]], turns: list[int], scope: Scope, filtering: bool
) -> None:
    """`turns` says after how many turns of the loop each wait is cancelled, over and over."""

    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            clock = FakeClock()
            async with await EmbeddedStore.open(Path(directory) / "store", options=TINY, clock=clock) as store:
                await follow(store)

    async def follow(store: EmbeddedStore) -> None:
        expected: list[int] = []
        seen: list[int] = []
        accept = (lambda event: event.revision % 3 != 0) if filtering else None
        patience = itertools.cycle(turns)
        with store.watch(scope, Revision(0), accept=accept) as watcher:
            for action, count in plan:
                if action == "compact":
                    await store.compact(min(watcher.revision, store.revision))
                elif action == "write elsewhere":
                    await create_elsewhere(store)
                else:
                    expected += await write(store, count if action == "write" else 1)
                await read_with_little_patience(watcher, seen, next(patience))
            seen += await drain(watcher)
            assert watcher.revision == store.revision
        assert [revision for revision in seen if revision in expected] == [
            revision for revision in expected if not filtering or revision % 3 != 0
        ]
        assert seen == sorted(set(seen))

    async def create_elsewhere(store: EmbeddedStore) -> None:
        await store.commit([Put(key("a", cluster="other", namespace="x", resource=SECRETS), value())])

    async def read_with_little_patience(watcher: Watcher, seen: list[int], patience: int) -> None:
        waiting = asyncio.create_task(watcher.next())
        for _ in range(patience):
            await asyncio.sleep(0)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            seen += [event.revision for event in (await waiting).events]

    asyncio.run(run())


# -- closing ------------------------------------------------------------------


async def test_a_watcher_closed_while_it_catches_up_stops(store: EmbeddedStore) -> None:
    await write(store, 20)
    watcher = store.watch(IN_ROOT, Revision(0), accept=lambda event: False)
    waiting = asyncio.create_task(watcher.next())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert watcher._behind
    watcher.close()
    with pytest.raises(Closed):
        await waiting
    with pytest.raises(Closed):
        await watcher.next()
    watcher.close()
    assert len(store._hub) == 0


@pytest.mark.parametrize("turns", range(6))
async def test_a_store_closed_while_watchers_catch_up_ends_them(tmp_path: Path, turns: int) -> None:
    store = await EmbeddedStore.open(tmp_path / "store", options=TINY, clock=FakeClock())
    await write(store, 10)
    watchers = [store.watch(scope, Revision(0), accept=lambda event: False) for scope in SCOPES]
    waiting = [asyncio.create_task(watcher.next()) for watcher in watchers]
    under_way = asyncio.create_task(create(store, "last"))
    for _ in range(turns):
        await asyncio.sleep(0)
    await store.aclose()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Closed] * len(SCOPES)
    assert await asyncio.gather(under_way, return_exceptions=True)
    for watcher in watchers:
        with pytest.raises(Closed):
            await watcher.next()


async def test_a_loop_over_a_watcher_ends_when_it_is_closed(store: EmbeddedStore) -> None:
    watcher = store.watch(IN_ROOT, Revision(0))
    seen: list[int] = []

    async def read() -> None:
        async for batch in watcher:
            seen.extend(event.revision for event in batch.events)
            if seen[-1] == 12:
                watcher.close()

    reading = asyncio.create_task(read())
    await write(store, 12)
    await reading
    assert seen == list(range(1, 13))


async def test_closed_watchers_are_forgotten(store: EmbeddedStore) -> None:
    watchers = [store.watch(scope, Revision(0)) for scope in SCOPES for _ in range(3)]
    assert len(store._hub) == len(watchers)
    for watcher in watchers:
        watcher.close()
        watcher.close()
    assert len(store._hub) == 0
    assert store._hub._index == {}
    await create(store, "a")


# -- many, and fair -----------------------------------------------------------


async def test_a_thousand_watchers_all_receive_all(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store", clock=FakeClock()) as store:
        watchers = [store.watch(SCOPES[number % len(SCOPES)], Revision(0)) for number in range(1000)]

        async def read(watcher: Watcher) -> list[int]:
            return [event.revision for event in await take(watcher, 30)]

        reading = [asyncio.create_task(read(watcher)) for watcher in watchers]
        await write(store, 30)
        for task in reading:
            assert await task == list(range(1, 31))
        for watcher in watchers:
            watcher.close()


async def test_a_watcher_hears_only_of_its_own_scope_among_many(store: EmbeddedStore) -> None:
    watchers = {number: store.watch(Scope(CONFIGMAPS, f"c{number}"), Revision(0)) for number in range(200)}
    revisions = await asyncio.gather(*(create(store, "a", cluster=f"c{number}") for number in range(200)))
    for number, watcher in watchers.items():
        assert await drain(watcher) == [revisions[number]]
        watcher.close()


@pytest.mark.parametrize("matching", [True, False], ids=["each chunk matches", "no chunk matches"])
async def test_a_watcher_that_is_behind_lets_others_have_their_turn(store: EmbeddedStore, matching: bool) -> None:
    await write(store, 100)
    turns = 0
    finished = False

    async def other() -> None:
        nonlocal turns
        while not finished:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(other())
    with store.watch(EVERYTHING, Revision(0), accept=lambda event: matching) as watcher:
        while watcher.revision < 100:
            await watcher.next(timeout=0)
    finished = True
    await counting
    assert turns >= 100 // TINY.catch_up_events - 1


async def test_two_watchers_that_are_behind_take_turns(store: EmbeddedStore) -> None:
    await write(store, 60)
    order: list[str] = []

    async def read(name: str) -> None:
        with store.watch(EVERYTHING, Revision(0)) as watcher:
            while watcher.revision < 60:
                await watcher.next()
                order.append(name)

    await asyncio.gather(read("a"), read("b"))
    assert order[:40] == ["a", "b"] * 20
