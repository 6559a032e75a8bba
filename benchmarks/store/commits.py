"""Writing: single commits, many at a time, and many while the event loop has other work."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from typing import TYPE_CHECKING

from benchmarks.measure import Timed, best, latency_of, progress, quiet_collector, worst
from benchmarks.report import Section, rate_row
from benchmarks.store import objects
from benchmarks.store.machine import RawTable, measure_syncs, random_pairs
from benchmarks.store.settings import COMMITS_GOAL
from kcp.store import ABSENT, EmbeddedStore, Put, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.report import Row
    from benchmarks.store.settings import Settings
    from kcp.store import Operation

_WRITERS = 32
_TENANTS = 1_000
_WORK_SECONDS = 0.0003  # about what a request costs


async def measure_commits(settings: Settings) -> Section:
    """Commits of one object of 1 KiB, durable when they return."""
    rounds: dict[str, list[Timed]] = {name: [] for name in ("syncs", "groups", "single", "creates", "updates", "busy")}
    single = settings.commits // 10
    numbers = itertools.count()
    async with await EmbeddedStore.open(settings.directory / "commits") as store:
        for turn in range(settings.rounds):
            progress(f"commits, round {turn + 1} of {settings.rounds}")
            rounds["syncs"].append(measure_syncs(settings.directory, single))
            with RawTable(settings.directory / f"raw{turn}") as raw:
                rounds["groups"].append(raw.measure_puts(random_pairs(settings.commits), in_a_group=_WRITERS))
            rounds["single"].append(await _commit(store, _creates(numbers, single), writers=1))
            rounds["creates"].append(await _commit(store, _creates(numbers, settings.commits), writers=_WRITERS))
            rounds["updates"].append(await _commit(store, _updates(settings.commits), writers=_WRITERS))
            rounds["busy"].append(await _commit_on_busy_loop(store, numbers, settings.load_seconds))
    return Section("commits of one object of 1 KiB, with fsync", _rows(rounds))


def _rows(rounds: dict[str, list[Timed]]) -> list[Row]:
    timed = {name: best(each) for name, each in rounds.items()}
    syncs, groups = timed["syncs"].per_second, timed["groups"].per_second
    of_rounds = f"the worst of {len(rounds['busy'])} rounds"
    return [
        rate_row("machine: 4 KiB write and fdatasync", timed["syncs"]),
        rate_row(f"machine: LMDB puts, {_WRITERS} in a transaction", timed["groups"]),
        rate_row("commit, one at a time", timed["single"], machine=syncs, note="to fdatasync; LMDB syncs twice"),
        rate_row(f"create, {_WRITERS} at a time", timed["creates"], machine=groups, goal=COMMITS_GOAL),
        rate_row(f"update, {_WRITERS} at a time", timed["updates"], machine=groups, goal=COMMITS_GOAL),
        rate_row(
            f"create, {_WRITERS} at a time, on a busy loop", worst(rounds["busy"]), machine=groups, note=of_rounds
        ),
    ]


def _creates(numbers: Iterator[int], count: int) -> Iterator[list[Operation]]:
    packed = objects.value()
    for number in itertools.islice(numbers, count):
        yield [Put(objects.key(number, f"tenant-{number % _TENANTS}"), packed, expect=ABSENT)]


def _updates(count: int) -> Iterator[list[Operation]]:
    packed = objects.value()
    for number in random.choices(range(count), k=count):
        yield [Put(objects.key(number, f"tenant-{number % _TENANTS}"), packed)]


async def _commit(
    store: Store, commits: Iterable[list[Operation]], *, writers: int, seconds: float = float("inf")
) -> Timed:
    """Make the commits, `writers` at a time, for some seconds at most."""
    waiting = list(commits)
    taken: list[float] = []
    end = time.perf_counter() + seconds

    async def write() -> None:
        while waiting and (start := time.perf_counter()) < end:
            await store.commit(waiting.pop())
            taken.append(time.perf_counter() - start)

    with quiet_collector():
        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(writers):
                group.create_task(write())
        elapsed = time.perf_counter() - start
    return Timed(len(taken) / elapsed, latency_of(taken))


async def _commit_on_busy_loop(store: Store, numbers: Iterator[int], seconds: float) -> Timed:
    """The loop is never idle: requests that write nothing keep it in Python code."""
    enough = _creates(numbers, int(seconds * 2 * COMMITS_GOAL))
    working = asyncio.create_task(_work())
    try:
        return await _commit(store, enough, writers=_WRITERS, seconds=seconds)
    finally:
        working.cancel()


async def _work() -> None:
    while True:
        end = time.perf_counter() + _WORK_SECONDS
        while time.perf_counter() < end:
            sum(range(100))
        await asyncio.sleep(0)
