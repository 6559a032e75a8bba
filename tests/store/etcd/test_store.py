"""What the etcd store adds to the contract: several servers, a mirror that may be lost, and an etcd that is shared."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from typing import TYPE_CHECKING, NoReturn, TypeVar

import pytest

from kcp.store import (
    ABSENT,
    Closed,
    Compacted,
    Conflict,
    Damaged,
    Delete,
    EmbeddedStore,
    InUse,
    NoSpace,
    OutcomeUnknown,
    Put,
    Revision,
    Scope,
    StoreOptions,
    Unavailable,
)
from kcp.store.check import find_problems
from kcp.store.etcd.client import EtcdClient, make_delete, make_put
from kcp.store.etcd.keys import EtcdKeys
from kcp.store.etcd.options import EtcdOptions
from kcp.store.etcd.store import EtcdStore
from tests.store.etcd.tcp_proxy import TcpProxy
from tests.store.objects import CONFIGMAPS, EVERYTHING, SECRETS, create, key, take, text_of, texts, told, update, value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from kcp.store.etcd.watch import WatchBatch
    from kcp.store.transaction import Group
    from tests.store.etcd.etcd_server import EtcdServer

T = TypeVar("T")

IN_ROOT = Scope(CONFIGMAPS, "root")


@contextlib.asynccontextmanager
async def server(
    etcd: EtcdServer | str, path: Path, *, prefix: str = "/kcp", options: StoreOptions | None = None
) -> AsyncIterator[EtcdStore]:
    endpoint = etcd if isinstance(etcd, str) else etcd.endpoint
    async with await EtcdStore.open(path, EtcdOptions((endpoint,)), prefix=prefix, options=options) as store:
        yield store


@contextlib.asynccontextmanager
async def raw(etcd: EtcdServer) -> AsyncIterator[EtcdClient]:
    async with EtcdClient(EtcdOptions((etcd.endpoint,))) as client:
        yield client


# -- several servers ----------------------------------------------------------


async def test_servers_on_one_etcd_see_each_others_writes(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as a, server(own_etcd, tmp_path / "b") as b:
        with b.watch(IN_ROOT, b.revision) as watcher:
            revision = await create(a, "x", "from a")
            assert await b.sync() >= revision
            assert text_of(b.get(key("x"))) == "from a"
            assert told(await take(watcher, 1)) == [("x", None, "from a", revision)]
        with pytest.raises(Conflict) as conflict:
            await create(b, "x", "from b")
        assert text_of(conflict.value.current) == "from a"
        await update(b, "x", "from b")
        await a.sync()
        assert a.get(key("x")) == b.get(key("x"))


async def test_servers_never_lose_each_others_updates(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as a, server(own_etcd, tmp_path / "b") as b:
        await create(a, "counter", "0")
        await b.sync()

        async def increment(store: EtcdStore) -> None:
            while True:
                record = store.get(key("counter"))
                assert record is not None
                after = value(str(int(text_of(record) or "") + 1))
                try:
                    await store.commit([Put(key("counter"), after, expect=record.revision)])
                except Conflict:
                    continue  # reads show by now what was in the way
                else:
                    return

        await asyncio.gather(*(increment(store) for store in (a, b) for _ in range(10)))
        await a.sync()
        assert text_of(a.get(key("counter"))) == "20"


async def test_prefixes_keep_installations_apart(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with (
        server(own_etcd, tmp_path / "a", prefix="/one") as one,
        server(own_etcd, tmp_path / "b", prefix="/one-more") as two,
    ):
        await create(one, "x")
        await two.sync()
        assert two.count(EVERYTHING) == 0


async def test_sync_does_not_wait_for_changes_that_are_not_ours(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as store, raw(own_etcd) as client:
        foreign = (await client.txn([], [make_put(b"/someone/else", b"x")])).header.revision
        assert await store.sync() >= foreign
        assert store.count(EVERYTHING) == 0


async def test_concurrent_syncs_share_requests(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as store:
        asked = 0
        original = store._client.revision

        async def counted() -> int:
            nonlocal asked
            asked += 1
            return await original()

        store._client.revision = counted  # type: ignore[method-assign]
        revisions = await asyncio.gather(*(store.sync() for _ in range(100)))
        assert min(revisions) >= store.revision
        assert asked <= 3  # one under way, one for all who came after it began, perhaps one by the follower


async def test_garbage_below_the_prefix_breaks_nothing(own_etcd: EtcdServer, tmp_path: Path) -> None:
    keys = EtcdKeys("/kcp")
    async with server(own_etcd, tmp_path / "a") as store, raw(own_etcd) as client:
        await create(store, "x", "good")
        await create(store, "y", "good")
        await client.txn([], [make_put(keys.encode(key("x")), b"garbage"), make_put(b"/kcp/objects/a/b", b"?")])
        await client.txn([], [make_put(b"/kcp/objects/\xff/r/_/c/n/x", b"?")])
        await store.sync()
        assert list(texts(store.range(IN_ROOT))) == ["root|default/y"]
    async with server(own_etcd, tmp_path / "fresh") as store:
        assert list(texts(store.range(IN_ROOT))) == ["root|default/y"]
        await update(store, "x", "mended")
        assert text_of(store.get(key("x"))) == "mended"


@pytest.mark.parametrize("bad", ["_/configmaps/_/root/default/", "_/configmaps/_//default/x", "_/cönf/_/root//x"])
async def test_a_name_that_cannot_be_does_not_take_good_ones_with_it(
    own_etcd: EtcdServer, tmp_path: Path, bad: str
) -> None:
    keys = EtcdKeys("/kcp")
    async with server(own_etcd, tmp_path / "a") as store, raw(own_etcd) as client:
        bad_key = keys.objects[0] + bad.encode()
        await client.txn([], [make_put(bad_key, value()), make_put(keys.encode(key("x")), value("good"))])
        await store.sync()
        assert texts(store.range(EVERYTHING)) == {"root|default/x": "good"}
    async with server(own_etcd, tmp_path / "fresh") as store:
        assert texts(store.range(EVERYTHING)) == {"root|default/x": "good"}


async def test_a_conflict_with_garbage_is_a_conflict(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as store, raw(own_etcd) as client:
        await client.txn([], [make_put(EtcdKeys("/kcp").encode(key("x")), b"?")])
        with pytest.raises(Conflict) as conflict:
            await create(store, "x")
        assert (conflict.value.key, conflict.value.current) == (key("x"), None)


async def test_a_commit_that_changed_nothing_shows_why(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as a, server(own_etcd, tmp_path / "b") as b:
        await create(a, "x")
        await b.sync()
        submit = b._writer.submit
        b._writer.submit = lambda run, size=0: submit(no_space)  # type: ignore[method-assign]
        deleted = await a.commit([Delete(key("x"))])
        committing = asyncio.create_task(b.commit([Delete(key("x"))]))
        await asyncio.wait([committing], timeout=0.2)
        assert not committing.done()
        assert b.get(key("x")) is not None
        b._writer.submit = submit  # type: ignore[method-assign]
        assert await committing >= deleted
        assert b.get(key("x")) is None


# -- the mirror ---------------------------------------------------------------


async def test_a_restarted_server_resumes_its_history(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as store:
        first = await create(store, "x", "1")
        second = await update(store, "x", "2")
    async with server(own_etcd, tmp_path / "other") as other:
        third = await update(other, "x", "3")
    async with server(own_etcd, tmp_path / "a") as store:
        with store.watch(IN_ROOT, first) as watcher:
            assert [event.revision for event in await take(watcher, 2)] == [second, third]
        assert texts(store.range(IN_ROOT, revision=first)) == {"root|default/x": "1"}


@pytest.mark.parametrize("state", ["new", "behind", "torn", "of another etcd", "in use at a power loss"])
async def test_a_mirror_is_made_equal_to_etcd(own_etcd: EtcdServer, tmp_path: Path, state: str) -> None:
    mirror = tmp_path / "mirror"
    if state != "new":
        async with server(own_etcd, mirror, prefix="/other" if state == "of another etcd" else "/kcp") as store:
            for number in range(30):
                await create(store, f"stale{number:02}", "stale")
            await create(store, "gone", resource=SECRETS)
            old = store.revision
    async with server(own_etcd, tmp_path / "writer", options=StoreOptions(compact_step=100)) as writer:
        await writer.commit([Delete(key("gone", resource=SECRETS)), Delete(key("stale00")), Delete(key("stale29"))])
        for number in range(5, 15):
            await update(writer, f"stale{number:02}", "fresh")
        await create(writer, "zz-new", "fresh")
        if state == "behind":
            await writer.compact(writer.revision)
        expected = [(record.key, record.value, record.revision) for record in writer.range(EVERYTHING).records()]
    if state == "torn":
        (mirror / "data.mdb").write_bytes((mirror / "data.mdb").read_bytes()[:9000])
    if state == "in use at a power loss":
        (mirror / "MIRROR").write_text("another boot")
        (mirror / "data.mdb").write_bytes(b"\xff" * 100_000)
    async with server(own_etcd, mirror) as store:
        found = [(record.key, record.value, record.revision) for record in store.range(EVERYTHING).records()]
        assert sorted(found) == sorted(expected)
        assert list(find_problems(store._engine)) == []
        if state == "behind":
            with pytest.raises(Compacted):
                store.watch(IN_ROOT, old)


async def test_a_mirror_larger_than_a_page_is_compared_page_by_page(
    own_etcd: EtcdServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcp.store.etcd.mirror._PAGE_OBJECTS", 3)
    async with server(own_etcd, tmp_path / "mirror") as store:
        for number in range(10):
            await create(store, f"n{number}", "old")
            await create(store, f"s{number}", "old", resource=SECRETS)
    async with server(own_etcd, tmp_path / "writer") as writer:
        for number in range(0, 10, 2):
            await writer.commit([Delete(key(f"n{number}")), Put(key(f"s{number}", resource=SECRETS), value("new"))])
        await writer.commit([Delete(key(f"n{number}")) for number in (7, 9)])
        await writer.compact(writer.revision)
        expected = texts(writer.range(EVERYTHING))
    async with server(own_etcd, tmp_path / "mirror") as store:
        assert texts(store.range(EVERYTHING)) == expected


async def test_objects_too_large_for_a_page_are_read_in_smaller_ones(
    own_etcd: EtcdServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(own_etcd, tmp_path / "writer") as writer:
        for number in range(20):
            await create(writer, f"n{number}", "x" * 10_000)
        expected = texts(writer.range(EVERYTHING))
    monkeypatch.setattr("kcp.store.etcd.http2._MAX_MESSAGE", 50_000)
    async with server(own_etcd, tmp_path / "mirror") as store:
        assert texts(store.range(EVERYTHING)) == expected


async def test_a_truth_is_never_mistaken_for_a_mirror(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with await EmbeddedStore.open(tmp_path / "truth") as store:
        await create(store, "precious")
    with pytest.raises(Damaged, match="embedded"):
        await EtcdStore.open(tmp_path / "truth", EtcdOptions((own_etcd.endpoint,)))
    async with await EmbeddedStore.open(tmp_path / "truth") as store:
        assert store.get(key("precious")) is not None
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "data.mdb").write_bytes(b"someone's data" * 1000)
    with pytest.raises(Damaged):
        await EtcdStore.open(tmp_path / "foreign", EtcdOptions((own_etcd.endpoint,)))
    assert (tmp_path / "foreign" / "data.mdb").exists()


async def test_two_servers_cannot_share_a_mirror(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as store:
        await create(store, "x")
        with pytest.raises(InUse):
            await EtcdStore.open(tmp_path / "a", EtcdOptions((own_etcd.endpoint,)))
        assert store.get(key("x")) is not None


async def test_a_delete_at_exactly_the_compacted_revision_is_not_missed(own_etcd: EtcdServer, tmp_path: Path) -> None:
    """etcd drops a tombstone with the revision it was made at, and still takes a watch from there."""
    async with server(own_etcd, tmp_path / "mirror") as store:
        await create(store, "gone")
    async with raw(own_etcd) as client:
        deleted = await client.txn([], [make_delete(EtcdKeys("/kcp").encode(key("gone")))])
        await client.compact(deleted.header.revision, physical=True)
    async with server(own_etcd, tmp_path / "mirror") as store:
        assert store.get(key("gone")) is None


# -- a network that fails -----------------------------------------------------


@contextlib.asynccontextmanager
async def cut_off_pair(etcd: EtcdServer, path: Path) -> AsyncIterator[tuple[TcpProxy, EtcdStore, EtcdStore]]:
    """Two servers, of which the second reaches etcd through a proxy."""
    async with (
        TcpProxy(etcd.ports[0]) as proxy,
        server(etcd, path / "a") as a,
        server(f"http://127.0.0.1:{proxy.port}", path / "b") as b,
    ):
        yield proxy, a, b


async def test_a_server_that_was_cut_off_resumes_without_gap_or_repeat(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with cut_off_pair(own_etcd, tmp_path) as (proxy, a, b):
        with b.watch(IN_ROOT, b.revision) as watcher:
            revisions = [await update(a, "x", "0")]
            await b.sync()
            for round_number in range(3):
                proxy.cut()
                revisions += [await update(a, "x", f"{round_number} {number}") for number in range(5)]
                assert text_of(b.get(key("x"))) is not None  # reads go on
                proxy.mend()
                await b.sync()
            assert [event.revision for event in await take(watcher, len(revisions))] == revisions


async def test_a_server_that_missed_history_tells_its_watchers(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with cut_off_pair(own_etcd, tmp_path) as (proxy, a, b):
        await create(a, "x", "old")
        await create(a, "gone")
        await b.sync()
        watcher = b.watch(IN_ROOT, b.revision)
        waiting = asyncio.create_task(watcher.next())
        proxy.cut()
        await update(a, "x", "new")
        await a.commit([Delete(key("gone"))])
        await a.compact(a.revision)
        proxy.mend()
        with pytest.raises(Compacted):
            await waiting
        await b.sync()
        assert texts(b.range(IN_ROOT)) == {"root|default/x": "new"}
        with b.watch(IN_ROOT, b.revision) as fresh:
            await update(a, "x", "newer")
            assert [text_of(event.new) for event in await take(fresh, 1)] == ["newer"]
        assert list(find_problems(b._engine)) == []


async def test_an_etcd_that_went_back_in_time_is_followed(own_etcd: EtcdServer, tmp_path: Path) -> None:
    """As after `etcdctl snapshot restore`: the mirror has seen revisions that never happened."""
    async with server(own_etcd, tmp_path / "a") as store:
        await create(store, "kept", "1")
        for number in range(20):
            await update(store, "lost", str(number))
        seen = store.revision
    async with raw(own_etcd) as client:
        keys = EtcdKeys("/kcp")
        record = await client.range(keys.encode(key("kept")))
    own_etcd.stop()
    own_etcd.erase()
    own_etcd.start()
    async with raw(own_etcd) as client:
        await client.txn([], [make_put(keys.encode(key("kept")), record.kvs[0].value)])
    async with server(own_etcd, tmp_path / "a") as store:
        assert list(texts(store.range(IN_ROOT))) == ["root|default/kept"]
        assert store.revision < seen
        revision = await update(store, "kept", "2")
        with store.watch(IN_ROOT, Revision(revision - 1)) as watcher:
            assert [text_of(event.new) for event in await take(watcher, 1)] == ["2"]
        assert list(find_problems(store._engine)) == []


async def test_an_etcd_that_was_replaced_under_a_running_server(own_etcd: EtcdServer, tmp_path: Path) -> None:
    keys = EtcdKeys("/kcp")
    async with server(own_etcd, tmp_path / "a") as store:
        await create(store, "lost")
        watcher = store.watch(IN_ROOT, store.revision)
        await asyncio.to_thread(own_etcd.stop)
        own_etcd.erase()
        own_etcd.arguments += ("--initial-cluster-token=another",)
        # From the start with more revisions than the mirror has seen, so that only its name tells the one from the
        # other. The server has no way to it until then.
        ports, own_etcd.ports = own_etcd.ports, []
        own_etcd.start()
        async with raw(own_etcd) as client:
            for number in range(30):
                await client.txn([], [make_put(keys.encode(key("found")), value(str(number)))])
        async with TcpProxy(own_etcd.ports[0], port=ports[0]):
            with pytest.raises(Compacted):
                await watcher.next(10)
            assert texts(store.range(IN_ROOT)) == {"root|default/found": "29"}
            await update(store, "found", "30")
            assert list(find_problems(store._engine)) == []


async def test_what_could_not_be_mirrored_is_mirrored_later_in_order(own_etcd: EtcdServer, tmp_path: Path) -> None:
    """The mirror's disk is full for a moment: later changes must not overtake the ones that failed."""
    async with server(own_etcd, tmp_path / "a") as a, server(own_etcd, tmp_path / "b") as b:
        start = b.revision
        submit = b._writer.submit
        failures = 3

        def submit_or_fail(run: Callable[[Group], T], size: int = 0) -> asyncio.Future[T]:
            nonlocal failures
            failures -= 1
            return submit(no_space if failures >= 0 else run)

        b._writer.submit = submit_or_fail  # type: ignore[method-assign]
        with b.watch(IN_ROOT, start) as watcher:
            revisions = [await update(a, "x", str(number)) for number in range(20)]
            await b.sync()
            assert failures < 0
            assert [event.revision for event in await take(watcher, 20)] == revisions
        assert list(find_problems(b._engine)) == []


def no_space(group: Group) -> NoReturn:
    raise NoSpace("the test says so")


async def test_what_could_not_be_mirrored_is_tried_again_at_once(own_etcd: EtcdServer, tmp_path: Path) -> None:
    """Nothing else happens in etcd, and nobody asks."""
    async with server(own_etcd, tmp_path / "a") as a, server(own_etcd, tmp_path / "b") as b:
        submit = b._writer.submit

        def fail_once(run: Callable[[Group], T], size: int = 0) -> asyncio.Future[T]:
            b._writer.submit = submit  # type: ignore[method-assign]
            return submit(no_space)

        b._writer.submit = fail_once  # type: ignore[method-assign]
        with b.watch(IN_ROOT, b.revision) as watcher:
            await create(a, "x", "1")
            async with asyncio.timeout(5):
                assert [text_of(event.new) for event in await take(watcher, 1)] == ["1"]


async def test_a_server_survives_what_nobody_foresaw(
    own_etcd: EtcdServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with server(own_etcd, tmp_path / "a") as a, server(own_etcd, tmp_path / "b") as b:
        await create(a, "x", "1")
        await b.sync()
        apply, watcher = b._apply, b.watch(IN_ROOT, b.revision)

        def fail_once(batch: WatchBatch, follows: Revision, group: Group) -> None:
            b._apply = apply  # type: ignore[method-assign]
            raise struct.error("the test says so")

        b._apply = fail_once  # type: ignore[method-assign]
        await update(a, "x", "2")
        with pytest.raises(Compacted):  # because all is read anew
            await watcher.next(10)
        assert text_of(b.get(key("x"))) == "2"
        assert "reading everything anew" in caplog.text
        await update(a, "x", "3")
        await b.sync()
        assert text_of(b.get(key("x"))) == "3"


async def test_syncs_fail_together_while_etcd_is_away(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with TcpProxy(own_etcd.ports[0]) as proxy:
        options = EtcdOptions((f"http://127.0.0.1:{proxy.port}",), request_timeout=0.5)
        async with await EtcdStore.open(tmp_path / "a", options) as store:
            proxy.cut()
            started = time.monotonic()
            first = [asyncio.create_task(store.sync()) for _ in range(5)]
            await asyncio.wait(first, timeout=0.1)
            outcomes = await asyncio.gather(*first, *(store.sync() for _ in range(50)), return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {Unavailable}
            assert time.monotonic() - started < 1.0
            proxy.mend()
            await store.sync()


async def test_a_nudge_of_unknown_outcome_is_tried_again(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async with server(own_etcd, tmp_path / "a") as store, raw(own_etcd) as client:
        txn = store._client.txn

        async def fail_once(*args: object) -> NoReturn:
            store._client.txn = txn  # type: ignore[method-assign]
            raise OutcomeUnknown("the test says so")

        store._client.txn = fail_once  # type: ignore[assignment,method-assign]
        foreign = (await client.txn([], [make_put(b"/someone/else", b"x")])).header.revision
        assert await store.sync() >= foreign
        assert store._client.txn == txn


async def test_closing_ends_what_waits(own_etcd: EtcdServer, tmp_path: Path) -> None:
    store = await EtcdStore.open(tmp_path / "a", EtcdOptions((own_etcd.endpoint,)))
    waiting = asyncio.create_task(store.watch(IN_ROOT, store.revision).next())
    await asyncio.sleep(0)
    await store.aclose()
    with pytest.raises(Closed):
        await waiting
    with pytest.raises(Closed):
        await store.sync()
    await store.aclose()


async def test_a_failed_open_leaves_nothing_behind(own_etcd: EtcdServer, tmp_path: Path) -> None:
    keys = EtcdKeys("/kcp")
    async with raw(own_etcd) as client:
        await client.txn([], [make_put(keys.restoring, b"backup.kcp")])
        with pytest.raises(Damaged, match="restore"):
            await EtcdStore.open(tmp_path / "a", EtcdOptions((own_etcd.endpoint,)))
        await client.txn([], [make_delete(keys.restoring)])
    async with server(own_etcd, tmp_path / "a") as store:
        await store.commit([Put(key("x"), value(), expect=ABSENT)])
