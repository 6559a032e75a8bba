"""Backups: consistent while the store is at work, whole or refused, and restored to all or nothing."""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
import os
import resource
import struct
import traceback
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kcp.meta import codec
from kcp.store import (
    Compacted,
    Conflict,
    Damaged,
    Delete,
    EmbeddedStore,
    InUse,
    NoSpace,
    Put,
    Record,
    ResourceKey,
    Revision,
    Scope,
    StoreError,
    StoreOptions,
    pack,
)
from kcp.store.backup import open_backup, write_backup
from kcp.store.check import find_problems
from kcp.store.engine import Engine
from kcp.store.environment import Environment
from kcp.store.restore import REVISION_GAP, restore_embedded
from kcp.store.transaction import Group
from kcp.store.value import stamp
from tests.store.objects import CONFIGMAPS, EVERYTHING, SECRETS, WIDGETS, create, key, take, text_of, update, value

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from kcp.store import ObjectKey
    from kcp.store.environment import Transaction

NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
SPAWN = multiprocessing.get_context("spawn")
PATIENCE = 60  # seconds until a silent child counts as hung
HEADER = {"format": "kcp-backup", "version": 1, "revision": 5, "created": "2025-01-02T03:04:05Z"}


def run_child(pipe: Connection, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
    try:
        function(pipe, *arguments)
    except BaseException:
        pipe.send(AssertionError(traceback.format_exc()))


class Child:
    """Another process that runs one function of this module, and a pipe to it."""

    def __init__(self, function: Callable[..., None], *arguments: object) -> None:
        self.pipe, there = SPAWN.Pipe()
        self.process = SPAWN.Process(target=run_child, args=(there, function, arguments), daemon=True)
        self.process.start()
        there.close()

    def receive(self) -> Any:  # noqa: ANN401 - whatever the function sends
        assert self.pipe.poll(PATIENCE), "the child is silent"
        answer = self.pipe.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


async def make_store(path: Path) -> EmbeddedStore:
    """A store with a bit of everything."""
    store = await EmbeddedStore.open(path)
    labelled = value("labelled", labels={"app": "web"}, ownerReferences=[{"uid": "u1"}], finalizers=["example.io/f"])
    await store.commit([Put(key("a"), labelled), Put(key("a", resource=WIDGETS, namespace=""), value("widget"))])
    await store.commit([Put(key("plain"), pack(b"\x00no json\xff", schema=7, flags=1))])
    await create(store, "gone")
    await asyncio.gather(*(create(store, f"n{number}", cluster=f"c{number % 3}") for number in range(30)))
    await store.commit([Delete(key("gone")), Put(key("é", cluster="root:org"), value("unicode"))])
    return store


def objects_of(store: EmbeddedStore) -> dict[ObjectKey, tuple[bytes, int]]:
    return {record.key: (record.value, record.revision) for record in store.range(EVERYTHING).records()}


def objects_in(backup: Path) -> dict[ObjectKey, bytes]:
    with open_backup(backup) as (_, objects):
        return dict(objects)


# -- there and back -----------------------------------------------------------


async def test_a_restored_store_has_every_object_as_it_was(tmp_path: Path) -> None:
    store = await make_store(tmp_path / "store")
    header, count = write_backup(store._engine, tmp_path / "backup", NOW)
    assert header == (store.revision, "2025-01-02T03:04:05Z")
    assert count == store.count(EVERYTHING) == 34
    revision = restore_embedded(tmp_path / "backup", tmp_path / "restored")
    async with await EmbeddedStore.open(tmp_path / "restored") as restored:
        assert objects_of(restored) == objects_of(store)
        assert restored.range(Scope(CONFIGMAPS)).bodies() == store.range(Scope(CONFIGMAPS)).bodies()
        record = restored.get(key("a"))
        assert record is not None
        assert (record.labels, record.owners) == ({"app": "web"}, ["u1"])
        for cluster in ("root", "c0", "c1", "c2", "root:org", "nobody"):
            assert restored.counts(cluster) == store.counts(cluster)
        assert list(find_problems(restored._engine)) == []
        assert restored.revision == revision
    await store.aclose()


async def test_a_restored_store_begins_a_history_of_its_own(tmp_path: Path) -> None:
    store = await make_store(tmp_path / "store")
    write_backup(store._engine, tmp_path / "backup", NOW)
    at_backup = store.revision
    lost = await create(store, "after the backup")
    await store.aclose()
    revision = restore_embedded(tmp_path / "backup", tmp_path / "restored")
    assert revision == at_backup + REVISION_GAP
    async with await EmbeddedStore.open(tmp_path / "restored") as restored:
        assert restored.compacted == restored.revision == revision
        for old in (Revision(0), at_backup, lost, Revision(revision - 1)):
            with pytest.raises(Compacted):
                restored.watch(EVERYTHING, old)
            with pytest.raises(Compacted):
                restored.range(Scope(CONFIGMAPS), revision=old)
        assert restored.get(key("after the backup")) is None
        with restored.watch(EVERYTHING, revision) as watcher:
            assert await update(restored, "a", "changed") == revision + 1
            (event,) = await take(watcher, 1)
            assert (text_of(event.old), text_of(event.new)) == ("labelled", "changed")
        assert list(find_problems(restored._engine)) == []


async def test_expectations_from_before_hold_for_objects_that_did_not_change(tmp_path: Path) -> None:
    store = await make_store(tmp_path / "store")
    write_backup(store._engine, tmp_path / "backup", NOW)
    record = store.get(key("a"))
    assert record is not None
    newer = await update(store, "n0", "after the backup", cluster="c0")
    await store.aclose()
    restore_embedded(tmp_path / "backup", tmp_path / "restored")
    async with await EmbeddedStore.open(tmp_path / "restored") as restored:
        await restored.commit([Put(key("a"), value("next"), expect=record.revision)])
        with pytest.raises(Conflict):
            await restored.commit([Put(key("n0", cluster="c0"), value("next"), expect=newer)])


async def test_a_restored_store_can_be_backed_up_and_restored(tmp_path: Path) -> None:
    store = await make_store(tmp_path / "store")
    expected = objects_of(store)
    write_backup(store._engine, tmp_path / "backup0", NOW)
    await store.aclose()
    for generation in range(3):
        restore_embedded(tmp_path / f"backup{generation}", tmp_path / f"restored{generation}")
        with Engine(tmp_path / f"restored{generation}", readonly=True) as engine:
            write_backup(engine, tmp_path / f"backup{generation + 1}", NOW)
    async with await EmbeddedStore.open(tmp_path / "restored2") as restored:
        assert objects_of(restored) == expected
        assert restored.revision > 3 * REVISION_GAP


async def test_an_empty_store_can_be_backed_up_and_restored(tmp_path: Path) -> None:
    with Engine(tmp_path / "store") as engine:
        assert write_backup(engine, tmp_path / "backup", NOW) == ((0, "2025-01-02T03:04:05Z"), 0)
    assert restore_embedded(tmp_path / "backup", tmp_path / "restored") == REVISION_GAP
    async with await EmbeddedStore.open(tmp_path / "restored") as restored:
        assert (restored.count(EVERYTHING), restored.revision, restored.compacted) == (0, REVISION_GAP, REVISION_GAP)
        assert await create(restored, "first") == REVISION_GAP + 1


async def test_the_largest_objects_fit(tmp_path: Path) -> None:
    largest = [pack(os.urandom(1_400_000)) for _ in range(3)]
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        for number, packed in enumerate(largest):
            await store.commit([Put(key(f"n{number}"), packed)])
        write_backup(store._engine, tmp_path / "backup", NOW)
    restore_embedded(tmp_path / "backup", tmp_path / "restored")
    async with await EmbeddedStore.open(tmp_path / "restored") as restored:
        assert [packed for packed, _ in objects_of(restored).values()] == largest


async def test_more_resources_and_objects_than_one_batch_has(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        puts = [Put(key(f"n{number}", resource=ResourceKey("g", f"r{number % 50}")), value()) for number in range(2500)]
        await asyncio.gather(*(store.commit(puts[start : start + 100]) for start in range(0, 2500, 100)))
        told: list[tuple[int, int]] = []
        write_backup(store._engine, tmp_path / "backup", NOW, lambda done, total: told.append((done, total)))
        assert all(done <= total == 2500 for done, total in told)
        expected = objects_of(store)
    done: list[int] = []
    restore_embedded(tmp_path / "backup", tmp_path / "restored", done.append)
    assert done == sorted(done)
    assert done[-1] == 2500
    async with await EmbeddedStore.open(tmp_path / "restored") as restored:
        assert objects_of(restored) == expected
        assert list(find_problems(restored._engine)) == []


# -- while the store is at work -----------------------------------------------


def back_up_again_and_again(pipe: Connection, path: Path, target: Path) -> None:
    """One backup for each message, by a process that only reads."""
    with Engine(path, readonly=True) as engine:
        pipe.send("open")
        while (number := pipe.recv()) is not None:
            header, count = write_backup(engine, target / f"backup{number}", NOW)
            pipe.send((header.revision, count))


def back_up_anew(pipe: Connection, path: Path, target: Path) -> None:
    """The same, by a process that knows nothing of the store yet each time."""
    pipe.send("open")
    while (number := pipe.recv()) is not None:
        with Engine(path, readonly=True) as engine:
            header, count = write_backup(engine, target / f"backup{number}", NOW)
        pipe.send((header.revision, count))


@pytest.mark.parametrize("backing_up", [back_up_again_and_again, back_up_anew], ids=["staying open", "opening anew"])
async def test_a_backup_by_another_process_has_whole_commits_only(
    tmp_path: Path, backing_up: Callable[..., None]
) -> None:
    options = StoreOptions(compact_interval=0.01, compact_age=0, compact_min_revisions=100)
    async with await EmbeddedStore.open(tmp_path / "store", options=options) as store:
        stopped = False

        async def write(writer: int) -> None:
            number = 0
            while not stopped:
                number += 1
                await store.commit([Put(member, value(str(number).ljust(2000))) for member in members(writer)])
                if number % 5 == 0:
                    await store.commit([Delete(member) for member in members(writer)])

        writers = [asyncio.create_task(write(writer)) for writer in range(32)]
        with Child(backing_up, tmp_path / "store", tmp_path) as process:
            await asyncio.to_thread(process.receive)
            revisions = []
            for number in range(5):
                before = store.revision
                process.pipe.send(number)
                revision, count = await asyncio.to_thread(process.receive)
                assert before <= revision <= store.revision
                assert count == check_members(tmp_path / f"backup{number}")
                revisions.append(revision)
            process.pipe.send(None)
        stopped = True
        await asyncio.gather(*writers)
        assert revisions == sorted(revisions)
        assert revisions[0] < revisions[-1]
    restore_embedded(tmp_path / "backup4", tmp_path / "restored")
    with Engine(tmp_path / "restored") as engine:
        assert list(find_problems(engine)) == []


def members(writer: int) -> list[ObjectKey]:
    return [
        key(f"w{writer}"),
        key(f"w{writer}", cluster="other", resource=SECRETS),
        key(f"w{writer}", namespace="", resource=WIDGETS),
    ]


def check_members(backup: Path) -> int:
    """All members of a writer carry the same number, or none is there. Returns how many objects there are."""
    found = objects_in(backup)
    for writer in range(32):
        records = [Record(member, found[member]) for member in members(writer) if member in found]
        assert len(records) in (0, 3)
        assert len({text_of(record) for record in records}) <= 1
        assert len({record.revision for record in records}) <= 1
    return len(found)


def back_up_with_a_pause(pipe: Connection, path: Path, target: Path) -> None:
    """Waits when the first ten thousand objects are written."""

    def wait(done: int, total: int) -> None:
        pipe.send(done)
        pipe.recv()

    with Engine(path, readonly=True) as engine:
        _, count = write_backup(engine, target / "backup", NOW, wait)
        pipe.send(count)


async def test_a_backup_goes_on_while_the_map_grows(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store", options=StoreOptions(map_bytes=1 << 23)) as store:
        await put_many(store, 10_000)
        await create(store, "of a resource that comes later", resource=SECRETS)
        with Child(back_up_with_a_pause, tmp_path / "store", tmp_path) as process:
            assert await asyncio.to_thread(process.receive) == 10_000
            before = store._engine.env.map_bytes
            while store._engine.env.map_bytes == before:
                await store.commit([Put(key("large"), pack(b"x" * 1_000_000))])
            process.pipe.send("the map has grown")
            assert await asyncio.to_thread(process.receive) == 10_001
    assert len(objects_in(tmp_path / "backup")) == 10_001


async def put_many(store: EmbeddedStore, count: int) -> None:
    puts = [Put(key(f"n{number}"), pack(b"")) for number in range(count)]
    await asyncio.gather(*(store.commit(puts[at : at + 100]) for at in range(0, count, 100)))


# -- files that are no backups ------------------------------------------------


def refused(backup: Path, directory: Path) -> None:
    """Restoring raises Damaged, and nothing is left."""
    with pytest.raises(Damaged, match=backup.name):
        restore_embedded(backup, directory)
    assert not directory.exists()
    assert [found.name for found in directory.parent.iterdir() if found.name.startswith(directory.name)] == []


async def make_backup(path: Path) -> bytes:
    async with await EmbeddedStore.open(path / "small") as store:
        await create(store, "a")
        await create(store, "b", cluster="other")
        await create(store, "w", resource=WIDGETS)
        write_backup(store._engine, path / "whole", NOW)
    return (path / "whole").read_bytes()


async def test_a_torn_backup_is_refused_wherever_it_was_torn(tmp_path: Path) -> None:
    whole = await make_backup(tmp_path)
    for length in range(len(whole)):
        (tmp_path / "torn").write_bytes(whole[:length])
        refused(tmp_path / "torn", tmp_path / "restored")


async def test_a_backup_with_a_flipped_bit_is_refused_or_harmless(tmp_path: Path) -> None:
    whole = await make_backup(tmp_path)
    expected = objects_in(tmp_path / "whole")
    accepted = []
    surprises: dict[str, int] = {}
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        (tmp_path / "flipped").write_bytes(flipped)
        try:
            assert objects_in(tmp_path / "flipped") == expected
        except Damaged:
            continue
        except Exception as error:
            surprises[type(error).__name__] = surprises.get(type(error).__name__, 0) + 1
        else:
            accepted.append(position)
    assert surprises == {}
    assert len(accepted) < 12  # gzip has a few bytes in its header, and bits before its checksum, that say nothing


async def test_bytes_behind_the_end_of_a_backup_are_noticed(tmp_path: Path) -> None:
    whole = await make_backup(tmp_path)
    for behind in (b"x", whole, gzip.compress(b"more")):
        (tmp_path / "long").write_bytes(whole + behind)
        refused(tmp_path / "long", tmp_path / "restored")


FOREIGN = {
    "empty": b"",
    "text": b"not a backup\n" * 100,
    "empty gzip": gzip.compress(b""),
    "foreign gzip": gzip.compress(b"not a backup\n" * 100),
    "foreign JSON": gzip.compress(b'{"format":"something else"}\n'),
    "a JSON list": gzip.compress(b"[]\n"),
    "header only": gzip.compress(codec.dumps(HEADER) + b"\n"),
    "a header without end": gzip.compress(codec.dumps(HEADER)),
    "a very long header": gzip.compress(b'{"format":"' + b"x" * 100_000),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_no_backup_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "foreign").write_bytes(content)
    refused(tmp_path / "foreign", tmp_path / "restored")


@pytest.mark.parametrize("version", [2, 0, "1", None, True, 1.0])
def test_a_backup_of_another_version_is_refused(tmp_path: Path, version: object) -> None:
    end = bytes(8) + struct.pack(">Q", 0)
    (tmp_path / "newer").write_bytes(gzip.compress(codec.dumps({**HEADER, "version": version}) + b"\n" + end))
    with pytest.raises(Damaged, match="version"):
        restore_embedded(tmp_path / "newer", tmp_path / "restored")
    refused(tmp_path / "newer", tmp_path / "restored")


@pytest.mark.parametrize("revision", ["5", None, 1.5, True, 5.0, -5_000_000_000, -1, 2**62 + 1, 2**64 - 1, [5]])
def test_a_backup_with_a_revision_that_cannot_be_is_refused(tmp_path: Path, revision: object) -> None:
    end = bytes(8) + struct.pack(">Q", 0)
    (tmp_path / "odd").write_bytes(gzip.compress(codec.dumps({**HEADER, "revision": revision}) + b"\n" + end))
    refused(tmp_path / "odd", tmp_path / "restored")


@pytest.mark.parametrize("created", [None, 5, ["2025-01-02T03:04:05Z"]])
def test_a_backup_of_an_odd_time_is_refused(tmp_path: Path, created: object) -> None:
    end = bytes(8) + struct.pack(">Q", 0)
    (tmp_path / "odd").write_bytes(gzip.compress(codec.dumps({**HEADER, "created": created}) + b"\n" + end))
    refused(tmp_path / "odd", tmp_path / "restored")


ODD_RECORDS = {
    "resource without parts": (b"configmaps", b"root/default/a", pack(b"{}")),
    "resource of two parts": (b"/configmaps", b"root/default/a", pack(b"{}")),
    "resource of four parts": (b"a/b/c/d", b"root/default/a", pack(b"{}")),
    "key of two parts": (b"/configmaps/", b"root/a", pack(b"{}")),
    "key without cluster": (b"/configmaps/", b"/default/a", pack(b"{}")),
    "key that is no text": (b"/configmaps/", b"root/\xff/a", pack(b"{}")),
    "resource that is no text": (b"/\xff/", b"root/default/a", pack(b"{}")),
    "value cut short": (b"/configmaps/", b"root/default/a", b"x"),
    "value of something else": (b"/configmaps/", b"root/default/a", b'{"kind":"ConfigMap","metadata":{}}'),
    "no value": (b"/configmaps/", b"root/default/a", b""),
    "key without name": (b"/configmaps/", b"root/default/", pack(b"{}")),
    "key that is too long": (b"/configmaps/", b"root/default/" + b"a" * 480, pack(b"{}")),
    "resource that is too long": (b"/" + b"r" * 480 + b"/", b"root/default/a", pack(b"{}")),
    "nothing but a tail": (b"", b"root/default/a", b""),
    "value without its stamp": (b"/configmaps/", b"root/default/a", value()),
}


@pytest.mark.parametrize(("resource_name", "tail", "packed"), ODD_RECORDS.values(), ids=ODD_RECORDS)
def test_a_backup_with_an_object_that_cannot_be_is_refused(
    tmp_path: Path, resource_name: bytes, tail: bytes, packed: bytes
) -> None:
    """Whole for gzip, but made by something else than write_backup."""
    stored = struct.pack(">Q", 3) + packed if packed else b""
    make_up(tmp_path / "odd", (resource_name, tail, stored))
    refused(tmp_path / "odd", tmp_path / "restored")


def make_up(backup: Path, *records: tuple[bytes, bytes, bytes]) -> None:
    parts = [struct.pack(">HHI", *map(len, record)) + b"".join(record) for record in records]
    content = [codec.dumps(HEADER) + b"\n", *parts, bytes(8) + struct.pack(">Q", len(records))]
    backup.write_bytes(gzip.compress(b"".join(content)))


@pytest.mark.parametrize("revision", [0, 6, 2**63])
def test_an_object_of_a_revision_that_the_backup_cannot_have_is_refused(tmp_path: Path, revision: int) -> None:
    make_up(tmp_path / "odd", (b"/configmaps/", b"root/default/a", stamp(value(), revision)))
    refused(tmp_path / "odd", tmp_path / "restored")


A, B = (b"/configmaps/", b"root/default/a", stamp(value(), 1)), (b"/configmaps/", b"root/default/b", stamp(value(), 2))
C = (b"/secrets/", b"root/default/a", stamp(value(), 3))


@pytest.mark.parametrize("records", [(A, A), (A, C, A), (A, C, B), (B, A)], ids=["twice", "again", "split", "reversed"])
def test_objects_out_of_order_are_refused(tmp_path: Path, records: tuple[tuple[bytes, bytes, bytes], ...]) -> None:
    """Otherwise one could be there twice."""
    make_up(tmp_path / "odd", *records)
    refused(tmp_path / "odd", tmp_path / "restored")
    make_up(tmp_path / "even", C, A, B)
    assert len(objects_in(tmp_path / "even")) == 3


def test_a_scrambled_length_does_not_ask_for_gigabytes(tmp_path: Path) -> None:
    content = codec.dumps(HEADER) + b"\n" + struct.pack(">HHI", 12, 14, 2**32 - 1) + b"/configmaps/root/default/a"
    (tmp_path / "odd").write_bytes(gzip.compress(content))
    with pytest.raises(Damaged, match="too large"):
        objects_in(tmp_path / "odd")


def test_a_backup_that_says_it_has_more_objects_is_refused(tmp_path: Path) -> None:
    content = codec.dumps(HEADER) + b"\n" + bytes(8) + struct.pack(">Q", 1)
    (tmp_path / "odd").write_bytes(gzip.compress(content))
    refused(tmp_path / "odd", tmp_path / "restored")


@pytest.mark.parametrize("what", ["missing", "a directory"])
def test_a_backup_that_cannot_be_read_is_refused_in_the_stores_words(tmp_path: Path, what: str) -> None:
    if what == "a directory":
        (tmp_path / "backup").mkdir()
    with pytest.raises(StoreError, match="backup"):
        restore_embedded(tmp_path / "backup", tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def test_what_the_reader_of_a_backup_raises_is_its_own(tmp_path: Path) -> None:
    make_up(tmp_path / "backup", A)
    for error in (ConnectionResetError("etcd"), ValueError("own")):
        with pytest.raises(type(error), match=str(error)), open_backup(tmp_path / "backup"):
            raise error


# -- where to restore to ------------------------------------------------------


async def test_a_directory_that_is_not_empty_is_refused_and_left_alone(tmp_path: Path) -> None:
    await make_backup(tmp_path)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    with pytest.raises(InUse, match="not empty"):
        restore_embedded(tmp_path / "whole", tmp_path / "precious")
    assert (tmp_path / "precious" / "file").read_text() == "precious"
    with pytest.raises(InUse):
        restore_embedded(tmp_path / "whole", tmp_path / "small")
    with Engine(tmp_path / "small") as engine, engine.view() as view:
        assert view.object_count() == 3


async def test_a_file_in_place_of_the_directory_is_refused_in_the_stores_words(tmp_path: Path) -> None:
    await make_backup(tmp_path)
    (tmp_path / "file").write_text("precious")
    for directory in (tmp_path / "file", tmp_path / "file" / "store"):
        with pytest.raises(StoreError):
            restore_embedded(tmp_path / "whole", directory)
    assert (tmp_path / "file").read_text() == "precious"


async def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    await make_backup(tmp_path)
    (tmp_path / "restored").mkdir()
    restore_embedded(tmp_path / "whole", tmp_path / "restored")
    async with await EmbeddedStore.open(tmp_path / "restored") as restored:
        assert restored.count(EVERYTHING) == 3


def restore_and_tell(pipe: Connection, backup: Path, directory: Path) -> None:
    def tell(done: int) -> None:
        pipe.send(done)
        pipe.recv()

    restore_embedded(backup, directory, tell)


@pytest.mark.parametrize("batches", [1, 2, 3, 4])
async def test_a_restore_that_is_killed_leaves_no_store_and_can_be_repeated(tmp_path: Path, batches: int) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await put_many(store, 2500)
        write_backup(store._engine, tmp_path / "backup", NOW)
    with Child(restore_and_tell, tmp_path / "backup", tmp_path / "restored") as process:
        for batch in range(1, batches + 1):
            assert process.receive() >= min(2500, batch * 1000)
            if batch < batches:
                process.pipe.send("go on")
    assert not (tmp_path / "restored").exists()
    restore_embedded(tmp_path / "backup", tmp_path / "restored")
    assert not any("partial" in found.name for found in tmp_path.iterdir())
    async with await EmbeddedStore.open(tmp_path / "restored") as restored:
        assert restored.count(EVERYTHING) == 2500
        assert list(find_problems(restored._engine)) == []


async def test_a_restore_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(done: int) -> None:
        raise Interrupted

    await make_backup(tmp_path)
    with pytest.raises(Interrupted):
        restore_embedded(tmp_path / "whole", tmp_path / "restored", interrupt)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["small", "whole"]


async def test_a_refused_backup_leaves_no_parents_of_the_directory(tmp_path: Path) -> None:
    whole = await make_backup(tmp_path)
    (tmp_path / "torn").write_bytes(whole[:-1])
    with pytest.raises(Damaged):
        restore_embedded(tmp_path / "torn", tmp_path / "new" / "root" / "store")
    assert not (tmp_path / "new").exists()
    restore_embedded(tmp_path / "whole", tmp_path / "new" / "root" / "store")
    assert [found.name for found in (tmp_path / "new" / "root").iterdir()] == ["store"]
    assert (tmp_path / "new" / "root" / "store").stat().st_mode & 0o777 == 0o700


async def test_two_restores_to_one_directory_do_not_meet(tmp_path: Path) -> None:
    def restore_too(done: int) -> None:
        with pytest.raises(InUse, match="another process"):
            restore_embedded(tmp_path / "whole", tmp_path / "restored")

    await make_backup(tmp_path)
    restore_embedded(tmp_path / "whole", tmp_path / "restored", restore_too)
    with Engine(tmp_path / "restored", readonly=True) as engine, engine.view() as view:
        assert view.object_count() == 3


async def test_a_restore_makes_room_in_a_small_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        for number in range(5):
            await store.commit([Put(key(f"n{number}"), pack(os.urandom(1_000_000)))])
        write_backup(store._engine, tmp_path / "backup", NOW)
    monkeypatch.setattr("kcp.store.restore.Engine", partial(Engine, map_bytes=1 << 20))
    restore_embedded(tmp_path / "backup", tmp_path / "restored")
    with Engine(tmp_path / "restored", readonly=True) as engine, engine.view() as view:
        assert view.object_count() == 5

    def fail(self: Environment) -> None:
        raise StoreError("no address space")

    monkeypatch.setattr(Environment, "grow", fail)
    with pytest.raises(NoSpace, match="no address space"):
        restore_embedded(tmp_path / "backup", tmp_path / "other")
    assert not any("other" in found.name for found in tmp_path.iterdir())


# -- where to write to --------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["missing/backup", "file/backup", "directory", "n" * 250, "n" * 300],
    ids=["directory missing", "file for a directory", "directory for a file", "long name", "too long name"],
)
async def test_a_target_that_cannot_be_written_is_refused_in_the_stores_words(tmp_path: Path, target: str) -> None:
    await make_backup(tmp_path)
    (tmp_path / "file").write_text("precious")
    (tmp_path / "directory").mkdir()
    before = sorted(found.name for found in tmp_path.iterdir())
    with Engine(tmp_path / "small") as engine, pytest.raises(StoreError, match="backup"):
        write_backup(engine, tmp_path / target, NOW)
    assert sorted(found.name for found in tmp_path.iterdir()) == before
    assert (tmp_path / "file").read_text() == "precious"


async def test_only_the_owner_may_read_a_backup(tmp_path: Path) -> None:
    (tmp_path / "whole").write_text("of before")
    (tmp_path / "whole").chmod(0o666)
    modes: list[int] = []
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await put_many(store, 10_000)

        def look(done: int, total: int) -> None:
            modes.extend(found.stat().st_mode & 0o777 for found in tmp_path.iterdir() if "partial" in found.name)

        write_backup(store._engine, tmp_path / "whole", NOW, look)
    assert modes == [0o600]
    assert (tmp_path / "whole").stat().st_mode & 0o777 == 0o600


async def test_two_backups_to_one_file_do_not_meet(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await put_many(store, 10_000)

        def back_up_too(done: int, total: int) -> None:
            write_backup(store._engine, tmp_path / "backup", NOW)
            assert len(objects_in(tmp_path / "backup")) == 10_000

        write_backup(store._engine, tmp_path / "backup", NOW, back_up_too)
    assert len(objects_in(tmp_path / "backup")) == 10_000
    assert sorted(found.name for found in tmp_path.iterdir()) == ["backup", "store"]


async def test_a_device_is_not_replaced_by_a_backup(tmp_path: Path) -> None:
    await make_backup(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with Engine(tmp_path / "small") as engine, pytest.raises(StoreError, match="not a file"):
        write_backup(engine, tmp_path / "pipe", NOW)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(("origin", "objects"), [("", 1), ("a copy of etcd", 1), ("a copy of etcd", 0)])
def test_a_mirror_that_is_still_being_filled_is_not_backed_up(tmp_path: Path, origin: str, objects: int) -> None:
    with Engine(tmp_path / "mirror", origin=origin) as engine:
        with engine.env.write() as txn:
            group = Group(engine, txn, 0)
            group.overwrite([(key(f"n{number}"), stamp(value(), 5)) for number in range(objects)])
            group.restart_history(Revision(0))
            group.flush()
        with pytest.raises(StoreError, match="try again"):
            write_backup(engine, tmp_path / "backup", NOW)
        if origin:
            with pytest.raises(StoreError, match="try again"):
                list(find_problems(engine))
    assert [found.name for found in tmp_path.iterdir()] == ["mirror"]


DAMAGES: dict[str, Callable[[Environment, Transaction], object]] = {
    "a value": lambda env, txn: txn.put(b"\0\0\0\1root/default/a", b"short"),
    "a key": lambda env, txn: txn.put(b"\0\0\0\1root", stamp(value(), 1)),
    "a name": lambda env, txn: txn.put(b"\0\0\0\1root/\xff/a", stamp(value(), 1)),
    "a number": lambda env, txn: txn.put(b"\0\0\0\7root/default/a", stamp(value(), 1)),
    "the revision": lambda env, txn: txn.put(b"revision", b"short", db=env.meta),
    "a larger revision": lambda env, txn: txn.put(b"revision", b"\xff" * 8, db=env.meta),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_store_is_not_backed_up(
    tmp_path: Path, damage: Callable[[Environment, Transaction], object]
) -> None:
    """Better no backup than one that cannot be restored."""
    await make_backup(tmp_path)
    with Engine(tmp_path / "small") as engine:
        with engine.env.write() as txn:
            damage(engine.env, txn)
        with pytest.raises(Damaged):
            write_backup(engine, tmp_path / "backup", NOW)
    assert not (tmp_path / "backup").exists()


async def test_a_backup_that_fails_leaves_the_one_before_it(tmp_path: Path) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(done: int, total: int) -> None:
        raise Interrupted

    before = await make_backup(tmp_path)
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await put_many(store, 10_000)
        with pytest.raises(Interrupted):
            write_backup(store._engine, tmp_path / "whole", NOW, interrupt)
    assert (tmp_path / "whole").read_bytes() == before
    assert not any("partial" in found.name for found in tmp_path.iterdir())


def back_up_with_little_room(pipe: Connection, path: Path, target: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    with Engine(path, readonly=True) as engine:
        try:
            write_backup(engine, target, NOW)
        except NoSpace as error:
            pipe.send(str(error))


async def test_a_backup_for_which_there_is_no_room_leaves_nothing(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await store.commit([Put(key("a"), pack(os.urandom(500_000)))])
        with Child(back_up_with_little_room, tmp_path / "store", tmp_path / "backup") as process:
            message = await asyncio.to_thread(process.receive)
    assert "backup could not be written" in message
    assert [found.name for found in tmp_path.iterdir()] == ["store"]


def restore_with_little_room(pipe: Connection, backup: Path, directory: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        restore_embedded(backup, directory)
    except StoreError as error:
        pipe.send(type(error).__name__)


async def test_a_restore_for_which_there_is_no_room_leaves_nothing(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await store.commit([Put(key("a"), pack(os.urandom(500_000)))])
        write_backup(store._engine, tmp_path / "backup", NOW)
    with Child(restore_with_little_room, tmp_path / "backup", tmp_path / "restored") as process:
        assert process.receive() == "NoSpace"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["backup", "store"]
