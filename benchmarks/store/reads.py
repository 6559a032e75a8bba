"""Reading: single objects and lists of 500, from a quiet store and from one that is written to."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.measure import Timed, best, latency_of, progress, rate
from benchmarks.report import Row, Section, rate_row
from benchmarks.store import objects
from benchmarks.store.machine import RawTable
from benchmarks.store.settings import GETS_GOAL
from kcp.store import EmbeddedStore, Put, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.store.settings import Settings
    from kcp.store import ObjectKey, Page

_CLUSTER = "root"
_LIMIT = 500
_WRITERS = 32
_GETS_IN_A_TURN = 100


async def measure_reads(settings: Settings) -> Section:
    """Gets and ranges of one process, on its event loop."""
    keys = [objects.key(number) for number in range(settings.objects)]
    async with await EmbeddedStore.open(settings.directory / "reads") as store:
        progress(f"filling a store with {len(keys):,} objects")
        await objects.fill(store, keys)
        with RawTable(settings.directory / "raw") as raw:
            raw.fill((_raw_key(key), objects.value()) for key in keys)
            rows = _measure_gets(store, raw, settings.busy_objects, settings)
            rows += _measure_gets(store, raw, settings.objects, settings)
            rows += _measure_ranges(store, raw, settings)
        rows += await _measure_under_load(store, keys, settings)
    return Section(f"reads from {settings.objects:,} objects of 1 KiB", rows)


def _measure_gets(store: Store, raw: RawTable, among: int, settings: Settings) -> list[Row]:
    progress(f"gets of {among:,} keys")
    # Made anew: a server has just read its key from a request, so that the key is in the processor's caches.
    wanted = [objects.key(number) for number in random.choices(range(among), k=settings.gets)]
    raw_wanted = [_raw_key(key) for key in wanted]
    raw_rounds, rounds = [], []
    for _ in range(settings.rounds):
        raw_rounds.append(raw.measure_gets(raw_wanted))
        rounds.append(rate(lambda: _get_all(store, wanted)))
    machine = best(raw_rounds)
    return [
        rate_row(f"machine: LMDB get of {among:,} keys", machine),
        rate_row(f"get of {among:,} keys", best(rounds), machine=machine.per_second, goal=GETS_GOAL),
    ]


def _raw_key(key: ObjectKey) -> bytes:
    return b"\0\0\0\1" + "/".join(key[1:]).encode()


def _get_all(store: Store, keys: Sequence[ObjectKey]) -> int:
    for key in keys:
        store.get(key)
    return len(keys)


def _measure_ranges(store: Store, raw: RawTable, settings: Settings) -> list[Row]:
    progress("ranges")
    scope = objects.in_cluster(_CLUSTER)
    starts = [objects.key(n) for n in random.choices(range(settings.objects - _LIMIT - 1), k=settings.pages)]
    raw_starts = [_raw_key(key) for key in starts]

    def range_all(use: Callable[[Page], object]) -> int:
        for start in starts:
            use(store.range(scope, after=start, limit=_LIMIT))
        return len(starts)

    machine = best(raw.measure_scans(raw_starts, limit=_LIMIT) for _ in range(settings.rounds))
    rows = [rate_row(f"machine: LMDB cursor over {_LIMIT}", machine)]
    uses: list[tuple[str, Callable[[Page], object]]] = [
        ("", lambda page: page),
        (", bodies", lambda page: page.bodies()),
        (", records", lambda page: page.records()),
    ]
    for what, use in uses:
        timed = best(rate(partial(range_all, use)) for _ in range(settings.rounds))
        note = f"{timed.per_second * _LIMIT:,.0f} objects/s"
        rows.append(rate_row(f"range of {_LIMIT}{what}", timed, machine=machine.per_second, note=note))
    return rows


async def _measure_under_load(store: Store, keys: list[ObjectKey], settings: Settings) -> list[Row]:
    """Readers and writers on one loop, as in a server: the reader lets others run after each hundred gets."""
    progress(f"gets while {_WRITERS} writers write")
    packed = objects.value()
    end = time.perf_counter() + settings.load_seconds
    commits = itertools.count()

    async def write() -> None:
        while time.perf_counter() < end:
            await store.commit([Put(random.choice(keys), packed)])
            next(commits)

    async with asyncio.TaskGroup() as group:
        for _ in range(_WRITERS):
            group.create_task(write())
        reading = group.create_task(_read_until(end, store, len(keys)))
    per_second = next(commits) / settings.load_seconds
    name = f"get of {len(keys):,} keys while {_WRITERS} writers write"
    return [
        rate_row(name, reading.result(), note="latency is of the first get in a turn of the event loop"),
        Row(name="commits meanwhile", value=per_second),
    ]


async def _read_until(end: float, store: Store, among: int) -> Timed:
    wanted = itertools.cycle([objects.key(number) for number in random.choices(range(among), k=100_000)])
    seconds: list[float] = []
    start = time.perf_counter()
    while (turn := time.perf_counter()) < end:
        store.get(next(wanted))
        seconds.append(time.perf_counter() - turn)
        for key in itertools.islice(wanted, _GETS_IN_A_TURN - 1):
            store.get(key)
        await asyncio.sleep(0)
    return Timed(len(seconds) * _GETS_IN_A_TURN / (time.perf_counter() - start), latency_of(seconds))
