"""A writer that is killed at any moment loses nothing that it acknowledged, and leaves nothing half done."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kcp.meta import codec
from kcp.store import EmbeddedStore, Revision, Scope, StoreOptions, layout
from kcp.store.check import find_problems
from kcp.store.engine import Engine
from kcp.store.value import stamp
from tests.store.crash_writer import (
    CLUSTERS,
    COUNTER,
    WRITERS,
    has_members,
    keeps,
    kept,
    ledger,
    members,
    read_ledger,
)
from tests.store.objects import CONFIGMAPS, EVERYTHING, SECRETS, WIDGETS, create, text_of, update, value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kcp.store import ObjectKey
    from kcp.store.environment import Environment, Transaction

ROOT = Path(__file__).parent.parent.parent

# Leaves the log alone, so that what is checked is what the killed process left.
QUIET = StoreOptions(map_bytes=1 << 20, catch_up_events=100)


def run_program(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.crash_writer", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


@contextlib.contextmanager
def killed_at_last(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Also when the test fails, which would wait for the process otherwise."""
    with process:
        try:
            yield
        finally:
            process.kill()


def whole_lines(process: subprocess.Popen[bytes]) -> Iterator[list[Any]]:
    """What the process reports, until it is dead; a line that was torn by its death was not reported."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith(b"\n"):
            yield codec.loads(line)


class Stream:
    """The events that watchers were told, over all processes: each revision once, and each a whole commit."""

    def __init__(self) -> None:
        self.revision = 0
        self.numbers: dict[int, int] = defaultdict(int)

    def tell(self, revision: int, events: list[tuple[int, str, str]]) -> None:
        commits: dict[int, dict[str, str]] = {}
        for event_revision, name, text in events:
            commit = commits.setdefault(event_revision, {})
            assert name not in commit, f"{name} was told twice at {event_revision}"
            commit[name] = text
        assert list(commits) == list(range(self.revision + 1, self.revision + 1 + len(commits))), "a gap or a repeat"
        assert revision == self.revision + len(commits)
        for commit in commits.values():
            self._tell_commit(commit)
        self.revision = revision

    def _tell_commit(self, commit: dict[str, str]) -> None:
        commit.pop(str(COUNTER), None)
        (writer,) = (writer for writer in range(WRITERS) if str(ledger(writer)) in commit)
        number = int(commit.pop(str(ledger(writer))).split(":")[0])
        assert number == self.numbers[writer] + 1, f"writer {writer}: {number} follows {self.numbers[writer]}"
        expected = {str(member): str(number) if has_members(number) else "" for member in members(writer)}
        if keeps(number):
            expected[str(kept(writer, number))] = str(number)
        assert commit == expected
        self.numbers[writer] = number


class Killing:
    """One directory, and all that was ever acknowledged of it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.rng = random.Random(seed)
        self.stream = Stream()
        self.acknowledged: dict[int, tuple[int, int]] = {}
        self.kept: dict[ObjectKey, int] = {}
        self.newest = 0
        self.objects = 0
        self.kills = 0

    def kill_one(self) -> None:
        """Start a writer, kill it after so many lines that it had just begun, was at work, or began to remove."""
        self.kills += 1
        lines = (self.rng.randrange(3, 1500), self.rng.randrange(3, 60), 1, 2)[self.kills % 4]
        process = run_program("write", str(self.directory), str(self.stream.revision), str(self.rng.randrange(1 << 30)))
        with killed_at_last(process):
            for position, line in enumerate(whole_lines(process), 1):
                self._take(line)
                if position == lines:
                    process.kill()
        assert process.returncode == -signal.SIGKILL

    def _take(self, line: list[Any]) -> None:
        match line:
            case ["acknowledged", writer, number, revision]:
                assert number == self.acknowledged.get(writer, (0, 0))[0] + 1
                self.acknowledged[writer] = (number, revision)
                self.newest = max(self.newest, revision)
                if keeps(number):
                    self.kept[kept(writer, number)] = revision
            case ["seen", revision, events]:
                self.stream.tell(revision, [(at, name, text) for at, name, text in events])
            case ["open", revision]:
                assert revision >= self.newest, "the revision went back"

    async def check(self) -> None:
        if not self.directory.exists():
            assert not self.acknowledged
            return
        async with await EmbeddedStore.open(self.directory, options=QUIET) as store:
            assert list(find_problems(store._engine)) == []
            assert store.revision >= self.newest
            await self._resume_watch(store)
            self._check_writers(store)
            self._check_counts(store)
            self.newest = store.revision
            self.objects = store.count(EVERYTHING)

    async def _resume_watch(self, store: EmbeddedStore) -> None:
        with store.watch(EVERYTHING, Revision(self.stream.revision)) as watcher:
            while watcher.revision < store.revision:
                batch = await watcher.next(timeout=0)
                self.stream.tell(
                    batch.revision,
                    [(event.revision, str(event.key), (text_of(event.new) or "").strip()) for event in batch.events],
                )
            assert (await watcher.next(timeout=0)).events == []

    def _check_writers(self, store: EmbeddedStore) -> None:
        total = 0
        for writer in range(WRITERS):
            number, share = read_ledger(store, writer)
            total += share
            told, revision = self.acknowledged.get(writer, (0, 0))
            # Only the commit after the last acknowledged one was under way.
            assert number in (told, told + 1)
            assert number == self.stream.numbers[writer]
            record = store.get(ledger(writer))
            assert record is None or number != told or record.revision == revision
            found = [(text_of(store.get(member)) or "").strip() for member in members(writer)]
            assert found == [str(number) if number and has_members(number) else ""] * len(found)
            self.acknowledged[writer] = (number, record.revision if record else 0)
            if record and keeps(number):
                self.kept[kept(writer, number)] = record.revision
        assert int(text_of(store.get(COUNTER)) or "0") == total
        for object_key, revision in self.kept.items():
            record = store.get(object_key)
            assert record is not None
            assert record.revision == revision

    def _check_counts(self, store: EmbeddedStore) -> None:
        for cluster in CLUSTERS:
            counts = store.counts(cluster)
            for resource in (CONFIGMAPS, SECRETS, WIDGETS):
                found = len(store.range(Scope(resource, cluster)).pairs)
                assert store.count(Scope(resource, cluster)) == counts.get(resource, 0) == found
        assert len(store.range(Scope(CONFIGMAPS, namespace="kept")).pairs) == len(self.kept)


class Bystander:
    """A process that only reads, and has the files open all the time; LMDB's lock file outlives its writers then."""

    def __init__(self, directory: Path) -> None:
        self._process = run_program("read", str(directory))
        self._lines = whole_lines(self._process)
        assert next(self._lines) == ["open"]

    def ask(self) -> list[Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return next(self._lines)

    def stop(self) -> None:
        with killed_at_last(self._process):
            pass


async def kill_and_check(directory: Path, kills: int, seed: int) -> Killing:
    killing = Killing(directory, seed)
    bystander: Bystander | None = None
    try:
        for _ in range(kills):
            killing.kill_one()
            await killing.check()
            if bystander is not None:
                assert bystander.ask() == [killing.newest, killing.objects, []]
            if bystander is None and killing.newest and killing.rng.random() < 0.5:
                bystander = Bystander(directory)
            elif bystander is not None and killing.rng.random() < 0.1:
                bystander.stop()
                bystander = None
    except BaseException:
        print(f"seed {seed}")
        raise
    finally:
        if bystander is not None:
            bystander.stop()
    return killing


async def test_a_killed_writer_loses_nothing_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    killing = await kill_and_check(tmp_path / "store", 10, seed=int.from_bytes(os.urandom(4)))
    assert killing.newest > 0


@pytest.mark.soak
async def test_two_hundred_kills_of_one_store(tmp_path: Path) -> None:
    killing = await kill_and_check(tmp_path / "store", 200, seed=int.from_bytes(os.urandom(4)))
    assert killing.newest > 5_000


@pytest.mark.parametrize("stage", ["", "writer.lock", "lock.mdb", "data.mdb", "KCP-STORE"])
async def test_a_store_killed_while_it_is_made_opens_again(tmp_path: Path, stage: str) -> None:
    directory = tmp_path / "store"
    process = run_program("write", str(directory), "0", "0")
    with killed_at_last(process):
        while not (directory / stage).exists():
            assert process.poll() is None
    async with await EmbeddedStore.open(directory, options=QUIET) as store:
        assert list(find_problems(store._engine)) == []


# -- the check itself: one that finds nothing anywhere would prove nothing ----

NOW, LATER = b"\0\0\0\1root/default/a", b"\0\0\0\1root/default/z"


def damage_count(env: Environment, txn: Transaction) -> None:
    txn.put(b"root/\0\0\0\1", layout.pack_u64(7), db=env.counts)


def damage_count_of_nothing(env: Environment, txn: Transaction) -> None:
    txn.put(b"nobody/\0\0\0\1", layout.pack_u64(1), db=env.counts)


def lose_object(env: Environment, txn: Transaction) -> None:
    txn.delete(NOW)


def invent_object(env: Environment, txn: Transaction) -> None:
    txn.put(LATER, stamp(value(), 1))


def change_object(env: Environment, txn: Transaction) -> None:
    txn.put(NOW, stamp(value("other"), 2))


def move_object_ahead(env: Environment, txn: Transaction) -> None:
    txn.put(NOW, stamp(value("two"), 100))


def lose_log_entry(env: Environment, txn: Transaction) -> None:
    txn.delete(layout.pack_log_key(2), db=env.log)


def lose_trail(env: Environment, txn: Transaction) -> None:
    txn.delete(b"root/\0\0\0\1" + layout.pack_log_key(2), db=env.trail)


def log_ahead(env: Environment, txn: Transaction) -> None:
    entry = layout.pack_log_entry(0, NOW, None, stamp(value(), 100))
    txn.put(layout.pack_log_key(100), entry, db=env.log)
    txn.put(b"root/\0\0\0\1" + layout.pack_log_key(100), b"", db=env.trail)


def break_history(env: Environment, txn: Transaction) -> None:
    stored = txn.get(NOW)
    txn.put(layout.pack_log_key(2), layout.pack_log_entry(0, NOW, None, stored), db=env.log)


def cut_value(env: Environment, txn: Transaction) -> None:
    txn.put(NOW, b"short")


def cut_header(env: Environment, txn: Transaction) -> None:
    txn.put(NOW, stamp(value("two"), 2)[:20])


def scramble_value(env: Environment, txn: Transaction) -> None:
    txn.put(NOW, b"\xff" * 200)


def scramble_key(env: Environment, txn: Transaction) -> None:
    txn.put(b"\0\0\0\1no separators", stamp(value(), 1))


def scramble_name(env: Environment, txn: Transaction) -> None:
    txn.put(b"\0\0\0\1root/\xff/a", stamp(value(), 1))


def lose_resource(env: Environment, txn: Transaction) -> None:
    txn.put(b"\0\0\0\7root/default/a", stamp(value(), 1))


def cut_log_entry(env: Environment, txn: Transaction) -> None:
    txn.put(layout.pack_log_key(2), b"short", db=env.log)


def scramble_log_entry(env: Environment, txn: Transaction) -> None:
    txn.put(layout.pack_log_key(2), b"\xff" * 100, db=env.log)


def cut_revision(env: Environment, txn: Transaction) -> None:
    txn.put(layout.META_REVISION, b"short", db=env.meta)


def lose_revision(env: Environment, txn: Transaction) -> None:
    txn.delete(layout.META_REVISION, db=env.meta)


def scramble_revision(env: Environment, txn: Transaction) -> None:
    txn.put(layout.META_REVISION, b"\xff" * 8, db=env.meta)


def cut_compacted(env: Environment, txn: Transaction) -> None:
    txn.put(layout.META_COMPACTED, b"", db=env.meta)


def compact_ahead(env: Environment, txn: Transaction) -> None:
    txn.put(layout.META_COMPACTED, layout.pack_u64(100), db=env.meta)


def free_number(env: Environment, txn: Transaction) -> None:
    txn.put(layout.META_NEXT_RESOURCE, layout.pack_u64(0), db=env.meta)


def lose_number(env: Environment, txn: Transaction) -> None:
    txn.delete(b"\0\0\0\1", db=env.resources)


def swap_name(env: Environment, txn: Transaction) -> None:
    txn.put(b"\0\0\0\1", b"no name", db=env.resources)


def lead_astray(env: Environment, txn: Transaction) -> None:
    txn.put(b"other/\0\0\0\1" + layout.pack_log_key(2), b"", db=env.trail)


def lead_nowhere(env: Environment, txn: Transaction) -> None:
    txn.put(b"x", b"", db=env.trail)


def scramble_log_key(env: Environment, txn: Transaction) -> None:
    txn.put(b"\xff", b"", db=env.log)


def log_a_key_that_is_too_long(env: Environment, txn: Transaction) -> None:
    txn.put(layout.pack_log_key(2), layout.pack_log_entry(0, b"\0\0\0\1" + b"x" * 600, None, b"x"), db=env.log)


def log_nothing(env: Environment, txn: Transaction) -> None:
    txn.put(layout.pack_log_key(2), layout.pack_log_entry(0, b"", None, None), db=env.log)


def cut_count(env: Environment, txn: Transaction) -> None:
    txn.put(b"/\0\0\0\1", b"\1", db=env.counts)


def scramble_count_key(env: Environment, txn: Transaction) -> None:
    txn.put(b"x", b"", db=env.counts)


def invent_object_and_counts(env: Environment, txn: Transaction) -> None:
    txn.put(LATER, stamp(value(), 1))
    for count_key in (b"/\0\0\0\1", b"root/\0\0\0\1"):
        txn.put(count_key, layout.pack_u64(2), db=env.counts)


def change_stamp(env: Environment, txn: Transaction) -> None:
    stored = stamp(value("two"), 2)
    txn.put(NOW, stored.replace(b'"resourceVersion":"2"', b'"resourceVersion":"3"'))


def hide_object_at_the_end(env: Environment, txn: Transaction) -> None:
    txn.put(b"\xff" * 500, b"")


DAMAGES = [
    cut_revision,
    lose_revision,
    scramble_revision,
    cut_compacted,
    compact_ahead,
    free_number,
    lose_number,
    swap_name,
    lead_astray,
    lead_nowhere,
    scramble_log_key,
    log_a_key_that_is_too_long,
    log_nothing,
    cut_count,
    scramble_count_key,
    invent_object_and_counts,
    change_stamp,
    hide_object_at_the_end,
    damage_count,
    damage_count_of_nothing,
    lose_object,
    invent_object,
    change_object,
    move_object_ahead,
    lose_log_entry,
    lose_trail,
    log_ahead,
    break_history,
    cut_value,
    cut_header,
    scramble_value,
    scramble_key,
    scramble_name,
    lose_resource,
    cut_log_entry,
    scramble_log_entry,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
async def test_damage_of_any_kind_is_found_and_told(
    tmp_path: Path, damage: Callable[[Environment, Transaction], None]
) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await create(store, "a", "one")
        await update(store, "a", "two")
    with Engine(tmp_path / "store") as engine:
        assert list(find_problems(engine)) == []
        with engine.env.write() as txn:
            damage(engine.env, txn)
        assert list(find_problems(engine))
