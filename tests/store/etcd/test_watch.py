"""Watches against a real etcd: order, whole revisions, compaction, endings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kcp.store.errors import Closed, Compacted, Unavailable
from kcp.store.etcd.client import EtcdClient, make_delete
from kcp.store.etcd.messages import EventType
from kcp.store.etcd.options import EtcdOptions
from tests.store.etcd.calls import end_of, put, wait_for_other_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kcp.store.etcd.messages import Event
    from kcp.store.etcd.watch import EtcdWatch, WatchBatch
    from tests.store.etcd.etcd_server import EtcdServer


@pytest.fixture
async def client(etcd: EtcdServer) -> AsyncIterator[EtcdClient]:
    async with EtcdClient(EtcdOptions((etcd.endpoint,))) as client:
        yield client


async def read_until(watch: EtcdWatch, revision: int) -> list[WatchBatch]:
    """Batches up to the one that reaches `revision`."""
    batches = []
    async for batch in watch:
        batches.append(batch)
        if batch.revision >= revision:
            break
    return batches


def flatten(batches: list[WatchBatch]) -> list[Event]:
    return [event for batch in batches for event in batch.events]


async def test_changes_arrive_in_order_from_the_start_revision_on(client: EtcdClient, etcd_prefix: bytes) -> None:
    await put(client, etcd_prefix + b"before")
    first = await put(client, etcd_prefix + b"a", value=b"1")
    async with client.watch(etcd_prefix, end_of(etcd_prefix), start_revision=first) as watch:
        await put(client, etcd_prefix + b"a", value=b"2")
        last = (await client.txn([], [make_delete(etcd_prefix + b"a")])).header.revision
        events = flatten(await read_until(watch, last))
    assert [(event.type, event.kv.value, event.kv.mod_revision) for event in events] == [
        (EventType.PUT, b"1", first),
        (EventType.PUT, b"2", first + 1),
        (EventType.DELETE, b"", last),
    ]


async def test_other_keys_are_not_seen(client: EtcdClient, etcd_prefix: bytes) -> None:
    async with client.watch(etcd_prefix, end_of(etcd_prefix), start_revision=await client.revision() + 1) as watch:
        await put(client, b"/elsewhere" + etcd_prefix)
        last = await put(client, etcd_prefix)
        events = flatten(await read_until(watch, last))
    assert [event.kv.key for event in events] == [etcd_prefix]


async def test_keys_of_one_txn_share_a_revision_and_a_batch(client: EtcdClient, etcd_prefix: bytes) -> None:
    keys = [etcd_prefix + b"%d" % number for number in range(5)]
    async with client.watch(etcd_prefix, end_of(etcd_prefix), start_revision=await client.revision() + 1) as watch:
        revision = await put(client, *keys)
        (batch,) = await read_until(watch, revision)
    assert batch.revision == revision
    assert [(event.kv.key, event.kv.mod_revision) for event in batch.events] == [(key, revision) for key in keys]


async def test_previous_values_are_sent_if_asked_for(client: EtcdClient, etcd_prefix: bytes) -> None:
    await put(client, etcd_prefix, value=b"old")
    start = await client.revision() + 1
    async with client.watch(etcd_prefix, start_revision=start, prev_kv=True) as watch:
        last = await put(client, etcd_prefix, value=b"new")
        (event,) = flatten(await read_until(watch, last))
    assert (event.prev_kv.value, event.kv.value) == (b"old", b"new")


async def test_large_history_arrives_in_pieces_of_whole_revisions(client: EtcdClient, etcd_prefix: bytes) -> None:
    """etcd sends this history as one answer of 12 MiB, in fragments of 2 MiB that end in the middle of a txn."""
    keys = [etcd_prefix + b"%d" % number for number in range(3)]
    start = await client.revision() + 1
    revisions = [await put(client, *keys, value=bytes(400 << 10)) for _ in range(10)]

    async with client.watch(etcd_prefix, end_of(etcd_prefix), start_revision=start) as watch:
        batches = await read_until(watch, revisions[-1])

    assert len(batches) > 1
    assert [event.kv.mod_revision for event in flatten(batches)] == [rev for rev in revisions for _ in keys]
    assert [event.kv.key for event in flatten(batches)] == keys * 10
    for batch in batches:
        assert batch.revision == batch.events[-1].kv.mod_revision
        assert len(batch.events) % len(keys) == 0


async def test_a_revision_larger_than_a_fragment_arrives_whole(client: EtcdClient, etcd_prefix: bytes) -> None:
    """The previous values make one txn's events 2.6 MiB, more than etcd puts into one fragment."""
    keys = [etcd_prefix + b"%d" % number for number in range(3)]
    await put(client, *keys, value=bytes(440 << 10))
    start = await put(client, *keys, value=bytes(440 << 10))
    async with client.watch(etcd_prefix, end_of(etcd_prefix), start_revision=start, prev_kv=True) as watch:
        (batch,) = await read_until(watch, start)
    assert [len(event.prev_kv.value) for event in batch.events] == [440 << 10] * 3


async def test_a_watch_that_nobody_reads_holds_up_no_request(client: EtcdClient, etcd_prefix: bytes) -> None:
    start = await client.revision() + 1
    async with client.watch(etcd_prefix, end_of(etcd_prefix), start_revision=start) as watch:
        revisions = [await put(client, etcd_prefix, value=bytes(1 << 20)) for _ in range(30)]
        assert await client.revision() == revisions[-1]
        events = flatten(await read_until(watch, revisions[-1]))
    assert [event.kv.mod_revision for event in events] == revisions


async def test_progress_is_told_without_events(client: EtcdClient, etcd_prefix: bytes) -> None:
    start = await client.revision() + 1
    async with client.watch(etcd_prefix, start_revision=start) as watch:
        elsewhere = await put(client, b"/elsewhere" + etcd_prefix)
        await watch.request_progress()
        (batch,) = await read_until(watch, elsewhere)
    assert (list(batch.events), batch.revision >= elsewhere) == ([], True)


async def test_a_watch_from_compacted_history_raises(own_etcd: EtcdServer) -> None:
    async with EtcdClient(EtcdOptions((own_etcd.endpoint,))) as client:
        older = await put(client, b"a")
        await put(client, b"a")
        newest = await put(client, b"a")
        await client.compact(newest)
        async with client.watch(b"a", start_revision=older) as watch:
            with pytest.raises(Compacted) as caught:
                await anext(watch)
        assert (caught.value.revision, caught.value.compacted) == (older, newest)
        async with client.watch(b"a", start_revision=newest + 1) as watch:
            last = await put(client, b"a")
            assert [event.kv.mod_revision for event in flatten(await read_until(watch, last))] == [last]


async def test_a_watch_ends_with_its_server_and_can_be_resumed(own_etcd: EtcdServer) -> None:
    async with EtcdClient(EtcdOptions((own_etcd.endpoint,))) as client:
        first = await put(client, b"a")
        async with client.watch(b"a", start_revision=first) as watch:
            seen = await read_until(watch, first)
            own_etcd.kill()
            with pytest.raises(Unavailable, match=own_etcd.endpoint):
                await anext(watch)
        own_etcd.start()
        missed = await put(client, b"a")
        async with client.watch(b"a", start_revision=seen[-1].revision + 1) as watch:
            assert [event.kv.mod_revision for event in flatten(await read_until(watch, missed))] == [missed]


async def test_a_silent_peer_ends_the_watch(own_etcd: EtcdServer) -> None:
    """A frozen server neither answers nor closes the connection, as after a power cut; only pings can tell."""
    options = EtcdOptions((own_etcd.endpoint,), keepalive=5, keepalive_timeout=1)
    async with EtcdClient(options) as client, client.watch(b"a", start_revision=1) as watch:
        own_etcd.pause()
        async with asyncio.timeout(15):
            with pytest.raises(Unavailable):
                await anext(watch)


async def test_cancelling_a_watch_leaves_no_task(client: EtcdClient, etcd_prefix: bytes) -> None:
    opened = asyncio.Event()

    async def watch_forever() -> None:
        async with client.watch(etcd_prefix, start_revision=0) as watch:
            opened.set()
            await anext(watch)

    task = asyncio.create_task(watch_forever())
    await opened.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_for_other_tasks()


async def test_closing_the_client_ends_a_watch(client: EtcdClient, etcd_prefix: bytes) -> None:
    async with client.watch(etcd_prefix, start_revision=0) as watch:
        reading = asyncio.ensure_future(anext(watch))
        await client.revision()
        await client.aclose()
        with pytest.raises(Closed):
            await reading


async def test_a_watch_must_be_entered(client: EtcdClient) -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await anext(client.watch(b"a", start_revision=0))
