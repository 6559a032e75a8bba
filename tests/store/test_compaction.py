"""Shortening the log: how much is kept, in which steps it goes, and what a crash or a bad clock does to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kcp.meta.fake_clock import FakeClock
from kcp.store import (
    Compacted,
    Delete,
    EmbeddedStore,
    FutureRevision,
    Put,
    Revision,
    Scope,
    StoreOptions,
    Unavailable,
    layout,
)
from kcp.store.check import find_problems
from kcp.store.compaction import choose_revision, remove_step
from kcp.store.engine import Engine
from kcp.store.past import Past
from kcp.store.transaction import Group
from tests.store.objects import CONFIGMAPS, EVERYTHING, create, key, take, text_of, texts, update, value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

IN_ROOT = Scope(CONFIGMAPS, "root")
MINUTE = 60.0

# A minute between looks, ten minutes of history, and no history for its number alone.
BY_AGE = StoreOptions(
    compact_interval=MINUTE, compact_age=10 * MINUTE, compact_min_revisions=0, compact_max_revisions=1_000_000
)


class WallClock(FakeClock):
    """Time that runs as told, on a wall clock that somebody sets, or that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by = 0.0
        self.error: Exception | None = None

    def now(self) -> datetime:
        if self.error is not None:
            raise self.error
        return super().now() + timedelta(seconds=self.set_by)


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@contextlib.asynccontextmanager
async def opened(path: Path, options: StoreOptions, clock: FakeClock) -> AsyncIterator[EmbeddedStore]:
    """The store once it has looked at its log for the first time."""
    async with await EmbeddedStore.open(path / "store", options=options, clock=clock) as store:
        await clock.wait_for_sleepers()
        yield store
        assert list(find_problems(store._engine)) == []


async def look_again(clock: FakeClock, seconds: float = MINUTE) -> None:
    """Let time pass, and the store look at its log."""
    clock.advance(seconds)
    await clock.wait_for_sleepers()


def log_revisions(engine: Engine) -> list[int]:
    with engine.view() as view, view.txn.cursor(engine.env.log) as cursor:
        return [layout.unpack_log_key(log_key)[0] for log_key, _ in cursor]


def trail_length(engine: Engine) -> int:
    with engine.view() as view:
        return int(view.txn.stat(engine.env.trail)["entries"])


# -- how much is kept ---------------------------------------------------------


async def test_history_goes_when_it_is_old_enough(tmp_path: Path, clock: WallClock) -> None:
    async with opened(tmp_path, BY_AGE, clock) as store:
        for minute in range(15):
            await update(store, "a", str(minute))
            await look_again(clock)
        # Now is minute 15, and revision r was written at minute r-1: more than ten minutes ago up to revision 5.
        assert store.compacted == 5
        assert log_revisions(store._engine) == list(range(6, 16))
        assert trail_length(store._engine) == 10
        with pytest.raises(Compacted):
            store.range(IN_ROOT, revision=Revision(4))
        assert texts(store.range(IN_ROOT, revision=Revision(5))) == {"root|default/a": "4"}


async def test_history_of_exactly_the_age_is_kept(tmp_path: Path, clock: WallClock) -> None:
    async with opened(tmp_path, BY_AGE, clock) as store:
        await create(store, "a")
        await look_again(clock, 10 * MINUTE)
        assert store.compacted == 0
        await look_again(clock)
        assert store.compacted == 1
        assert log_revisions(store._engine) == []


async def test_a_quiet_store_keeps_its_least_history_for_ever(tmp_path: Path, clock: WallClock) -> None:
    options = StoreOptions(compact_interval=MINUTE, compact_age=MINUTE, compact_min_revisions=7)
    async with opened(tmp_path, options, clock) as store:
        for number in range(10):
            await update(store, "a", str(number))
        for _ in range(5):
            await look_again(clock, 24 * 3600)
        assert store.compacted == 3
        with store.watch(IN_ROOT, Revision(3)) as watcher:
            assert [event.revision for event in await take(watcher, 7)] == list(range(4, 11))


async def test_a_busy_store_drops_history_that_is_too_long_whatever_its_age(tmp_path: Path, clock: WallClock) -> None:
    options = StoreOptions(compact_interval=MINUTE, compact_age=3600, compact_min_revisions=5, compact_max_revisions=20)
    async with opened(tmp_path, options, clock) as store:
        await asyncio.gather(*(update(store, f"n{number}", "x") for number in range(100)))
        await look_again(clock)
        assert store.compacted == 80
        assert log_revisions(store._engine) == list(range(81, 101))


async def test_the_bound_on_length_wins_over_the_least_history(tmp_path: Path, clock: WallClock) -> None:
    options = StoreOptions(compact_age=0, compact_min_revisions=50, compact_max_revisions=10)
    async with opened(tmp_path, options, clock) as store:
        await asyncio.gather(*(update(store, f"n{number}", "x") for number in range(30)))
        await look_again(clock, options.compact_interval)
        assert store.compacted == 20


async def test_an_empty_store_has_nothing_to_compact(tmp_path: Path, clock: WallClock) -> None:
    async with opened(tmp_path, BY_AGE, clock) as store:
        for _ in range(3):
            await look_again(clock, 3600)
        assert (store.revision, store.compacted) == (0, 0)
        await create(store, "a")


async def test_the_newest_revision_before_a_time_is_found_by_bisection(tmp_path: Path, clock: WallClock) -> None:
    options = StoreOptions(compact_interval=1e9, group_jobs=3)
    async with opened(tmp_path, options, clock) as store:
        times: list[int] = []
        for burst in (1, 5, 2, 9, 1, 1, 4):
            clock.advance(60)
            now = int(clock.now().timestamp() * 1000)
            await asyncio.gather(*(update(store, "a", "x") for _ in range(burst)))
            times += [now] * burst
        await store.compact(Revision(4))
        with store._engine.view() as view:
            for time_ms in sorted({moment + step for moment in times for step in (-1, 0, 1)}):
                expected = max([4, *(revision for revision, at in enumerate(times, 1) if at < time_ms)])
                assert view.revision_before(time_ms) == expected


async def test_a_look_never_chooses_less_than_is_compacted_nor_more_than_there_is(tmp_path: Path) -> None:
    with Engine(tmp_path / "store") as engine:
        for number in range(10):
            commit(engine, number)
        apply_to(engine, lambda group: group.compact(Revision(5)))
        with engine.view() as view:
            for age, least, most in [(0, 0, 0), (0, 10**9, 10**9), (1e9, 0, 10**9), (0, 0, 10**9), (1e9, 0, 3)]:
                options = StoreOptions(compact_age=age, compact_min_revisions=least, compact_max_revisions=most)
                assert 5 <= choose_revision(view, options, datetime(2026, 1, 1, tzinfo=UTC)) <= 10


# -- looking at the past ------------------------------------------------------


async def test_pages_of_the_past_agree_however_much_happens_between_them(tmp_path: Path, clock: WallClock) -> None:
    async with opened(tmp_path, StoreOptions(), clock) as store:
        await asyncio.gather(*(create(store, f"n{number:02}", "old") for number in range(40)))
        page = store.range(IN_ROOT, limit=7)
        found = page.records()
        while page.next_after is not None:
            number = len(found)
            await store.commit([Delete(key(f"n{number % 40:02}")), Put(key(f"n{number % 40:02}-new"), value("new"))])
            await update(store, f"n{39 - number % 40:02}", "new")
            page = store.range(IN_ROOT, limit=7, after=page.next_after, revision=page.revision)
            found += page.records()
        assert [(record.key.name, text_of(record)) for record in found] == [
            (f"n{number:02}", "old") for number in range(40)
        ]


async def test_looking_at_the_past_of_many_scopes_takes_bounded_memory(tmp_path: Path, clock: WallClock) -> None:
    """Also of scopes in which nothing has changed since: anybody may ask for them, at any revision."""
    async with opened(tmp_path, StoreOptions(), clock) as store:
        first = await create(store, "a")
        await update(store, "a", "b")
        past = store._engine.past = Past(most_keys=100)
        for number in range(1000):
            assert store.range(Scope(CONFIGMAPS, f"c{number}"), revision=first).pairs == []
        assert len(past._walks) <= 100


# -- in steps -----------------------------------------------------------------


def apply_to(engine: Engine, *jobs: object) -> list[object]:
    with engine.env.write() as txn:
        group = Group(engine, txn, 0)
        outcomes = [job(group) for job in jobs]  # type: ignore[operator]
        group.flush()
    for resource, number in group.new_resources.items():
        engine.remember(resource, number)
    return outcomes


def commit(engine: Engine, number: int) -> None:
    apply_to(engine, lambda group: group.commit([Put(key(f"n{number}"), value()), Put(key("all"), value())]))


def test_a_step_removes_so_many_entries_and_their_trail(tmp_path: Path) -> None:
    with Engine(tmp_path / "store") as engine:
        for number in range(10):
            commit(engine, number)
        apply_to(engine, lambda group: group.compact(Revision(8)))
        lengths = []
        while apply_to(engine, lambda group: remove_step(group, 5))[0]:
            lengths.append(len(log_revisions(engine)))
            assert trail_length(engine) == lengths[-1]
            assert list(find_problems(engine)) == []
        # Twenty entries, two for each revision; a step may end between those of one commit.
        assert lengths == [15, 10, 5]
        assert log_revisions(engine) == [9, 9, 10, 10]


def test_a_step_in_the_group_that_marks_removes_no_entry_of_a_later_revision(tmp_path: Path) -> None:
    with Engine(tmp_path / "store") as engine:
        commit(engine, 1)
        apply_to(
            engine,
            lambda group: group.commit([Put(key("a"), value())]),
            lambda group: group.compact(group.revision),
            lambda group: remove_step(group, 100),
            lambda group: group.commit([Put(key("b"), value())]),
        )
        assert 3 in log_revisions(engine)
        with engine.view() as view:
            assert (view.compacted, view.revision) == (2, 3)
            events, reached = view.changes(EVERYTHING, Revision(2), 10)
            assert [event.key.name for event in events] == ["b"]
            assert reached == 3
        assert list(find_problems(engine)) == []


async def test_commits_go_on_between_the_steps(tmp_path: Path, clock: WallClock) -> None:
    options = StoreOptions(compact_step=1)
    async with opened(tmp_path, options, clock) as store:
        await store.commit([Put(key(f"n{number}"), value()) for number in range(100)])
        compacting = asyncio.create_task(store.compact(store.revision))
        commits = 0
        while not compacting.done():
            await update(store, "a", str(commits))
            commits += 1
        assert commits >= 20
        assert log_revisions(store._engine) == list(range(2, 2 + commits))


async def test_old_revisions_are_out_of_reach_before_their_entries_are_gone(tmp_path: Path, clock: WallClock) -> None:
    """So that no reader meets a log with a hole in it."""
    options = StoreOptions(compact_step=1)
    async with opened(tmp_path, options, clock) as store:
        for number in range(20):
            await update(store, "a", str(number))
        with store.watch(IN_ROOT, Revision(0)) as behind:
            compacting = asyncio.create_task(store.compact(Revision(15)))
            while not compacting.done():
                await asyncio.sleep(0)
                if store.compacted == 15:
                    for revision in (0, 1, 14):
                        with pytest.raises(Compacted):
                            store.watch(IN_ROOT, Revision(revision))
                        with pytest.raises(Compacted):
                            store.range(IN_ROOT, revision=Revision(revision))
                    assert texts(store.range(IN_ROOT, revision=Revision(15))) == {"root|default/a": "14"}
            await compacting
            with pytest.raises(Compacted):
                await behind.next()


async def test_many_compactions_at_once_leave_a_sound_store(tmp_path: Path, clock: WallClock) -> None:
    options = StoreOptions(compact_step=2)
    async with opened(tmp_path, options, clock) as store:
        await asyncio.gather(*(update(store, f"n{number % 7}", str(number)) for number in range(100)))
        outcomes = await asyncio.gather(
            *(store.compact(Revision(revision)) for revision in (90, 10, 50, 95, 101, 95, 0)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes if outcome is not None] == [FutureRevision]
        assert store.compacted == 95
        assert log_revisions(store._engine) == list(range(96, 101))


async def test_deleted_and_recreated_keys_keep_their_past_within_reach(tmp_path: Path, clock: WallClock) -> None:
    async with opened(tmp_path, StoreOptions(compact_step=1), clock) as store:
        await create(store, "a", "1")
        await store.commit([Delete(key("a"))])
        await create(store, "a", "3")
        await store.commit([Delete(key("a"))])
        await create(store, "b", "5")
        await store.compact(Revision(2))
        pasts = [texts(store.range(IN_ROOT, revision=Revision(revision))) for revision in range(2, 6)]
        assert pasts == [{}, {"root|default/a": "3"}, {}, {"root|default/b": "5"}]


# -- crashes, clocks and errors -----------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 3], ids=lambda steps: f"after {steps} steps")
async def test_a_removal_that_a_crash_interrupted_is_finished_at_the_next_open(
    tmp_path: Path, clock: WallClock, steps: int
) -> None:
    with Engine(tmp_path / "store") as engine:
        for number in range(10):
            commit(engine, number)
        apply_to(engine, lambda group: group.compact(Revision(7)))
        for _ in range(steps):
            apply_to(engine, lambda group: remove_step(group, 3))
        assert list(find_problems(engine)) == []
        assert len(log_revisions(engine)) == 20 - 3 * steps
    async with opened(tmp_path, StoreOptions(compact_step=2), clock) as store:
        assert (store.compacted, store.revision) == (7, 10)
        assert log_revisions(store._engine) == [8, 8, 9, 9, 10, 10]
        assert trail_length(store._engine) == 6


async def test_a_cancelled_compaction_is_finished_at_the_next_look(tmp_path: Path, clock: WallClock) -> None:
    async with opened(tmp_path, StoreOptions(compact_step=1), clock) as store:
        await asyncio.gather(*(update(store, "a", str(number)) for number in range(50)))
        compacting = asyncio.create_task(store.compact(Revision(40)))
        while store.compacted == 0:
            await update(store, "b", "x")
        compacting.cancel()
        await asyncio.gather(compacting, return_exceptions=True)
        assert log_revisions(store._engine)[0] < 41
        await look_again(clock, store.options.compact_interval)
        assert log_revisions(store._engine) == list(range(41, store.revision + 1))


async def test_a_clock_that_is_set_back_costs_no_recent_history(tmp_path: Path, clock: WallClock) -> None:
    async with opened(tmp_path, BY_AGE, clock) as store:
        await update(store, "a", "1")
        clock.set_by = -3600.0
        await update(store, "a", "2")
        times = log_times(store._engine)
        assert len(times) == 2
        assert times == sorted(times)  # or it could not be bisected
        for number in range(20):
            await update(store, "a", str(number))
            await look_again(clock)
        # Twenty minutes have passed, ten of which are kept, on whatever clock.
        assert store.compacted <= 12


async def test_a_clock_that_was_set_back_does_not_stop_compaction_for_good(tmp_path: Path, clock: WallClock) -> None:
    async with opened(tmp_path, BY_AGE, clock) as store:
        await update(store, "a", "1")
        clock.set_by = -3600.0
        await update(store, "a", "2")
        await look_again(clock, 3600 + 11 * MINUTE)
        assert store.compacted == 2


async def test_a_clock_set_back_between_two_runs_costs_no_recent_history(tmp_path: Path, clock: WallClock) -> None:
    clock.set_by = 3600.0
    async with opened(tmp_path, BY_AGE, clock) as store:
        for number in range(5):
            await update(store, "a", str(number))
    clock.set_by = 0.0
    async with opened(tmp_path, BY_AGE, clock) as store:
        for number in range(20):
            await update(store, "a", str(number))
            await look_again(clock)
        assert store.compacted <= 15
    clock.advance(3600)
    async with opened(tmp_path, BY_AGE, clock) as store:
        assert store.compacted == 25


async def test_a_clock_that_jumps_ahead_and_back_loses_no_watcher_that_keeps_up(
    tmp_path: Path, clock: WallClock
) -> None:
    options = StoreOptions(compact_interval=MINUTE, compact_age=10 * MINUTE, compact_min_revisions=0)
    async with opened(tmp_path, options, clock) as store:
        with store.watch(IN_ROOT, Revision(0)) as watcher:
            for number, set_by in enumerate([0, 86400.0 * 365, 0, -86400.0 * 365, 0, 86400.0]):
                clock.set_by = set_by
                await update(store, "a", str(number))
                await look_again(clock)
                assert [event.revision for event in await take(watcher, 1)] == [number + 1]


def log_times(engine: Engine) -> list[int]:
    with engine.view() as view, view.txn.cursor(engine.env.log) as cursor:
        return [layout.log_entry_time(entry) for _, entry in cursor]


async def test_a_look_that_fails_is_logged_and_the_next_one_succeeds(
    tmp_path: Path, clock: WallClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, BY_AGE, clock) as store:
        await update(store, "a", "1")
        clock.error = Unavailable("the disk is busy burning")
        with caplog.at_level(logging.WARNING):
            await look_again(clock, 11 * MINUTE)
        assert "not compacted: the disk is busy burning" in caplog.text
        assert store.compacted == 0
        clock.error = None
        await look_again(clock)
        assert store.compacted == 1


async def test_a_look_goes_on_after_all_readers_places_were_taken(
    tmp_path: Path, clock: WallClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, BY_AGE, clock) as store:
        await update(store, "a", "1")
        store._close_view()
        with caplog.at_level(logging.WARNING), contextlib.ExitStack() as readers:
            take_all_places(store._engine, readers)
            clock.advance(11 * MINUTE)
            for _ in range(10):
                await asyncio.sleep(0)
        assert "not compacted" in caplog.text
        async with asyncio.timeout(1):
            await look_again(clock)
        assert store.compacted == 1


def take_all_places(engine: Engine, readers: contextlib.ExitStack) -> None:
    with contextlib.suppress(Exception):
        while True:
            readers.enter_context(engine.env.read())
