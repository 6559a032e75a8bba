"""Taking measurements: rates, percentiles, memory and disk. Knows nothing of what is measured."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

_SECTOR = 512  # the unit of the kernel's disk statistics, whatever the disk's own is


class Latency(NamedTuple):
    """How long one operation took, in milliseconds."""

    p50: float
    p99: float


class Timed(NamedTuple):
    """A rate, and how long each operation took where that was measured."""

    per_second: float
    latency: Latency | None = None


class FileSize(NamedTuple):
    """A file's length, and what it takes of the disk, in bytes."""

    apparent: int
    on_disk: int


class DiskWrites(NamedTuple):
    """What was written to a disk, by everyone, since the machine started."""

    bytes: int
    operations: int


def progress(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def rate(work: Callable[[], int]) -> Timed:
    """How many per second of the things that `work` counts."""
    with quiet_collector():
        start = time.perf_counter()
        done = work()
        return Timed(done / (time.perf_counter() - start))


async def rate_async(work: Callable[[], Awaitable[int]]) -> Timed:
    with quiet_collector():
        start = time.perf_counter()
        done = await work()
        return Timed(done / (time.perf_counter() - start))


def best(rounds: Iterable[Timed]) -> Timed:
    """The least disturbed of several measurements of the same thing."""
    return max(rounds, key=lambda timed: timed.per_second)


def worst(rounds: Iterable[Timed]) -> Timed:
    """For what goes well at times: how it goes when it does not."""
    return min(rounds, key=lambda timed: timed.per_second)


def latency_of(seconds: list[float]) -> Latency:
    ordered = sorted(seconds)
    return Latency(percentile(ordered, 0.50) * 1000, percentile(ordered, 0.99) * 1000)


def percentile(ordered: list[float], share: float) -> float:
    """The value that `share` of all are below."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@contextlib.contextmanager
def quiet_collector() -> Iterator[None]:
    """Begin without garbage of earlier work, whose collection would be counted as part of the measurement."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def anonymous_bytes() -> int:
    """The memory of this process that is not a mapped file; the database's pages are the kernel's to give back."""
    gc.collect()
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel does not tell RssAnon")


def file_size(path: Path) -> FileSize:
    status = path.stat()
    return FileSize(status.st_size, status.st_blocks * 512)


def disk_writes(path: Path) -> DiskWrites | None:
    """Of the disk that `path` is on; None where the kernel does not count them, as for a file system in memory."""
    device = path.stat().st_dev
    statistics = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    if not statistics.exists():
        return None
    numbers = statistics.read_text(encoding="utf-8").split()
    return DiskWrites(int(numbers[6]) * _SECTOR, int(numbers[4]))
