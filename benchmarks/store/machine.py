"""What the machine itself gives: the disk's syncs, and LMDB with nothing around it."""

from __future__ import annotations

import contextlib
import os
import random
import time
from itertools import islice
from typing import TYPE_CHECKING

import lmdb

from benchmarks.measure import Timed, latency_of, rate
from benchmarks.store import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Self

    Pair = tuple[bytes, bytes]

_PAGE = 4096
_MAP_BYTES = 1 << 36
_PUTS_TO_FILL = 50_000  # in a transaction, when no fsync is measured


def measure_syncs(directory: Path, count: int) -> Timed:
    """Writes of one page, each followed by fdatasync: the fastest that anything durable can be."""
    path = directory / "sync"
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    page = os.urandom(_PAGE)
    os.pwrite(file, page, 0)
    os.fsync(file)
    seconds = []
    try:
        for _ in range(count):
            start = time.perf_counter()
            os.pwrite(file, page, 0)
            os.fdatasync(file)
            seconds.append(time.perf_counter() - start)
    finally:
        os.close(file)
        path.unlink()
    return Timed(count / sum(seconds), latency_of(seconds))


def random_pairs(count: int) -> Iterator[Pair]:
    """Objects of one KiB under new keys."""
    stored = objects.value()
    for _ in range(count):
        yield random.randbytes(16), stored


class RawTable:
    """An LMDB database of one table."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._env = lmdb.open(str(path), map_size=_MAP_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._env.close()

    def fill(self, pairs: Iterable[Pair]) -> None:
        """As fast as possible: durable only at the end."""
        self._env.close()
        waiting = iter(pairs)
        with contextlib.closing(lmdb.open(str(self._path), map_size=_MAP_BYTES, sync=False)) as env:
            while chunk := list(islice(waiting, _PUTS_TO_FILL)):
                with env.begin(write=True) as txn, txn.cursor() as cursor:
                    cursor.putmulti(chunk)
            env.sync(True)
        self._env = lmdb.open(str(self._path), map_size=_MAP_BYTES)

    def measure_puts(self, pairs: Iterable[Pair], *, in_a_group: int) -> Timed:
        """Puts in transactions of `in_a_group`, each with its fsync."""
        waiting = list(pairs)

        def put_groups() -> int:
            for start in range(0, len(waiting), in_a_group):
                with self._env.begin(write=True) as txn:
                    for key, stored in waiting[start : start + in_a_group]:
                        txn.put(key, stored)
            return len(waiting)

        return rate(put_groups)

    def measure_gets(self, keys: Sequence[bytes]) -> Timed:
        """Gets in one held transaction."""
        with self._env.begin() as txn:

            def get_all() -> int:
                for key in keys:
                    txn.get(key)
                return len(keys)

            return rate(get_all)

    def measure_scans(self, starts: Sequence[bytes], *, limit: int) -> Timed:
        """Lists of `limit` pairs with a cursor, in one held transaction."""
        with self._env.begin() as txn:

            def scan_all() -> int:
                for start in starts:
                    with txn.cursor() as cursor:
                        cursor.set_range(start)
                        list(islice(cursor, limit))
                return len(starts)

            return rate(scan_all)
