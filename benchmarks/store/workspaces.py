"""A million keys: what it takes to make 200,000 workspaces, what they take of disk and memory, and reading them."""

from __future__ import annotations

import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measure import (
    DiskWrites,
    Timed,
    anonymous_bytes,
    disk_writes,
    latency_of,
    progress,
    quiet_collector,
    rate,
)
from benchmarks.report import Row, Section, Unit, rate_row
from benchmarks.store import objects, tenants
from benchmarks.store.footprint import disk_rows, evict
from benchmarks.store.machine import RawTable
from benchmarks.store.settings import MEMORY_NOISE_MEBIBYTES, WORKSPACES_GOAL
from kcp.store import EmbeddedStore, Scope, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from benchmarks.store.settings import Settings
    from benchmarks.store.tenants import Naming

_WRITERS = 64
_CHUNK = 2_000
_SAMPLES = 200
_LIMIT = 500
_PAGES = 10
_MEBIBYTE = 1 << 20


class _Filled(NamedTuple):
    rates: list[float]  # workspaces per second, chunk by chunk
    seconds: float
    anonymous_before: int
    anonymous_after: int
    written: DiskWrites | None


async def measure_workspaces(settings: Settings) -> Section:
    """Each workspace is one commit of five objects; the name of its cluster is random."""
    path, total = settings.directory / "workspaces", settings.workspaces
    async with await EmbeddedStore.open(path) as store:
        filled = await _fill(store, total, path, tenants.random_name)
    rows = _fill_rows(filled, total, _measure_machine(settings))
    rows.append(await _measure_ordered(settings))
    rows += disk_rows("before compaction", path, total)
    progress("opening again, and reading")
    evict(path)
    async with _reopened(path) as (store, milliseconds):
        rows.append(Row(name="open the store", value=milliseconds, unit=Unit.MILLISECONDS))
        rows += _measure_reads(store, total)
        progress("compacting")
        rows.append(await _compact(store, total))
    rows += disk_rows("after compaction", path, total)
    return Section(f"{total:,} workspaces of {tenants.KEYS} keys", rows)


# -- writing ------------------------------------------------------------------


async def _fill(store: Store, total: int, path: Path, name: Naming) -> _Filled:
    """Only the commits are timed, not the making of the objects, which is done chunk by chunk to need little memory."""
    rates: list[float] = []
    seconds = 0.0
    anonymous_before = 0
    written_before = disk_writes(path)
    for first in range(0, total, _CHUNK):
        if first * 10 // total != (first - _CHUNK) * 10 // total:
            progress(f"making workspaces, {first:,} of {total:,}")
        chunk = [tenants.make_workspace(number, name) for number in range(first, min(first + _CHUNK, total))]
        with quiet_collector():
            start = time.perf_counter()
            made = await objects.commit_all(store, chunk, writers=_WRITERS)
            elapsed = time.perf_counter() - start
        rates.append(made / elapsed)
        seconds += elapsed
        chunk.clear()
        anonymous_before = anonymous_before or anonymous_bytes()
    return _Filled(rates, seconds, anonymous_before, anonymous_bytes(), _since(written_before, disk_writes(path)))


def _since(before: DiskWrites | None, after: DiskWrites | None) -> DiskWrites | None:
    if before is None or after is None:
        return None
    return DiskWrites(after.bytes - before.bytes, after.operations - before.operations)


def _measure_machine(settings: Settings) -> Timed:
    """LMDB alone, with as many keys: five puts for each workspace, as many in a transaction as there are writers."""
    progress("the same with LMDB alone")
    total, sample = settings.workspaces, min(_CHUNK, settings.workspaces)
    values = [put.value for put in tenants.make_workspace(0)]

    def pairs(numbers: range) -> Iterator[tuple[bytes, bytes]]:
        for number in numbers:
            cluster = tenants.random_name(number).encode()
            for index, stored in enumerate(values):
                yield index.to_bytes(4) + cluster + b"/default/default", stored

    with RawTable(settings.directory / "raw") as raw:
        raw.fill(pairs(range(total)))
        timed = raw.measure_puts(pairs(range(total, total + sample)), in_a_group=_WRITERS * tenants.KEYS)
    return Timed(timed.per_second / tenants.KEYS)


async def _measure_ordered(settings: Settings) -> Row:
    """The same with names in the order of creation."""
    path, total = settings.directory / "ordered", max(settings.workspaces // 10, 1)
    async with await EmbeddedStore.open(path) as store:
        filled = await _fill(store, total, path, tenants.ordered_name)
    name = f"workspaces, {_WRITERS} at a time, with ordered names"
    return Row(name=name, value=total / filled.seconds, note=f"{total:,} of them; {_describe(filled.written, total)}")


def _fill_rows(filled: _Filled, total: int, machine: Timed) -> list[Row]:
    tenth = max(len(filled.rates) // 10, 1)
    start, end = _mean(filled.rates[:tenth]), _mean(filled.rates[-tenth:])
    keys = total * tenants.KEYS
    grown = filled.anonymous_after - filled.anonymous_before
    name = f"workspaces, {_WRITERS} at a time"
    return [
        rate_row(f"machine: LMDB puts, {_WRITERS} workspaces in a transaction", machine, note="into as many"),
        Row(
            name=name,
            value=total / filled.seconds,
            goal=WORKSPACES_GOAL,
            note=f"{keys / filled.seconds:,.0f} keys/s; {_describe(filled.written, total)}",
        ),
        Row(
            name=f"{name}, the last tenth",
            value=end,
            machine=machine.per_second,
            note=f"{end / start:.2f} of the rate of the first tenth",
        ),
        Row(
            name="anonymous memory gained",
            value=grown / _MEBIBYTE,
            unit=Unit.MEBIBYTES,
            goal=MEMORY_NOISE_MEBIBYTES,
            note=f"from {filled.anonymous_before / _MEBIBYTE:.0f} MiB; {grown / keys:.1f} bytes a key",
        ),
    ]


def _describe(written: DiskWrites | None, total: int) -> str:
    if written is None:
        return "disk writes not known"
    # The kernel counts for the whole disk: on a shared machine this is too much.
    return f"{written.bytes / total / 1024:.1f} KiB in {written.operations / total:.1f} disk writes each"


def _mean(rates: list[float]) -> float:
    """Of rates over equal amounts of work."""
    return len(rates) / sum(1 / each for each in rates)


async def _compact(store: Store, total: int) -> Row:
    start = time.perf_counter()
    await store.compact(store.revision)
    elapsed = time.perf_counter() - start
    entries = total * tenants.KEYS / elapsed
    return Row(name="compaction, log entries removed", value=entries, note=f"{elapsed:.1f} s in all")


# -- reading ------------------------------------------------------------------


@asynccontextmanager
async def _reopened(path: Path) -> AsyncIterator[tuple[EmbeddedStore, float]]:
    start = time.perf_counter()
    store = await EmbeddedStore.open(path)
    elapsed = time.perf_counter() - start
    async with store:
        yield store, elapsed * 1000


def _measure_reads(store: Store, total: int) -> list[Row]:
    clusters = [tenants.random_name(number) for number in random.sample(range(total), min(2 * _SAMPLES, total))]
    some, others = clusters[: len(clusters) // 2], clusters[len(clusters) // 2 :]
    return [
        rate_row("get in a random workspace, cold", _each(some, lambda cluster: _get(store, cluster))),
        rate_row("get in a random workspace, warm", _each(some, lambda cluster: _get(store, cluster))),
        rate_row("counts of a random workspace, cold", _each(others, store.counts)),
        rate_row("counts of a random workspace, warm", _each(others, store.counts)),
        rate_row(f"wildcard page of {_LIMIT}, cold", rate(lambda: _wildcard_pages(store))),
        rate_row(f"wildcard page of {_LIMIT}, warm", rate(lambda: _wildcard_pages(store))),
    ]


def _each(clusters: list[str], read: Callable[[str], object]) -> Timed:
    seconds = []
    for cluster in clusters:
        start = time.perf_counter()
        read(cluster)
        seconds.append(time.perf_counter() - start)
    return Timed(len(clusters) / sum(seconds), latency_of(seconds))


def _get(store: Store, cluster: str) -> object:
    return store.get(tenants.logical_cluster_key(cluster))


def _wildcard_pages(store: Store) -> int:
    """The first pages of a list over all clusters."""
    after, pages = None, 0
    while pages < _PAGES:
        page = store.range(Scope(tenants.LOGICAL_CLUSTERS), after=after, limit=_LIMIT)
        after, pages = page.next_after, pages + 1
        if after is None:
            break
    return pages
