"""Keeping the local copy of etcd honest: when to throw it away, and how to read everything anew.

The mirror is written without fsync. A killed process loses nothing by that, a machine that loses power might leave a
torn file; so a mirror that was in use in an earlier life of the machine is not opened but discarded. Where one life
cannot be told from the next, so is every mirror that was not closed in good order.
"""

from __future__ import annotations

import shutil
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from kcp.store.errors import Compacted, TooLarge
from kcp.store.files import WRITER_LOCK, write_whole, writer_lock
from kcp.store.keys import ObjectKey, Revision, Scope
from kcp.store.value import is_usable, stamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from kcp.store.engine import Engine
    from kcp.store.etcd import messages
    from kcp.store.etcd.client import EtcdClient
    from kcp.store.etcd.keys import EtcdKeys
    from kcp.store.keys import ResourceKey
    from kcp.store.transaction import Group
    from kcp.store.writer import Writer

    Change = tuple[ObjectKey, bytes | None]

# In every mirror's directory, so that nothing else is ever discarded; says in which life of the machine it is in use.
_MARKER = "MIRROR"
_CLEAN = "clean"
_IN_USE = "in use"  # in a life of the machine that has no name
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PAGE_OBJECTS = 1000
_PAGE_BYTES = 8 << 20
_FLUSH_CHANGES = 5000


def is_mirror(path: Path) -> bool:
    return (path / _MARKER).exists()


def discard(path: Path) -> None:
    """Remove a mirror. Raises InUse while a process has it open."""
    with writer_lock(path):
        # The marker last, so that what is left after a crash is still known for a mirror; the lock not at all, or two
        # processes could each hold one.
        for entry in sorted(path.iterdir(), key=lambda entry: entry.name == _MARKER):
            if entry.name == WRITER_LOCK:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def discard_if_torn(path: Path) -> None:
    if is_mirror(path) and (path / _MARKER).read_bytes().decode(errors="replace") not in (_CLEAN, _boot_id()):
        discard(path)


def mark_in_use(path: Path) -> None:
    write_whole(path / _MARKER, _boot_id() or _IN_USE)


def mark_clean(engine: Engine) -> None:
    engine.env.flush()
    write_whole(engine.env.path / _MARKER, _CLEAN)


def _boot_id() -> str | None:
    """Tells one life of the machine from the next; None if the system does not say."""
    try:
        return _BOOT_ID.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


class Resync:
    """Makes the mirror equal to etcd by writing only what differs.

    etcd and the mirror have the objects of one resource in the same order, so each page of etcd's is compared with one
    range of the mirror's:

        etcd     page 1: a b d | page 2: f | end            mirror   a b c d e f g
        compared (start..d]: c goes          (d..f]: e goes          (f..end]: g goes
    """

    def __init__(self, client: EtcdClient, keys: EtcdKeys, base: int, engine: Engine, writer: Writer) -> None:
        self._client = client
        self._keys = keys
        self._base = base
        self._engine = engine
        self._writer = writer
        self._changes: list[Change] = []

    async def run(self, *, live: bool) -> Revision:
        """Return the revision that the mirror has now.

        A live mirror, one that is being read, changes in a single transaction; a new one is filled in steps.
        """
        while True:
            try:
                return await self._run(live)
            except Compacted:
                self._changes.clear()  # it took longer than etcd keeps a revision

    async def _run(self, live: bool) -> Revision:
        seen: set[ResourceKey] = set()
        place: ObjectKey | None = None  # all before it, of its resource, is compared
        revision = Revision(0)
        async for at, page in self._pages():
            revision = at
            for resource, group in groupby(page, key=lambda item: item[0].resource):
                found = dict(group)
                if place is not None and place.resource != resource:
                    self._compare(place.resource, place, None, {})
                    place = None
                *_, last = found
                self._compare(resource, place, last, found)
                place = last
                seen.add(resource)
            if not live and len(self._changes) >= _FLUSH_CHANGES:
                await self._write(Revision(0))
        if place is not None:
            self._compare(place.resource, place, None, {})
        self._drop_all_but(seen)
        await self._write(revision)
        return revision

    async def _pages(self) -> AsyncIterator[tuple[Revision, list[tuple[ObjectKey, bytes]]]]:
        """All of etcd's objects at one revision, as (key, stored bytes)."""
        start, end = self._keys.objects
        revision, limit, more = 0, _PAGE_OBJECTS, True
        while more:
            try:
                response = await self._client.range(start, end, limit=limit, revision=revision)
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // 8)  # these objects are larger than the ones before
                continue
            revision, more = revision or response.header.revision, response.more
            yield Revision(revision + self._base), [item for kv in response.kvs if (item := self._item(kv)) is not None]
            if response.kvs:
                start = response.kvs[-1].key + b"\0"
                size = sum(len(kv.value) for kv in response.kvs) // len(response.kvs) + 1
                limit = max(1, min(_PAGE_OBJECTS, _PAGE_BYTES // size))

    def _item(self, kv: messages.KeyValue) -> tuple[ObjectKey, bytes] | None:
        key = self._keys.decode(kv.key)
        if key is None or not is_usable(kv.value):
            return None
        return key, stamp(kv.value, kv.mod_revision + self._base)

    def _compare(
        self, resource: ResourceKey, after: ObjectKey | None, last: ObjectKey | None, found: dict[ObjectKey, bytes]
    ) -> None:
        """Note what differs between `found` and the mirror's objects behind `after`, up to `last` or the end."""
        with self._engine.view() as view:
            mirrored = view.between(resource, after, last)
        self._changes.extend((key, stored) for key, stored in found.items() if mirrored.get(key) != stored)
        self._changes.extend((key, None) for key in mirrored.keys() - found.keys())

    def _drop_all_but(self, seen: Iterable[ResourceKey]) -> None:
        with self._engine.view() as view:
            for resource in view.totals().keys() - set(seen):
                self._changes.extend((record.key, None) for record in view.range(Scope(resource)).records())

    async def _write(self, revision: Revision) -> None:
        changes, self._changes = self._changes, []

        def write(group: Group) -> None:
            group.overwrite(changes)
            group.restart_history(revision)

        await self._writer.submit(write)
