"""The writer: one fsync for many commits, in order, and nobody pays for another's mistake."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING

import pytest

from kcp.meta.fake_clock import FakeClock
from kcp.store import (
    ABSENT,
    Closed,
    Conflict,
    Delete,
    EmbeddedStore,
    NoSpace,
    OutcomeUnknown,
    Put,
    Revision,
    Scope,
    StoreOptions,
    Unavailable,
)
from kcp.store.check import find_problems
from kcp.store.engine import Engine
from kcp.store.writer import Writer
from tests.store.objects import CONFIGMAPS, EVERYTHING, create, key, take, text_of, update, value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from kcp.store.transaction import Group

IN_ROOT = Scope(CONFIGMAPS, "root")


class Gate:
    """A job that keeps the writer's thread busy until it is let go, so that a test decides what waits behind it."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._open = threading.Event()

    def run(self, group: Group) -> None:
        self._reached.set()
        assert self._open.wait(60)

    async def wait_until_reached(self) -> None:
        """Off the loop, which has a turn to end before the writer gets its jobs."""
        assert await asyncio.to_thread(self._reached.wait, 60)

    def open(self) -> None:
        self._open.set()


class Harness:
    """A writer with nothing behind it but an engine, and a record of what it did."""

    def __init__(self, engine: Engine, clock: FakeClock, group_jobs: int) -> None:
        self.engine = engine
        self.delivered: list[tuple[list[str], Revision]] = []
        self.happened: list[str] = []
        self.writer = Writer(engine, clock, deliver=self._deliver, grow=engine.env.grow, group_jobs=group_jobs)

    def _deliver(self, group: Group) -> None:
        names = [event.key.name for event in group.events]
        self.delivered.append((names, group.revision))
        self.happened.append(f"delivered {' '.join(names)}".strip())

    def transactions(self) -> int:
        """How many write transactions LMDB has made, ever."""
        return int(self.engine.env._env.info()["last_txnid"])

    async def hold(self) -> Gate:
        gate = Gate()
        self.writer.submit(gate.run)
        await gate.wait_until_reached()
        return gate

    def put(self, name: str, text: str = "x") -> asyncio.Future[Revision]:
        settled = self.writer.submit(lambda group: group.commit([Put(key(name), value(text))]))
        settled.add_done_callback(lambda _: self.happened.append(f"settled {name}"))
        return settled

    def texts(self) -> dict[str, str | None]:
        with self.engine.view() as view:
            return {record.key.name: text_of(record) for record in view.range(EVERYTHING).records()}


@contextlib.asynccontextmanager
async def open_writer(path: Path, group_jobs: int = 1024) -> AsyncIterator[Harness]:
    with Engine(path / "store") as engine:
        harness = Harness(engine, FakeClock(), group_jobs)
        try:
            yield harness
        finally:
            await harness.writer.aclose()
            assert list(find_problems(engine)) == []


# -- groups -------------------------------------------------------------------


async def test_commits_that_wait_together_share_one_transaction(tmp_path: Path) -> None:
    async with open_writer(tmp_path) as harness:
        before = harness.transactions()
        gate = await harness.hold()
        commits = [harness.put(f"n{number}") for number in range(100)]
        gate.open()
        assert await asyncio.gather(*commits) == list(range(1, 101))
        assert harness.transactions() == before + 1  # the gate changes nothing, and is not written
        assert harness.delivered == [([], 0), ([f"n{number}" for number in range(100)], 100)]


async def test_a_group_takes_no_more_than_its_limit(tmp_path: Path) -> None:
    async with open_writer(tmp_path, group_jobs=30) as harness:
        gate = await harness.hold()
        commits = [harness.put(f"n{number}") for number in range(100)]
        gate.open()
        await asyncio.gather(*commits)
        assert [revision for _, revision in harness.delivered] == [0, 30, 60, 90, 100]


async def test_a_commit_that_waits_for_no_other_is_not_kept_waiting(tmp_path: Path) -> None:
    async with open_writer(tmp_path) as harness:
        for number in range(3):
            await harness.put(f"n{number}")
        assert [revision for _, revision in harness.delivered] == [1, 2, 3]


async def test_a_group_is_delivered_before_any_of_it_settles(tmp_path: Path) -> None:
    async with open_writer(tmp_path, group_jobs=2) as harness:
        gate = await harness.hold()
        commits = [harness.put(name) for name in "abcd"]
        gate.open()
        await asyncio.gather(*commits)
        happened = harness.happened
        assert [step for step in happened if step.startswith("settled")] == [f"settled {name}" for name in "abcd"]
        assert happened.index("delivered a b") < happened.index("settled a")
        assert happened.index("delivered a b") < happened.index("delivered c d") < happened.index("settled c")


async def test_commits_of_one_group_see_each_other(tmp_path: Path) -> None:
    async with open_writer(tmp_path) as harness:
        gate = await harness.hold()
        submit = harness.writer.submit
        created = submit(lambda group: group.commit([Put(key("a"), value("1"), expect=ABSENT)]))
        again = submit(lambda group: group.commit([Put(key("a"), value("2"), expect=ABSENT)]))
        updated = submit(lambda group: group.commit([Put(key("a"), value("3"), expect=Revision(1))]))
        deleted = submit(lambda group: group.commit([Delete(key("a"), expect=Revision(2))]))
        recreated = submit(lambda group: group.commit([Put(key("a"), value("4"), expect=ABSENT)]))
        gate.open()
        assert [await created, await updated, await deleted, await recreated] == [1, 2, 3, 4]
        with pytest.raises(Conflict) as conflict:
            await again
        assert text_of(conflict.value.current) == "1"
        assert harness.texts() == {"a": "4"}


async def test_whoever_was_told_of_a_commit_reads_it(tmp_path: Path) -> None:
    """Callers and watchers alike, in the very turn of the loop in which they are told."""
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        checked = 0

        async def commit(number: int) -> None:
            nonlocal checked
            assert store.get(key(f"n{number}")) is None
            revision = await create(store, f"n{number}", str(number))
            assert text_of(store.get(key(f"n{number}"))) == str(number)
            assert store.revision >= revision
            checked += 1

        async def watch() -> None:
            nonlocal checked
            with store.watch(IN_ROOT, Revision(0)) as watcher:
                for event in await take(watcher, 200):
                    assert store.get(event.key) is not None
                    checked += 1

        await asyncio.gather(watch(), *(commit(number) for number in range(200)))
        assert checked == 400


async def test_thousands_of_concurrent_commits_each_get_their_own_revision(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        before = int(store._engine.env._env.info()["last_txnid"])
        revisions = await asyncio.gather(*(create(store, f"n{number}") for number in range(4000)))
        assert sorted(revisions) == list(range(1, 4001))
        assert int(store._engine.env._env.info()["last_txnid"]) - before < 400
        assert store.count(IN_ROOT) == 4000
        assert list(find_problems(store._engine)) == []


async def test_of_thousands_that_create_one_key_one_wins(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        outcomes = await asyncio.gather(
            *(create(store, "a", str(number)) for number in range(2000)), return_exceptions=True
        )
        assert [outcome for outcome in outcomes if not isinstance(outcome, Conflict)] == [1]
        assert store.revision == 1


async def test_commits_wait_their_turn_in_the_order_they_were_made(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store", options=StoreOptions(group_jobs=7)) as store:
        revisions = await asyncio.gather(*(update(store, "a", str(number)) for number in range(100)))
        assert revisions == sorted(revisions)
        assert text_of(store.get(key("a"))) == "99"


# -- jobs that go wrong -------------------------------------------------------


class Bug(Exception):
    """Not foreseen by the store."""


def raise_bug(group: Group) -> None:
    raise Bug


def stage_and_raise_bug(group: Group) -> None:
    group.commit([Put(key("half"), value())])
    raise Bug


@pytest.mark.parametrize("bad_job", [raise_bug, stage_and_raise_bug])
@pytest.mark.parametrize("place", [0, 2, 4], ids=["first", "between", "last"])
async def test_a_job_with_a_bug_fails_alone(tmp_path: Path, bad_job: Callable[[Group], None], place: int) -> None:
    async with open_writer(tmp_path) as harness:
        gate = await harness.hold()
        commits: list[asyncio.Future[Revision]] = []
        for number in range(5):
            if number == place:
                bad = harness.writer.submit(bad_job)
            commits.append(harness.put(f"n{number}"))
        gate.open()
        assert await asyncio.gather(*commits) == [1, 2, 3, 4, 5]
        with pytest.raises(Bug):
            await bad
        assert list(harness.texts()) == [f"n{number}" for number in range(5)]
        delivered = [name for names, _ in harness.delivered for name in names]
        assert delivered == [f"n{number}" for number in range(5)]
        assert await harness.put("later") == 6


async def test_a_bug_alone_leaves_the_writer_at_work(tmp_path: Path) -> None:
    async with open_writer(tmp_path) as harness:
        with pytest.raises(Bug):
            await harness.writer.submit(stage_and_raise_bug)
        assert harness.delivered == []
        assert await harness.put("a") == 1
        assert harness.texts() == {"a": "x"}


async def test_a_refused_commit_costs_the_others_of_its_group_nothing(tmp_path: Path) -> None:
    async with open_writer(tmp_path) as harness:
        await harness.put("a")
        before = harness.transactions()
        gate = await harness.hold()
        refused = harness.writer.submit(lambda group: group.commit([Put(key("a"), value(), expect=ABSENT)]))
        accepted = harness.put("b")
        gate.open()
        assert await accepted == 2
        with pytest.raises(Conflict):
            await refused
        assert harness.transactions() == before + 1  # the gate changes nothing, and is not written


# -- disks that fail ----------------------------------------------------------


@contextlib.contextmanager
def failing_disk(path: Path, pages: str, device: str) -> Iterator[None]:
    """Writes of the store go to another device for a while; what it reads is mapped, and stays."""
    files = [file for file in map(int, os.listdir("/proc/self/fd")) if points_to(file, path / "data.mdb")]
    # LMDB writes the page that makes a commit valid through a file of its own, synchronously.
    wanted = [file for file in files if bool(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DSYNC) == (pages == "last")]
    saved = {file: os.dup(file) for file in wanted}
    assert len(saved) == 1
    broken = os.open(device, os.O_WRONLY if device == "/dev/full" else os.O_RDONLY)
    try:
        for file in saved:
            os.dup2(broken, file)
        yield
    finally:
        os.close(broken)
        for file, original in saved.items():
            os.dup2(original, file)
            os.close(original)


def points_to(file: int, path: Path) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{file}") == str(path)
    except OSError:
        return False


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs Linux to find the store's files")


@needs_proc
async def test_a_disk_that_is_full_for_a_while_fails_the_commits_of_that_while(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await create(store, "before")
        with store.watch(IN_ROOT, store.revision) as watcher:
            with failing_disk(tmp_path / "store", "data", "/dev/full"):
                outcomes = await asyncio.gather(
                    *(create(store, f"n{number}") for number in range(10)), return_exceptions=True
                )
                assert [type(outcome) for outcome in outcomes] == [NoSpace] * 10
                assert store.get(key("before")) is not None
                assert store.count(IN_ROOT) == store.revision == 1
            assert await create(store, "after") == 2
            assert [event.key.name for event in await take(watcher, 1)] == ["after"]
        assert list(find_problems(store._engine)) == []


@needs_proc
@pytest.mark.parametrize("pages", ["data", "last"])
async def test_a_disk_that_fails_says_whether_the_commit_may_have_happened(tmp_path: Path, pages: str) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await create(store, "before")
        with failing_disk(tmp_path / "store", pages, "/dev/null"), pytest.raises((Unavailable, OutcomeUnknown)):
            await create(store, "a")


@needs_proc
async def test_a_store_whose_very_last_write_failed_is_not_called_damaged(tmp_path: Path) -> None:
    """LMDB goes on only after it was opened again, and then all that was acknowledged is there."""
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await create(store, "before")
        with failing_disk(tmp_path / "store", "last", "/dev/full"), pytest.raises(NoSpace):
            await create(store, "a")
        with contextlib.suppress(Unavailable):
            await create(store, "b")
        with contextlib.suppress(Unavailable):
            assert store.get(key("before")) is not None
            assert store.count(IN_ROOT) >= 1
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        assert store.get(key("before")) is not None
        assert list(find_problems(store._engine)) == []
        await create(store, "later")


# -- callers that go away -----------------------------------------------------


async def test_a_cancelled_commit_still_happens(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        gate = Gate()
        held = store._writer.submit(gate.run)
        await gate.wait_until_reached()
        with store.watch(IN_ROOT, Revision(0)) as watcher:
            commit = asyncio.create_task(create(store, "a"))
            conflicting = asyncio.create_task(create(store, "a"))
            await asyncio.sleep(0)
            commit.cancel()
            conflicting.cancel()
            outcomes = await asyncio.gather(commit, conflicting, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2
            gate.open()
            await held
            assert [event.key.name for event in await take(watcher, 1)] == ["a"]
        assert store.get(key("a")) is not None
        assert store.revision == 1


async def test_a_caller_may_reuse_its_operations_once_it_was_cancelled(tmp_path: Path) -> None:
    """What was checked is what is written, whatever becomes of the caller's list."""
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        gate = Gate()
        held = store._writer.submit(gate.run)
        await gate.wait_until_reached()
        operations = [Put(key("a"), value())]
        commit = asyncio.create_task(store.commit(operations))
        await asyncio.sleep(0)
        commit.cancel()
        operations[0] = Put(key("b"), b"not packed")
        gate.open()
        await held
        await store.sync()
        await create(store, "c")
        assert store.get(key("a")) is not None
        assert store.get(key("b")) is None


# -- the end ------------------------------------------------------------------


async def test_commits_submitted_just_before_the_close_are_finished(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "store", options=StoreOptions(group_jobs=3))
    commits = [asyncio.create_task(create(store, f"n{number}")) for number in range(50)]
    await asyncio.sleep(0)
    await store.aclose()
    assert await asyncio.gather(*commits) == list(range(1, 51))
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        assert store.count(IN_ROOT) == 50


async def test_a_commit_made_while_the_store_closes_is_refused(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "store")
    gate = Gate()
    store._writer.submit(gate.run)
    await gate.wait_until_reached()
    early = asyncio.create_task(create(store, "early"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    with pytest.raises(Closed):
        await create(store, "late")
    with pytest.raises(Closed):
        await store.compact(Revision(0))
    gate.open()
    await closing
    assert await early == 1
    with pytest.raises(Closed):
        await create(store, "later")


async def test_the_map_can_grow_while_the_store_closes(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "store", options=StoreOptions(map_bytes=1 << 20, group_jobs=5))
    commits = [asyncio.create_task(create(store, f"n{number}", "x" * 100_000)) for number in range(60)]
    await asyncio.sleep(0)
    await store.aclose()
    assert sorted(await asyncio.gather(*commits)) == list(range(1, 61))


async def test_closing_twice_at_once_releases_the_files_for_both(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "store")
    gate = Gate()
    store._writer.submit(gate.run)
    await gate.wait_until_reached()
    first = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    second = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    gate.open()
    await second
    async with await EmbeddedStore.open(tmp_path / "store") as again:
        await create(again, "a")
    await first


async def test_a_close_that_was_cancelled_can_be_finished(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "store")
    gate = Gate()
    store._writer.submit(gate.run)
    await gate.wait_until_reached()
    closing = asyncio.create_task(store.aclose())
    for _ in range(5):
        await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    gate.open()
    await store.aclose()
    async with await EmbeddedStore.open(tmp_path / "store") as again:
        await create(again, "a")


FORGETFUL_PROGRAM = """
    import asyncio, sys
    from pathlib import Path
    from kcp.store import EmbeddedStore, ObjectKey, Put, ResourceKey, StoreOptions, pack

    def operations(number):
        return [Put(ObjectKey(ResourceKey("", "configmaps"), "root", "", f"n{number}"), pack(b"x" * 20000))]

    async def main():
        store = await EmbeddedStore.open(Path(sys.argv[1]), options=StoreOptions(map_bytes=1 << 20))
        await store.commit(operations("first"))
        HOW
    ENDING
    print("done", flush=True)
"""

FORGETFUL_WAYS = {
    "nothing under way": "pass",
    "commits under way": (
        "[asyncio.ensure_future(store.commit(operations(n))) for n in range(40)]; await asyncio.sleep(0)"
    ),
    "the map about to grow": (
        "[store._writer.submit(lambda group, n=n: group.commit(operations(n))) for n in range(100)]"
    ),
    "a watcher waiting": (
        "from kcp.store import Scope; asyncio.ensure_future(store.watch(Scope(), store.revision).next());"
        " await asyncio.sleep(0)"
    ),
    "the compaction under way": "asyncio.ensure_future(store.compact(store.revision)); await asyncio.sleep(0)",
}

ENDINGS = {
    "loop closed": "asyncio.run(main())",
    "loop stopped": "asyncio.new_event_loop().run_until_complete(main())",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("way", FORGETFUL_WAYS)
def test_a_program_that_forgets_to_close_ends_all_the_same(tmp_path: Path, way: str, ending: str) -> None:
    program = textwrap.dedent(FORGETFUL_PROGRAM).replace("HOW", FORGETFUL_WAYS[way]).replace("ENDING", ENDINGS[ending])
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
    with Engine(tmp_path / "store") as engine:
        assert list(find_problems(engine)) == []
        with engine.view() as view:
            assert view.object_count() >= 1
