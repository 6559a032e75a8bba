"""Each call against a real etcd: what it returns, and how it fails."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kcp.store.errors import Closed, Compacted, FutureRevision, InvalidCommit, NoSpace, TooLarge, Unavailable
from kcp.store.etcd.client import EtcdClient, make_delete, make_get, make_put, make_revision_compare
from kcp.store.etcd.messages import StatusResponse
from kcp.store.etcd.options import EtcdOptions
from tests.store.etcd.calls import end_of, put
from tests.store.etcd.etcd_server import EtcdServer, find_etcd, free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def client(etcd: EtcdServer) -> AsyncIterator[EtcdClient]:
    async with EtcdClient(EtcdOptions((etcd.endpoint,))) as client:
        yield client


async def fill(client: EtcdClient) -> None:
    for number in range(20):
        await put(client, b"%d" % number, value=bytes(1 << 20))


async def test_range_returns_keys_in_order_with_their_revisions(client: EtcdClient, etcd_prefix: bytes) -> None:
    second = await put(client, etcd_prefix + b"b", value=b"2")
    first = await put(client, etcd_prefix + b"a", value=b"1")

    response = await client.range(etcd_prefix, end_of(etcd_prefix))

    assert [(kv.key, kv.value, kv.mod_revision) for kv in response.kvs] == [
        (etcd_prefix + b"a", b"1", first),
        (etcd_prefix + b"b", b"2", second),
    ]
    assert response.header.revision == first
    assert not response.more


async def test_range_of_one_key(client: EtcdClient, etcd_prefix: bytes) -> None:
    await put(client, etcd_prefix + b"a", value=b"1")
    assert [kv.value for kv in (await client.range(etcd_prefix + b"a")).kvs] == [b"1"]
    assert list((await client.range(etcd_prefix + b"b")).kvs) == []


async def test_range_with_a_limit_says_that_there_is_more(client: EtcdClient, etcd_prefix: bytes) -> None:
    for name in (b"a", b"b", b"c"):
        await put(client, etcd_prefix + name)
    response = await client.range(etcd_prefix, end_of(etcd_prefix), limit=2)
    assert [kv.key[-1:] for kv in response.kvs] == [b"a", b"b"]
    assert (response.more, response.count) == (True, 3)


async def test_range_at_an_older_revision(client: EtcdClient, etcd_prefix: bytes) -> None:
    older = await put(client, etcd_prefix + b"a", value=b"old")
    await put(client, etcd_prefix + b"a", value=b"new")
    response = await client.range(etcd_prefix + b"a", revision=older)
    assert [kv.value for kv in response.kvs] == [b"old"]


async def test_range_without_values_and_without_keys(client: EtcdClient, etcd_prefix: bytes) -> None:
    await put(client, etcd_prefix + b"a", value=b"1")
    keys = await client.range(etcd_prefix, end_of(etcd_prefix), keys_only=True)
    assert [(kv.key, kv.value) for kv in keys.kvs] == [(etcd_prefix + b"a", b"")]
    count = await client.range(etcd_prefix, end_of(etcd_prefix), count_only=True)
    assert (count.count, len(count.kvs)) == (1, 0)


async def test_serializable_range_reads_what_the_member_has(client: EtcdClient, etcd_prefix: bytes) -> None:
    await put(client, etcd_prefix + b"a", value=b"1")
    response = await client.range(etcd_prefix + b"a", serializable=True)
    assert [kv.value for kv in response.kvs] == [b"1"]


async def test_a_range_of_tens_of_mebibytes_is_received(client: EtcdClient, etcd_prefix: bytes) -> None:
    value = bytes(1 << 20)
    for number in range(20):
        await put(client, etcd_prefix + b"%d" % number, value=value)
    response = await client.range(etcd_prefix, end_of(etcd_prefix))
    assert [len(kv.value) for kv in response.kvs] == [len(value)] * 20


async def test_txn_does_one_branch_or_the_other(client: EtcdClient, etcd_prefix: bytes) -> None:
    key = etcd_prefix + b"a"
    create = [make_revision_compare(key, 0)], [make_put(key, b"1")], [make_get(key)]

    created = await client.txn(*create)
    refused = await client.txn(*create)

    assert (created.succeeded, refused.succeeded) == (True, False)
    found = refused.responses[0].response_range.kvs[0]
    assert (found.value, found.mod_revision) == (b"1", created.header.revision)
    assert refused.header.revision == created.header.revision


async def test_txn_changes_several_keys_at_one_revision(client: EtcdClient, etcd_prefix: bytes) -> None:
    await put(client, etcd_prefix + b"old")
    response = await client.txn(
        [], [make_put(etcd_prefix + b"a", b""), make_put(etcd_prefix + b"b", b""), make_delete(etcd_prefix + b"old")]
    )
    kvs = (await client.range(etcd_prefix, end_of(etcd_prefix))).kvs
    assert [(kv.key, kv.mod_revision) for kv in kvs] == [
        (etcd_prefix + b"a", response.header.revision),
        (etcd_prefix + b"b", response.header.revision),
    ]
    assert response.responses[2].response_delete_range.deleted == 1


async def test_txn_with_a_key_twice_is_refused(client: EtcdClient, etcd_prefix: bytes) -> None:
    with pytest.raises(InvalidCommit, match="duplicate key"):
        await client.txn([], [make_put(etcd_prefix, b"1"), make_put(etcd_prefix, b"2")])


@pytest.mark.parametrize("size", [2 << 20, 5 << 20], ids=["refused-by-etcd", "refused-by-its-grpc"])
async def test_a_value_that_is_too_large_is_refused(client: EtcdClient, etcd_prefix: bytes, size: int) -> None:
    with pytest.raises(TooLarge, match="--max-request-bytes"):
        await put(client, etcd_prefix, value=bytes(size))
    assert not (await client.range(etcd_prefix)).kvs


async def test_a_txn_of_too_many_operations_is_refused(client: EtcdClient, etcd_prefix: bytes) -> None:
    with pytest.raises(TooLarge, match="--max-txn-ops"):
        await client.txn([], [make_put(etcd_prefix + b"%d" % number, b"") for number in range(129)])


async def test_an_empty_key_is_refused(client: EtcdClient) -> None:
    with pytest.raises(InvalidCommit, match="key is not provided"):
        await client.range(b"")


async def test_a_revision_that_has_not_happened_is_refused(client: EtcdClient, etcd_prefix: bytes) -> None:
    current = await put(client, etcd_prefix)
    with pytest.raises(FutureRevision) as caught:
        await client.range(etcd_prefix, revision=current + 100)
    assert (caught.value.revision, caught.value.current) == (current + 100, current)
    with pytest.raises(FutureRevision):
        await client.compact(current + 100)


async def test_revision_is_that_of_the_newest_write(client: EtcdClient, etcd_prefix: bytes) -> None:
    assert await put(client, etcd_prefix) == await client.revision()


@pytest.mark.parametrize("physical", [False, True], ids=["logical", "physical"])
async def test_compacted_history_cannot_be_read(own_etcd: EtcdServer, physical: bool) -> None:
    async with EtcdClient(EtcdOptions((own_etcd.endpoint,))) as client:
        older = await put(client, b"a")
        newer = await put(client, b"a")
        await client.compact(newer, physical=physical)

        with pytest.raises(Compacted) as caught:
            await client.range(b"a", revision=older)
        assert (caught.value.revision, caught.value.compacted) == (older, newer)
        with pytest.raises(Compacted):
            await client.compact(older)
        assert (await client.range(b"a", revision=newer)).kvs[0].mod_revision == newer


async def test_a_full_database_refuses_writes_and_still_reads(etcd_binary: str, tmp_path: Path) -> None:
    with EtcdServer(tmp_path, arguments=("--quota-backend-bytes=4194304",)) as server:
        async with EtcdClient(EtcdOptions((server.endpoint,))) as client:
            await put(client, b"first", value=b"1")
            with pytest.raises(NoSpace, match="--quota-backend-bytes"):
                await fill(client)
            assert (await client.range(b"first")).kvs[0].value == b"1"


async def test_status_is_told_for_each_endpoint(etcd: EtcdServer) -> None:
    (port,) = free_ports(1)
    dead = f"http://127.0.0.1:{port}"
    async with EtcdClient(EtcdOptions((etcd.endpoint, dead))) as client:
        status = await client.status()
    assert set(status) == {etcd.endpoint, dead}
    alive = status[etcd.endpoint]
    assert isinstance(alive, StatusResponse)
    assert alive.version == find_etcd().version
    assert alive.leader == alive.header.member_id
    assert isinstance(status[dead], Unavailable)
    assert dead in str(status[dead])


async def test_members_lists_the_cluster(client: EtcdClient, etcd: EtcdServer) -> None:
    (member,) = await client.members()
    assert (member.name, list(member.clientURLs)) == (etcd.name, [etcd.endpoint])


async def test_a_closed_client_says_so(etcd: EtcdServer) -> None:
    client = EtcdClient(EtcdOptions((etcd.endpoint,)))
    await client.revision()
    await client.aclose()
    await client.aclose()
    with pytest.raises(Closed):
        await client.revision()
    with pytest.raises(Closed):
        async with client.watch(b"a", start_revision=1):
            pass


def test_importing_the_store_does_not_import_protobuf() -> None:
    script = "import sys, kcp.store, kcp.store.etcd.options; sys.exit('google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0
