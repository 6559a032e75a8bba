"""The etcd store while etcd fails: members killed under load, etcd away, etcd full; and restoring into etcd."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kcp.store import (
    ABSENT,
    Compacted,
    Damaged,
    Delete,
    EmbeddedStore,
    InUse,
    NoSpace,
    OutcomeUnknown,
    Put,
    Revision,
    Scope,
    Unavailable,
    pack,
)
from kcp.store.backup import write_backup
from kcp.store.check import find_problems
from kcp.store.engine import Engine
from kcp.store.etcd.client import EtcdClient, make_put
from kcp.store.etcd.keys import EtcdKeys
from kcp.store.etcd.options import EtcdOptions
from kcp.store.etcd.restore import Claim, restore_etcd
from kcp.store.etcd.store import EtcdStore
from kcp.store.restore import restore_embedded
from tests.store.etcd.etcd_server import EtcdServer
from tests.store.etcd.tcp_proxy import TcpProxy
from tests.store.objects import CONFIGMAPS, EVERYTHING, SECRETS, create, key, take, text_of, texts, update, value

if TYPE_CHECKING:
    from pathlib import Path

    from kcp.store import Event
    from tests.store.etcd.etcd_server import EtcdCluster

IN_ROOT = Scope(CONFIGMAPS, "root")
NOW = datetime(2024, 1, 1, tzinfo=UTC)


class Load:
    """Writers that update their own keys as fast as they can, and remember what was acknowledged."""

    def __init__(self, store: EtcdStore, writers: int) -> None:
        self._store = store
        self._stopping = False
        self.acknowledged: dict[str, tuple[int, Revision]] = {}  # by writer: its newest number and the revision
        self.attempted: dict[str, int] = {}
        self.refused = 0
        self._progress = asyncio.Event()
        self._tasks = [asyncio.create_task(self._write(f"w{number}")) for number in range(writers)]

    async def _write(self, name: str) -> None:
        number = 0
        while not self._stopping:
            number += 1
            self.attempted[name] = number
            try:
                # Two keys in one commit: they must never differ.
                commit = [Put(key(f"{name}-{half}"), value(str(number))) for half in "ab"]
                self.acknowledged[name] = (number, await self._store.commit(commit))
                self._progress.set()
            except (Unavailable, OutcomeUnknown):
                self.refused += 1

    async def wait_for(self, commits: int) -> None:
        """Until every writer has got that many more commits through."""
        goal = {name: self.acknowledged.get(name, (0, 0))[0] + commits for name in self.attempted}
        while any(self.acknowledged.get(name, (0, 0))[0] < number for name, number in goal.items()):
            self._progress.clear()
            await self._progress.wait()

    async def stop(self) -> None:
        self._stopping = True
        await asyncio.gather(*self._tasks)


async def collect(store: EtcdStore, start: Revision, events: list[Event]) -> None:
    async for batch in store.watch(EVERYTHING, start):
        events.extend(batch.events)


async def test_the_leader_is_lost_under_load(etcd_cluster: EtcdCluster, tmp_path: Path) -> None:
    options = EtcdOptions(etcd_cluster.endpoints)
    async with (
        await EtcdStore.open(tmp_path / "writer", options) as store,
        await EtcdStore.open(tmp_path / "watcher", options) as other,
    ):
        start = other.revision
        seen: list[Event] = []
        watching = asyncio.create_task(collect(other, start, seen))
        load = Load(store, writers=8)
        await asyncio.sleep(0)
        await load.wait_for(20)
        leader = etcd_cluster.find_leader()
        leader.kill()
        await load.wait_for(20)
        leader.start()
        await load.wait_for(20)
        await load.stop()
        await other.sync()

        for name, (number, revision) in load.acknowledged.items():
            halves = [other.get(key(f"{name}-{half}")) for half in "ab"]
            assert {text_of(half) for half in halves} == {text_of(halves[0])}
            assert number <= int(text_of(halves[0]) or "") <= load.attempted[name]
            assert halves[0] is not None
            assert halves[0].revision >= revision
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        with other.watch(EVERYTHING, start) as from_log:
            logged = await take(from_log, len(seen))
        assert [(event.key, event.revision) for event in seen] == [(event.key, event.revision) for event in logged]
        assert len({(event.key, event.revision) for event in seen}) == len(seen)
        assert_each_key_continues(seen)
        assert list(find_problems(store._engine)) == list(find_problems(other._engine)) == []


def assert_each_key_continues(events: list[Event]) -> None:
    """No gap: every change of a key begins where the one before it ended."""
    last: dict[str, str | None] = {}
    for event in events:
        assert text_of(event.old) == last.get(event.key.name), event
        last[event.key.name] = text_of(event.new)


async def test_an_etcd_that_is_killed_and_comes_back(etcd_binary: str, tmp_path: Path) -> None:
    with EtcdServer(tmp_path, durable=True) as etcd:
        options = EtcdOptions((etcd.endpoint,), request_timeout=1.0)
        async with await EtcdStore.open(tmp_path / "a", options) as store:
            with store.watch(IN_ROOT, store.revision) as watcher:
                before = await create(store, "x", "1")
                etcd.kill()
                assert text_of(store.get(key("x"))) == "1"
                with pytest.raises((Unavailable, OutcomeUnknown), match=etcd.endpoint.removeprefix("http://")):
                    await update(store, "x", "2")
                with pytest.raises(Unavailable):
                    await store.sync()
                etcd.start()
                await store.sync()
                after = await update(store, "x", "3")
                revisions = [event.revision for event in await take(watcher, 2)]
                assert revisions == [before, after]


async def test_a_store_does_not_open_without_etcd(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        await EtcdStore.open(tmp_path / "a", EtcdOptions(("http://127.0.0.1:1",), request_timeout=0.5))
    assert not (tmp_path / "a").exists()


async def test_a_full_etcd_refuses_writes_and_serves_reads(etcd_binary: str, tmp_path: Path) -> None:
    with EtcdServer(tmp_path, arguments=("--quota-backend-bytes=16777216",)) as etcd:
        async with await EtcdStore.open(tmp_path / "a", EtcdOptions((etcd.endpoint,))) as store:
            await create(store, "x", "kept")
            with pytest.raises(NoSpace):
                await fill_up(store)
            assert text_of(store.get(key("x"))) == "kept"
            await store.sync()


async def fill_up(store: EtcdStore) -> None:
    for number in range(100):
        await store.commit([Put(key(f"big{number}"), pack(b"x" * 1_000_000))])


# -- backup and restore between the two kinds ---------------------------------


def backup_of(directory: Path, file: Path) -> Path:
    with Engine(directory, readonly=True) as engine:
        write_backup(engine, file, NOW)
    return file


async def fill(store: EmbeddedStore | EtcdStore) -> None:
    for number in range(300):
        await store.commit(
            [Put(key(f"n{number}"), value(str(number))), Put(key("s", cluster=f"c{number}", resource=SECRETS), value())]
        )
    await store.commit([Put(key("large"), pack(b"x" * 1_400_000))])


async def test_an_embedded_store_moves_into_etcd_and_back(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "one") as store:
        await fill(store)
        old = store.revision
        objects = {record.key: record.value for record in store.range(EVERYTHING).records()}
    options = EtcdOptions((own_etcd.endpoint,))
    begin = await restore_etcd(backup_of(tmp_path / "one", tmp_path / "1.kcp"), options, "/kcp")
    async with await EtcdStore.open(tmp_path / "mirror", options) as store:
        assert {record.key: record.value for record in store.range(EVERYTHING).records()} == objects
        assert store.counts("c7") == {SECRETS: 1}
        assert store.revision >= begin > old
        with pytest.raises(Compacted):
            store.watch(IN_ROOT, old)
        record = store.get(key("n1"))
        assert record is not None
        later = await store.commit([Put(key("n1"), value("changed"), expect=record.revision)])
        assert later > begin
        await store.commit([Put(key("new"), value(), expect=ABSENT)])
    restore_embedded(backup_of(tmp_path / "mirror", tmp_path / "2.kcp"), tmp_path / "two")
    async with await EmbeddedStore.open(tmp_path / "two") as store:
        assert store.count(EVERYTHING) == len(objects) + 1
        assert text_of(store.get(key("n1"))) == "changed"
        assert store.revision > later
        assert list(find_problems(store._engine)) == []


async def test_restoring_into_an_etcd_with_objects_is_refused(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "one") as store:
        await create(store, "x", "from the backup")
    backup = backup_of(tmp_path / "one", tmp_path / "1.kcp")
    options = EtcdOptions((own_etcd.endpoint,))
    async with await EtcdStore.open(tmp_path / "mirror", options) as store:
        await create(store, "x", "in use")
        with pytest.raises(InUse, match="prefix"):
            await restore_etcd(backup, options, "/kcp")
        await store.sync()
        assert texts(store.range(IN_ROOT)) == {"root|default/x": "in use"}


async def test_an_unfinished_restore_is_noticed_and_done_again(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "one") as store:
        await create(store, "x", "from the backup")
    backup = backup_of(tmp_path / "one", tmp_path / "1.kcp")
    options = EtcdOptions((own_etcd.endpoint,))
    keys = EtcdKeys("/kcp")
    async with EtcdClient(options) as client:
        half = [make_put(keys.restoring, b"1.kcp"), make_put(keys.encode(key("half")), value("half"))]
        await client.txn([], half)
    with pytest.raises(Damaged, match="restore"):
        await EtcdStore.open(tmp_path / "mirror", options)
    await restore_etcd(backup, options, "/kcp")
    async with await EtcdStore.open(tmp_path / "mirror", options) as store:
        assert texts(store.range(IN_ROOT)) == {"root|default/x": "from the backup"}


async def test_a_restore_done_again_deletes_in_steps_and_only_its_own(
    own_etcd: EtcdServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcp.store.etcd.restore._DELETED_AT_ONCE", 10)
    async with await EmbeddedStore.open(tmp_path / "one") as store:
        await create(store, "x", "from the backup")
    backup = backup_of(tmp_path / "one", tmp_path / "1.kcp")
    options = EtcdOptions((own_etcd.endpoint,))
    keys, nested = EtcdKeys("/kcp"), EtcdKeys("/kcp/team")
    async with EtcdClient(options) as client:
        await client.txn([], [make_put(keys.restoring, b"1.kcp"), make_put(nested.encode(key("theirs")), value())])
        await client.txn([], [make_put(keys.encode(key(f"half{number}")), value()) for number in range(35)])
        await restore_etcd(backup, options, "/kcp")
        assert (await client.range(nested.encode(key("theirs")), count_only=True)).count == 1
    async with await EtcdStore.open(tmp_path / "mirror", options) as store:
        assert texts(store.range(EVERYTHING)) == {"root|default/x": "from the backup"}


async def test_of_two_restores_the_later_one_wins(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "one") as store:
        await create(store, "x", "from the backup")
    backup = backup_of(tmp_path / "one", tmp_path / "1.kcp")
    options = EtcdOptions((own_etcd.endpoint,))
    keys = EtcdKeys("/kcp")
    half = [make_put(keys.encode(key("half")), value())]
    async with EtcdClient(options) as client:
        first = Claim(client, keys)
        await first.take("1.kcp")
        await first.write(half)
        await restore_etcd(backup, options, "/kcp")
        with pytest.raises(InUse, match="another restore"):
            await first.write(half)
        late = Claim(client, keys)
        with pytest.raises(InUse, match="has objects"):
            await late.take("1.kcp")
    async with await EtcdStore.open(tmp_path / "mirror", options) as store:
        assert texts(store.range(EVERYTHING)) == {"root|default/x": "from the backup"}


@pytest.mark.parametrize("is_cut_off", [False, True], ids=["seen", "missed"])
async def test_a_server_does_not_serve_what_is_restored_under_it(
    own_etcd: EtcdServer, tmp_path: Path, is_cut_off: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with await EmbeddedStore.open(tmp_path / "one") as store:
        await create(store, "x", "from the backup")
    backup = backup_of(tmp_path / "one", tmp_path / "1.kcp")
    direct = EtcdOptions((own_etcd.endpoint,))
    async with TcpProxy(own_etcd.ports[0]) as proxy:
        options = EtcdOptions((f"http://127.0.0.1:{proxy.port}",))
        async with await EtcdStore.open(tmp_path / "mirror", options) as store:
            await create(store, "y")
            await store.commit([Delete(key("y"))])
            if is_cut_off:
                proxy.cut()
            await restore_etcd(backup, direct, "/kcp")
            proxy.mend()
            with pytest.raises(Unavailable, match="restart this server"):
                await store.sync()
            for call in (create(store, "z"), store.compact(store.revision)):
                with pytest.raises(Unavailable, match="restart this server"):
                    await call
            assert store.count(EVERYTHING) == 0
            assert "restart this server" in caplog.text
    for _ in range(2):
        async with await EtcdStore.open(tmp_path / "mirror", direct) as store:
            assert texts(store.range(IN_ROOT)) == {"root|default/x": "from the backup"}
            await update(store, "x", "from the backup")


async def test_a_torn_backup_leaves_etcd_marked(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "one") as store:
        await fill(store)
    backup = backup_of(tmp_path / "one", tmp_path / "1.kcp")
    backup.write_bytes(backup.read_bytes()[:-100])
    options = EtcdOptions((own_etcd.endpoint,))
    with pytest.raises(Damaged):
        await restore_etcd(backup, options, "/kcp")
    with pytest.raises(Damaged, match="restore"):
        await EtcdStore.open(tmp_path / "mirror", options)
