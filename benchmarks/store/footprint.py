"""What a closed store takes of the disk, and which of its tables take it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import lmdb

from benchmarks.measure import file_size
from benchmarks.report import Row, Unit

if TYPE_CHECKING:
    from pathlib import Path

_DATA = "data.mdb"


def disk_rows(when: str, path: Path, workspaces: int) -> list[Row]:
    """The store's file divided by the number of workspaces: its length, its blocks, and the pages in use."""
    size = file_size(path / _DATA)
    tables = {name: used / workspaces for name, used in _table_bytes(path).items()}
    parts = ", ".join(f"{name} {used:,.0f}" for name, used in tables.items() if used >= 1)
    return [
        Row(name=f"file for each workspace, {when}", value=size.apparent / workspaces, unit=Unit.BYTES),
        Row(name=f"disk (du) for each workspace, {when}", value=size.on_disk / workspaces, unit=Unit.BYTES),
        Row(name=f"in use for each workspace, {when}", value=sum(tables.values()), unit=Unit.BYTES, note=parts),
    ]


def _table_bytes(path: Path) -> dict[str, int]:
    """The bytes of the pages that each table fills; the rest of the file is free for reuse."""
    used = {}
    with lmdb.open(str(path), readonly=True, map_size=0, max_dbs=16) as env:
        for name in env.dbs():
            table = env.open_db(name, create=False)
            with env.begin() as txn:
                pages = txn.stat(table)
            count = pages["branch_pages"] + pages["leaf_pages"] + pages["overflow_pages"]
            used[name.decode()] = count * pages["psize"]
    return used


def evict(path: Path) -> None:
    """Ask the kernel to forget its copy of a closed store, so that the next reads are the disk's."""
    file = os.open(path / _DATA, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)
