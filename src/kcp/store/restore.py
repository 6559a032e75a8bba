"""Restoring a backup into a new embedded store; `etcd/restore.py` does the same for etcd."""

from __future__ import annotations

import shutil
from itertools import islice
from typing import TYPE_CHECKING

from kcp.store.backup import open_backup
from kcp.store.engine import Engine
from kcp.store.environment import translated
from kcp.store.errors import InUse
from kcp.store.keys import Revision
from kcp.store.transaction import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kcp.store.keys import ObjectKey

# Clients remember revisions that the lost store reached after the backup. The restored one starts far beyond any of
# them and has them compacted, so that every watch from before is told to list anew instead of resuming into a
# different history. Etcd's own advice for its snapshots is the same number.
REVISION_GAP = 1_000_000_000

_BATCH = 1000


def restore_embedded(backup: Path, directory: Path, progress: Callable[[int], None] | None = None) -> Revision:
    """Make a new store in `directory`, which must not hold one, and return its revision.

    The directory appears only when everything is in it and on the disk.
    """
    if directory.exists() and any(directory.iterdir()):
        raise InUse(f"{directory} is not empty: move it away first, or restore to another directory")
    building = directory.with_name(directory.name + ".partial")
    shutil.rmtree(building, ignore_errors=True)
    try:
        with open_backup(backup) as (header, objects):
            revision = Revision(header.revision + REVISION_GAP)
            with Engine(building, durable=False) as engine:
                _fill(engine, revision, objects, progress)
                engine.env.flush()
        if directory.exists():
            directory.rmdir()
        building.rename(directory)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return revision


def _fill(
    engine: Engine,
    revision: Revision,
    objects: Iterator[tuple[ObjectKey, bytes]],
    progress: Callable[[int], None] | None,
) -> None:
    done = 0
    while True:
        batch = list(islice(objects, _BATCH))
        with translated(engine.env.path), engine.env.write() as txn:
            group = Group(engine, txn, 0)
            group.overwrite(batch)
            group.restart_history(revision)
            group.flush()
        for resource, number in group.new_resources.items():
            engine.remember(resource, number)
        done += len(batch)
        if progress is not None:
            progress(done)
        if not batch:
            return
