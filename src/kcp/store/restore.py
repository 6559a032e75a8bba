"""Restoring a backup into a new embedded store; `etcd/restore.py` does the same for etcd."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from typing import TYPE_CHECKING

from kcp.store.backup import open_backup
from kcp.store.engine import Engine
from kcp.store.environment import MapFull, translated
from kcp.store.errors import InUse, NoSpace, StoreError
from kcp.store.files import sync_directory
from kcp.store.keys import Revision
from kcp.store.transaction import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kcp.store.keys import ObjectKey

    Objects = list[tuple[ObjectKey, bytes]]

# Clients remember revisions that the lost store reached after the backup. The restored one starts far beyond any of
# them and has them compacted, so that every watch from before is told to list anew instead of resuming into a
# different history. Etcd's own advice for its snapshots is the same number.
REVISION_GAP = 1_000_000_000

# How much goes into one transaction, and is in memory meanwhile.
_BATCH_OBJECTS = 1000
_BATCH_BYTES = 16 << 20


def restore_embedded(backup: Path, directory: Path, progress: Callable[[int], None] | None = None) -> Revision:
    """Make a new store in `directory`, which must not hold one, and return its revision.

    The directory appears only when everything is in it and on the disk. Raises Damaged for a file that is not a whole
    backup, NoSpace if there is no room, InUse if there is something in the directory, and StoreError if it, or the
    backup, is out of reach; then nothing is left behind.
    """
    with translated(directory):
        if directory.exists() and any(directory.iterdir()):
            raise InUse(f"{directory} is not empty: move it away first, or restore to another directory")
        with open_backup(backup) as (header, objects), _building(directory) as building:
            revision = Revision(header.revision + REVISION_GAP)
            with Engine(building, durable=False) as engine:
                _fill(engine, revision, objects, progress)
                engine.env.flush()
    return revision


@contextlib.contextmanager
def _building(directory: Path) -> Iterator[Path]:
    """A directory beside `directory` that takes its name when all went well, and is removed otherwise.

    A killed restore leaves it behind, so the name is always the same and a lock tells whether anybody works there.
    """
    building = directory.with_name(directory.name + ".partial")
    new_parents = [parent for parent in directory.parents if not parent.exists()]
    with contextlib.ExitStack() as undo:
        for parent in reversed(new_parents):  # the stack undoes the innermost first
            undo.callback(_remove_if_empty, parent)
        building.mkdir(mode=0o700, parents=True, exist_ok=True)
        undo.enter_context(_locked(building))
        undo.callback(shutil.rmtree, building, ignore_errors=True)
        _clear(building)
        yield building
        sync_directory(building)
        building.rename(directory)  # replaces an empty directory, and nothing else
        for parent in (directory.parent, *(parent.parent for parent in new_parents)):
            sync_directory(parent)


def _remove_if_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()


@contextlib.contextmanager
def _locked(building: Path) -> Iterator[None]:
    descriptor = os.open(building, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InUse(f"another process is restoring in {building}") from error
        yield
    finally:
        os.close(descriptor)


def _clear(building: Path) -> None:
    for left in building.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()


def _fill(
    engine: Engine,
    revision: Revision,
    objects: Iterator[tuple[ObjectKey, bytes]],
    progress: Callable[[int], None] | None,
) -> None:
    done = 0
    for batch in _batches(objects):
        _write(engine, revision, batch)
        done += len(batch)
        if progress is not None:
            progress(done)


def _batches(objects: Iterator[tuple[ObjectKey, bytes]]) -> Iterator[Objects]:
    """The objects in pieces, and an empty one last: a store without objects is written too."""
    batch: Objects = []
    size = 0
    for key, stored in objects:
        batch.append((key, stored))
        size += len(stored)
        if len(batch) == _BATCH_OBJECTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
    yield []


def _write(engine: Engine, revision: Revision, batch: Objects) -> None:
    while True:
        try:
            with translated(engine.env.path), engine.env.write() as txn:
                group = Group(engine, txn, 0)
                group.overwrite(batch)
                group.restart_history(revision)
                group.flush()
        except MapFull:
            _grow(engine)
            continue
        for resource, number in group.new_resources.items():
            engine.remember(resource, number)
        return


def _grow(engine: Engine) -> None:
    try:
        engine.env.grow()
    except StoreError as error:
        raise NoSpace(f"the backup does not fit, and the store could not be enlarged: {error}") from error
