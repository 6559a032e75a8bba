"""What the store meets on a machine: foreign and torn files, other processes, full disks, full maps."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import resource
import shutil
import subprocess
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lmdb
import pytest

from kcp.meta.fake_clock import FakeClock
from kcp.store import (
    Damaged,
    EmbeddedStore,
    InUse,
    NoSpace,
    Put,
    Revision,
    Scope,
    StoreError,
    StoreOptions,
    Unavailable,
    layout,
    pack,
)
from kcp.store.check import find_problems
from kcp.store.engine import Engine
from tests.store.objects import CONFIGMAPS, EVERYTHING, SECRETS, WIDGETS, create, key, take, text_of, update, value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

IN_ROOT = Scope(CONFIGMAPS, "root")
SPAWN = multiprocessing.get_context("spawn")
PATIENCE = 60  # seconds until a silent child counts as hung
NOBODY = 65534


class Child:
    """Another process that runs one function of this module, and a pipe to it."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def receive(self) -> Any:  # noqa: ANN401 - whatever the function sends
        assert self.pipe.poll(PATIENCE), "the child is silent"
        try:
            answer = self.pipe.recv()
        except EOFError:
            self.process.join()
            pytest.fail(f"the child died with exit code {self.process.exitcode}")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@contextlib.contextmanager
def child(function: Callable[..., None], *arguments: object) -> Iterator[Child]:
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=run_child, args=(there, function, arguments), daemon=True)
    process.start()
    there.close()
    try:
        yield Child(process, here)
    finally:
        process.kill()
        process.join()
        process.close()
        here.close()


def run_child(pipe: Connection, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Runs in the other process. What goes wrong there fails the test here."""
    try:
        function(pipe, *arguments)
    except BaseException:
        pipe.send(AssertionError(traceback.format_exc()))


async def fill(path: Path, count: int = 50) -> None:
    async with await EmbeddedStore.open(path) as store:
        await asyncio.gather(*(create(store, f"n{number}", str(number) * 50) for number in range(count)))


def check_whole(path: Path, count: int = 50) -> None:
    """The store is as `fill` made it, and can be written to."""
    with Engine(path) as engine:
        assert list(find_problems(engine)) == []
        with engine.view() as view:
            assert view.revision >= count
            for number in range(count):
                assert text_of(view.get(key(f"n{number}"))) == str(number) * 50
    asyncio.run(update_once(path))


async def update_once(path: Path) -> None:
    async with await EmbeddedStore.open(path) as store:
        await update(store, "written later", "x")


# -- files that are not ours --------------------------------------------------


def make_foreign_database(path: Path, table: bytes | None) -> bytes:
    with lmdb.open(str(path), max_dbs=4) as env:
        db = env.open_db(table)
        with env.begin(write=True) as txn:
            for number in range(100):
                txn.put(b"somebody else's %d" % number, b"data" * 100, db=db)
    return (path / "data.mdb").read_bytes()


FOREIGN_FILES: dict[str, bytes] = {
    "text": b"This is not a database.\n" * 1000,
    "a few bytes": b"text",
    "one page of zeros": bytes(4096),
    "less than two pages": bytes(8191),
    "zeros": bytes(1 << 16),
    "another database's": b"SQLite format 3\0" + bytes(1 << 16),
    "all ones": b"\xff" * (1 << 16),
}


@pytest.mark.parametrize("readonly", [False, True], ids=["to write", "to read"])
@pytest.mark.parametrize("content", FOREIGN_FILES.values(), ids=FOREIGN_FILES)
async def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, content: bytes, readonly: bool) -> None:
    path = tmp_path / "store"
    await fill(path)
    ours = (path / "data.mdb").read_bytes()
    (path / "data.mdb").write_bytes(content)
    with pytest.raises(Damaged):
        Engine(path, readonly=readonly)
    assert (path / "data.mdb").read_bytes() == content
    (path / "data.mdb").write_bytes(ours)
    await asyncio.to_thread(check_whole, path)


@pytest.mark.parametrize("readonly", [False, True], ids=["to write", "to read"])
@pytest.mark.parametrize("table", [None, b"people", b"now"], ids=["main table", "own table", "table named like ours"])
def test_an_lmdb_database_that_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, table: bytes | None, readonly: bool
) -> None:
    path = tmp_path / "store"
    foreign = make_foreign_database(path, table)
    with pytest.raises(Damaged):
        Engine(path, readonly=readonly)
    assert (path / "data.mdb").read_bytes() == foreign


@pytest.mark.parametrize("readonly", [False, True], ids=["to write", "to read"])
@pytest.mark.parametrize("how", ["emptied", "deleted"])
async def test_a_store_that_lost_its_file_is_not_quietly_begun_anew(tmp_path: Path, how: str, readonly: bool) -> None:
    path = tmp_path / "store"
    await fill(path)
    ours = (path / "data.mdb").read_bytes()
    (path / "data.mdb").unlink()
    if how == "emptied":
        (path / "data.mdb").touch()
    with pytest.raises(Damaged, match="empty" if how == "emptied" else "missing"):
        Engine(path, readonly=readonly)
    (path / "data.mdb").write_bytes(ours)
    await asyncio.to_thread(check_whole, path)


def test_an_empty_file_in_a_directory_that_never_was_a_store_is_begun(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").touch()
    asyncio.run(fill(tmp_path))
    check_whole(tmp_path)


def test_there_is_nothing_to_read_where_no_store_is(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(Damaged, match="missing"):
            Engine(path, readonly=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lost_table", [None, b"trail"], ids=["same tables", "other tables"])
@pytest.mark.parametrize("readonly", [False, True], ids=["to write", "to read"])
async def test_a_newer_format_is_refused_and_left_alone(
    tmp_path: Path, readonly: bool, lost_table: bytes | None
) -> None:
    path = tmp_path / "store"
    await fill(path)
    with lmdb.open(str(path), max_dbs=8, map_size=1 << 30) as env:
        with env.begin(write=True, db=env.open_db(b"meta")) as txn:
            txn.put(layout.META_FORMAT, b"2")
        if lost_table is not None:
            lost = env.open_db(lost_table)
            with env.begin(write=True) as txn:
                txn.drop(lost)
    newer = (path / "data.mdb").read_bytes()
    with pytest.raises(Damaged, match=r"b'2'|format|kcp store"):
        Engine(path, readonly=readonly)
    assert (path / "data.mdb").read_bytes() == newer


async def test_a_copy_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store"
    await fill(path)
    with pytest.raises(Damaged, match="embedded store"):
        Engine(path, origin="a copy of etcd")
    await asyncio.to_thread(check_whole, path)
    Engine(tmp_path / "mirror", origin="a copy of etcd").close()
    with pytest.raises(Damaged, match="a copy of etcd"):
        await EmbeddedStore.open(tmp_path / "mirror")
    Engine(tmp_path / "mirror", origin="a copy of etcd").close()


# -- files that are torn ------------------------------------------------------


def try_every_length(pipe: Connection, path: Path) -> None:
    """Opens the store cut to each length, and reads all that it then has. A wrong step would end this process."""
    whole = (path / "data.mdb").read_bytes()
    pages = range(0, len(whole), 4096)
    lengths = {0, 1, len(whole) - 1, *pages, *(page + 1 for page in pages), *(page - 1 for page in pages if page)}
    for length in sorted(lengths):
        for readonly in (True, False):
            (path / "data.mdb").write_bytes(whole[:length])
            pipe.send((length, readonly))
            try:
                with Engine(path, readonly=readonly) as engine:
                    problems = list(find_problems(engine))
                    with engine.view() as view:
                        objects = {text_of(view.get(key(f"n{number}"))) for number in range(50)}
            except Damaged:
                if readonly:
                    assert (path / "data.mdb").read_bytes() == whole[:length]
            else:
                assert not problems
                assert objects == {str(number) * 50 for number in range(50)}, f"opened with {length} bytes"
                assert length > 3 * 4096, "so little cannot be whole"
    (path / "data.mdb").write_bytes(whole)
    pipe.send(None)


async def test_a_file_cut_at_any_length_is_refused_or_whole(tmp_path: Path) -> None:
    path = tmp_path / "store"
    await fill(path)
    with child(try_every_length, path) as cutter:
        tried = 0
        while cutter.receive() is not None:
            tried += 1
        assert tried > 50
    await asyncio.to_thread(check_whole, path)


# -- permission ---------------------------------------------------------------


def open_as_nobody(pipe: Connection, directory: Path, name: str) -> None:
    os.chdir(directory)  # relative from here: the directories above may be closed to others
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    outcomes = []
    for readonly in (False, True):
        try:
            Engine(Path(name), readonly=readonly).close()
        except StoreError as error:
            outcomes.append(str(error))
        else:
            outcomes.append("opened")
    pipe.send(outcomes)


@pytest.mark.parametrize(
    ("closed", "mode"),
    [("store", 0o000), ("store/data.mdb", 0o000), ("store/writer.lock", 0o000), (".", 0o500)],
    ids=["closed directory", "closed file", "closed lock", "read-only parent"],
)
async def test_a_store_without_permission_is_refused_in_the_stores_words(
    tmp_path: Path, closed: str, mode: int
) -> None:
    os.chmod(tmp_path, 0o777)
    name = "new" if closed == "." else "store"
    await fill(tmp_path / "store")
    for found in (tmp_path / "store", *(tmp_path / "store").iterdir()):
        if os.geteuid() == 0:
            os.chown(found, NOBODY, NOBODY)
    if os.geteuid() == 0:
        os.chown(tmp_path, NOBODY, NOBODY)
    previous = (tmp_path / closed).stat().st_mode
    os.chmod(tmp_path / closed, mode)
    try:
        with child(open_as_nobody, tmp_path, name) as nobody:
            to_write, _ = nobody.receive()
        assert to_write != "opened"
        assert name in to_write
    finally:
        os.chmod(tmp_path / closed, previous)
    await asyncio.to_thread(check_whole, tmp_path / "store")


@pytest.mark.parametrize("name", ["file", "file/store"])
def test_a_file_in_place_of_the_directory_is_refused_in_the_stores_words(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StoreError, match="file"):
        Engine(tmp_path / name)
    assert (tmp_path / "file").read_text() == "precious"


def test_missing_directories_above_the_store_are_made_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "store"
    Engine(path).close()
    assert path.stat().st_mode & 0o777 == 0o700
    assert (path / "data.mdb").stat().st_mode & 0o777 == 0o600


# -- a second opener ----------------------------------------------------------


def hold_open(pipe: Connection, path: Path, readonly: bool) -> None:
    with Engine(path, readonly=readonly) as engine, engine.view():
        pipe.send("open")
        pipe.recv()


async def test_a_second_writer_is_refused_and_told_who_the_first_one_is(tmp_path: Path) -> None:
    path = tmp_path / "store"
    await fill(path)
    with child(hold_open, path, False) as owner:
        owner.receive()
        with pytest.raises(InUse, match=f"process {owner.pid}:"):
            await EmbeddedStore.open(path)
        with Engine(path, readonly=True) as engine, engine.view() as view:
            assert view.object_count() == 50
        owner.kill()
    await asyncio.to_thread(check_whole, path)


async def test_a_second_writer_in_the_same_process_is_refused(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await create(store, "a")
        for _ in range(2):
            with pytest.raises(InUse, match=f"process {os.getpid()}:"):
                await EmbeddedStore.open(tmp_path / "store")
        with pytest.raises(StoreError):
            Engine(tmp_path / "store", readonly=True)
        await create(store, "b")
        with child(hold_open, tmp_path / "store", True) as reader:
            assert reader.receive() == "open"
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        assert store.count(IN_ROOT) == 2


async def test_a_refusal_keeps_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "store"
    Engine(path, origin="other").close()
    with pytest.raises(Damaged):
        Engine(path)
    Engine(path, origin="other").close()


# -- readers in other processes -----------------------------------------------


def follow_pairs(pipe: Connection, path: Path, reopen: bool) -> None:
    """Looks again and again whether `left` and `right` agree, until told to stop."""
    seen: set[int] = set()
    last = 0
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(Engine(path, readonly=True))
        pipe.send("open")
        while not pipe.poll():
            if reopen:
                stack.close()
                engine = stack.enter_context(Engine(path, readonly=True))
            with engine.view() as view:
                left, right = text_of(view.get(key("left"))), text_of(view.get(key("right", resource=SECRETS)))
                assert left == right
                assert view.count(IN_ROOT) == len(view.range(IN_ROOT).pairs)
                assert view.revision >= last
                last = view.revision
                seen.add(last)
    pipe.send((len(seen), last))


@pytest.mark.parametrize("reopen", [False, True], ids=["staying open", "opening each time"])
async def test_a_reading_process_sees_new_commits_and_never_half_of_one(tmp_path: Path, reopen: bool) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await write_pair(store, 0)
        with child(follow_pairs, tmp_path / "store", reopen) as reader:
            await asyncio.to_thread(reader.receive)
            for number in range(0, 600, 6):
                await asyncio.gather(*(write_pair(store, number + step) for step in range(6)))
            reader.pipe.send("stop")
            seen, last = await asyncio.to_thread(reader.receive)
        assert seen > 1
        assert last <= store.revision


async def write_pair(store: EmbeddedStore, number: int) -> None:
    text = str(number).zfill(number % 500)
    await store.commit([Put(key("left"), value(text)), Put(key("right", resource=SECRETS), value(text))])


def hog_places(pipe: Connection, path: Path, places: int) -> None:
    with Engine(path, readonly=True) as engine:
        views = [engine.view() for _ in range(places)]
        pipe.send(len(views))
        pipe.recv()


def reader_pids(store: EmbeddedStore) -> set[int]:
    lines = str(store._engine.env._env.readers()).splitlines()[1:]
    return {int(line.split()[0]) for line in lines}


async def test_the_places_of_killed_readers_are_freed_at_the_next_look(tmp_path: Path) -> None:
    clock = FakeClock()
    async with await EmbeddedStore.open(tmp_path / "store", clock=clock) as store:
        await create(store, "a")
        await clock.wait_for_sleepers()
        with child(hog_places, tmp_path / "store", 20) as reader:
            reader.receive()
            assert reader.pid in reader_pids(store)
            reader.kill()
            clock.advance(store.options.compact_interval)
            await clock.wait_for_sleepers()
            assert reader.pid not in reader_pids(store)


async def test_the_places_of_killed_readers_are_freed_at_the_next_open(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store", clock=FakeClock()) as store:
        await create(store, "a")
        with child(hog_places, tmp_path / "store", 900) as reader:
            assert reader.receive() == 900
            reader.kill()
            with child(hog_places, tmp_path / "store", 900) as second:
                assert second.receive() == 900
                assert reader.pid not in reader_pids(store)


async def test_old_versions_pinned_by_a_killed_reader_are_reused(tmp_path: Path) -> None:
    clock = FakeClock()
    options = StoreOptions(compact_age=0, compact_min_revisions=0, compact_max_revisions=10)
    async with await EmbeddedStore.open(tmp_path / "store", options=options, clock=clock) as store:

        async def rewrite(times: int) -> int:
            for _ in range(times):
                await store.commit([Put(key("a"), pack(b"x" * 100_000))])
                clock.advance(store.options.compact_interval)
                await clock.wait_for_sleepers()
            return store._engine.env.used_bytes()

        await rewrite(10)
        with child(hold_open, tmp_path / "store", True) as reader:
            reader.receive()
            pinned = await rewrite(40)
            reader.kill()
        await rewrite(5)
        assert await rewrite(30) <= pinned + 1_000_000


def take_every_place(pipe: Connection, path: Path) -> None:
    with Engine(path, readonly=True) as engine:
        views = []
        with contextlib.suppress(Unavailable):
            while True:
                views.append(engine.view())
        pipe.send(len(views))
        pipe.recv()


async def test_a_killed_reader_that_had_every_place_does_not_stop_the_store(tmp_path: Path) -> None:
    clock = FakeClock()
    async with await EmbeddedStore.open(tmp_path / "store", clock=clock) as store:
        await create(store, "a")
        await clock.wait_for_sleepers()
        with child(take_every_place, tmp_path / "store") as reader:
            assert reader.receive() > 900
            reader.kill()
            clock.advance(store.options.compact_interval)
            await clock.wait_for_sleepers()
            assert reader.pid not in reader_pids(store)
        assert store.get(key("a")) is not None


async def test_when_all_places_are_taken_reads_say_so_and_recover(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store", clock=FakeClock()) as store:
        await create(store, "a")
        with contextlib.ExitStack() as readers:
            with contextlib.suppress(lmdb.ReadersFullError, Unavailable):
                while True:
                    readers.enter_context(store._engine.env.read())
            with pytest.raises(Unavailable):
                store.get(key("a"))
            with pytest.raises(Unavailable):
                store.get(key("a", resource=WIDGETS))
        assert store.get(key("a")) is not None
        await create(store, "b", resource=WIDGETS)


# -- a map that grows ---------------------------------------------------------

SMALL_MAP = StoreOptions(map_bytes=1 << 20, watch_buffer_events=20, catch_up_events=10)


async def test_the_map_grows_under_writes_reads_and_watches(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store", options=SMALL_MAP) as store:
        before = store._engine.env.map_bytes
        finished = asyncio.Event()

        async def read() -> None:
            while not finished.is_set():
                page = store.range(IN_ROOT)
                assert store.count(IN_ROOT) == len(page.records())
                for record in page.records():
                    assert len(record.body) > 10_000
                await asyncio.sleep(0)

        async def watch(scope: Scope) -> list[int]:
            with store.watch(scope, Revision(0)) as watcher:
                return [event.revision for event in await take(watcher, 400)]

        async def write() -> None:
            await asyncio.gather(
                *(store.commit([Put(key(f"n{number}"), pack(b"x" * 20_000))]) for number in range(400))
            )
            finished.set()

        scopes = (EVERYTHING, IN_ROOT, Scope(CONFIGMAPS))
        _, _, *seen = await asyncio.gather(read(), write(), *(watch(scope) for scope in scopes))
        assert seen == [list(range(1, 401))] * len(scopes)
        assert store._engine.env.map_bytes > 8 * before
        assert list(find_problems(store._engine)) == []
    async with await EmbeddedStore.open(tmp_path / "store", options=SMALL_MAP) as store:
        assert store.count(IN_ROOT) == 400
        await create(store, "later")


async def test_one_commit_may_need_the_map_to_grow_several_times(tmp_path: Path) -> None:
    options = StoreOptions(map_bytes=1 << 17)
    async with await EmbeddedStore.open(tmp_path / "store", options=options) as store:
        largest = pack(b"x" * 1_400_000)
        assert await store.commit([Put(key("a"), largest)]) == 1
        record = store.get(key("a"))
        assert record is not None
        assert record.value == largest


async def test_a_reading_process_follows_the_map_as_it_grows(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store", options=SMALL_MAP) as store:
        await write_pair(store, 0)
        with child(follow_pairs, tmp_path / "store", False) as reader:
            await asyncio.to_thread(reader.receive)
            for number in range(100):
                await store.commit([Put(key(f"n{number}"), pack(b"x" * 50_000))])
            await write_pair(store, 1)
            reader.pipe.send("stop")
            seen, _ = await asyncio.to_thread(reader.receive)
        assert seen > 1


def read_before_and_after(pipe: Connection, path: Path) -> None:
    """One view, which must see the same moment however the writer's map grows meanwhile."""
    with Engine(path, readonly=True) as engine:
        with engine.view() as view:
            before = view.get(key("a"))
            pipe.send("read")
            pipe.recv()
            # The number of this resource is not known to this process yet.
            assert view.get(key("a", resource=WIDGETS)) is not None
            assert view.get(key("a")) == before
            assert len(view.range(EVERYTHING).records()) == 2
        with engine.view() as view:
            pipe.send(view.object_count())


async def test_a_view_in_a_reading_process_outlives_the_growth_of_the_map(tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "store", options=SMALL_MAP) as store:
        await store.commit([Put(key("a"), value()), Put(key("a", resource=WIDGETS), value())])
        with child(read_before_and_after, tmp_path / "store") as reader:
            await asyncio.to_thread(reader.receive)
            for number in range(40):
                await store.commit([Put(key(f"n{number}"), pack(b"x" * 100_000))])
            reader.pipe.send("grown")
            assert await asyncio.to_thread(reader.receive) == 42


async def write_for_ever(store: EmbeddedStore, size: int) -> None:
    for number in itertools.count():
        await store.commit([Put(key(f"n{number}"), pack(b"x" * size))])


def fail_to_grow(pipe: Connection, path: Path) -> None:
    """With a limit on address space that leaves no room for a larger map, and then without."""

    async def run() -> None:
        async with await EmbeddedStore.open(path, options=StoreOptions(map_bytes=1 << 27)) as store:
            await create(store, "first")
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 26), resource.RLIM_INFINITY))
            with pytest.raises(Unavailable):
                await write_for_ever(store, 1_000_000)
            assert store.get(key("first")) is not None
            assert store.count(IN_ROOT) == store.revision > 50
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            await store.commit([Put(key("more"), pack(b"x" * 1_000_000))])
            assert list(find_problems(store._engine)) == []
            pipe.send("done")

    asyncio.run(run())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to know its own size")
async def test_a_map_that_cannot_grow_costs_no_reads_and_can_grow_later(tmp_path: Path) -> None:
    with child(fail_to_grow, tmp_path / "store") as limited:
        assert limited.receive() == "done"


# -- full disks ---------------------------------------------------------------


@contextlib.contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def enlarge_disk(path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(path)], check=True)


@pytest.fixture(params=["a limit on files", "a small disk"])
def full_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Where to put a store that will not fit, and the limit on its file (0 if the disk itself is small)."""
    if request.param == "a limit on files":
        yield tmp_path / "store", 1_234_567
        return
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("needs to be root to mount a small disk")
    with small_disk(tmp_path / "disk", "2m") as path:
        yield path / "store", 0


def write_until_full(pipe: Connection, path: Path, limit: int) -> None:
    """Fills the disk, looks around, waits for room, and goes on. Sends what was acknowledged, and how it failed."""
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    asyncio.run(write_and_look(pipe, path))


async def write_and_look(pipe: Connection, path: Path) -> None:
    acknowledged: dict[str, int] = {}
    errors: list[str] = []

    async def write(writer: int, size: int, most: int) -> None:
        for number in range(most):
            name = f"{writer}-{size}-{number}"
            try:
                acknowledged[name] = await commit_both(store, name, size)
            except StoreError as error:
                errors.append(type(error).__name__)
                return

    async with await EmbeddedStore.open(path) as store:
        with store.watch(Scope(SECRETS), Revision(0)) as watcher:
            for size in (30_000, 5_000, 100):
                await asyncio.gather(*(write(writer, size, 10_000) for writer in range(4)))
            check_both(store, acknowledged)
            assert [event.revision for event in await take(watcher, len(acknowledged))] == sorted(acknowledged.values())
            before = store.revision
            pipe.send((acknowledged, errors))
            assert pipe.recv() == "there is room"
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            errors.clear()
            await asyncio.gather(*(write(writer + 100, 30_000, 10) for writer in range(4)))
            assert store.revision == before + 40
            assert len(await take(watcher, 40)) == 40
        check_both(store, acknowledged)
    pipe.send((acknowledged, errors))


async def commit_both(store: EmbeddedStore, name: str, size: int) -> Revision:
    put = Put(key(name), pack(b"x" * size))
    return await store.commit([put, Put(key(name, resource=SECRETS), pack(b"x" * size))])


def check_both(store: EmbeddedStore, acknowledged: dict[str, int]) -> None:
    """What was acknowledged is there, each commit whole, and nothing else is."""
    assert list(find_problems(store._engine)) == []
    for resource_key in (CONFIGMAPS, SECRETS):
        found = {record.key.name: record.revision for record in store.range(Scope(resource_key)).records()}
        assert found == acknowledged
    assert store.revision == max(acknowledged.values())


async def test_a_full_disk_costs_nothing_that_was_acknowledged(full_disk: tuple[Path, int]) -> None:
    path, limit = full_disk
    with child(write_until_full, path, limit) as writer:
        acknowledged, errors = await asyncio.to_thread(writer.receive)
        assert len(acknowledged) > 10
        assert len(errors) == 12
        if not limit:
            enlarge_disk(path.parent)
        writer.pipe.send("there is room")
        acknowledged, errors = await asyncio.to_thread(writer.receive)
        assert errors == []
    async with await EmbeddedStore.open(path) as store:
        check_both(store, acknowledged)


async def test_a_full_disk_is_told_apart_from_other_trouble(full_disk: tuple[Path, int]) -> None:
    path, limit = full_disk
    with child(write_until_full, path, limit) as writer:
        _, errors = await asyncio.to_thread(writer.receive)
    assert set(errors) == {NoSpace.__name__}


async def test_compaction_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs to be root to mount a small disk")
    with small_disk(tmp_path / "disk", "2m") as disk:
        async with await EmbeddedStore.open(disk / "store", clock=FakeClock()) as store:
            with pytest.raises(StoreError):
                await write_for_ever(store, 10_000)
            before = store.count(IN_ROOT)
            await store.compact(store.revision)
            for number in range(50):
                await create(store, f"small{number}")
            assert list(find_problems(store._engine)) == []
        async with await EmbeddedStore.open(disk / "store", clock=FakeClock()) as store:
            assert store.count(IN_ROOT) == before + 50


def open_in_little_room(pipe: Connection) -> None:
    while True:
        path = pipe.recv()
        try:
            Engine(path).close()
        except NoSpace:
            pipe.send("NoSpace")
        except Exception as error:
            pipe.send(f"{type(error).__module__}.{type(error).__name__}: {error}")
        else:
            pipe.send("opened")


def test_a_store_begun_on_a_full_disk_is_refused_until_there_is_room(tmp_path: Path) -> None:
    """With a page more of room each time, so that each step of the making is the one for which there is none."""
    if os.geteuid() != 0:
        pytest.skip("needs to be root to mount a small disk")
    outcomes: list[str] = []
    with child(open_in_little_room) as opener:
        while outcomes[-3:] != ["opened"] * 3:
            pages = len(outcomes) + 1
            with small_disk(tmp_path / str(pages), f"{4 * pages}k") as disk:
                opener.pipe.send(disk / "store")
                outcomes.append(opener.receive())
                enlarge_disk(disk)
                opener.pipe.send(disk / "store")
                assert opener.receive() == "opened", f"after {outcomes[-1]} in {pages} pages"
    assert set(outcomes) == {"NoSpace", "opened"}
    assert outcomes == sorted(outcomes)
