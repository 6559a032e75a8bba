"""Files around the database: written as a whole and durably, and the lock that says who writes."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Final

from kcp.store.errors import InUse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITER_LOCK: Final = "writer.lock"


def sync_directory(path: Path) -> None:
    """Make durable which files a directory has."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_whole(path: Path, text: str) -> None:
    """As a whole or not at all, and on the disk before anything that follows."""
    unfinished = path.with_name(f"{path.name}.new")
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_directory(path.parent)


@contextlib.contextmanager
def writer_lock(path: Path) -> Iterator[None]:
    """LMDB lets two processes take turns at writing; two servers would each miss the other's events."""
    with open(path / WRITER_LOCK, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise InUse(f"{path} is in use by process {owner}: stop it, or choose another directory") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
