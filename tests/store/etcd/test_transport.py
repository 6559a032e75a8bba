"""Members that die, hang, lose their leader or were never there; cancellation, TLS and log-in."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kcp.store.errors import Closed, OutcomeUnknown, Unavailable
from kcp.store.etcd.client import EtcdClient, make_put, make_revision_compare
from kcp.store.etcd.options import EtcdOptions
from tests.store.etcd.calls import end_of, put, wait_for_other_tasks
from tests.store.etcd.etcd_server import EtcdServer, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path
    from typing import Any

    from tests.store.etcd.certificates import TlsFiles
    from tests.store.etcd.etcd_server import EtcdCluster


@pytest.fixture
def dead_endpoint() -> str:
    """Nobody listens there."""
    return f"http://127.0.0.1:{free_ports(1)[0]}"


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    """Connections are accepted there, and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


CALLS = pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda client: client.range(b"a"), id="range"),
        pytest.param(lambda client: put(client, b"a"), id="txn"),
        pytest.param(lambda client: client.compact(1), id="compact"),
        pytest.param(lambda client: client.members(), id="members"),
        pytest.param(lambda client: client.watch(b"a", start_revision=1).__aenter__(), id="watch"),
    ],
)


@CALLS
async def test_nothing_listening_is_unavailable_within_the_timeout(
    call: Callable[[EtcdClient], Coroutine[Any, Any, object]], dead_endpoint: str, silent_endpoint: str
) -> None:
    options = EtcdOptions((dead_endpoint, silent_endpoint), request_timeout=1, connect_timeout=0.2)
    async with EtcdClient(options) as client:
        started = time.monotonic()
        with pytest.raises(Unavailable, match="within 1 s") as caught:
            await call(client)
        assert time.monotonic() - started < 2
    assert dead_endpoint in str(caught.value)
    assert silent_endpoint in str(caught.value)


async def test_the_reason_for_no_connection_is_told(dead_endpoint: str) -> None:
    async with EtcdClient(EtcdOptions((dead_endpoint,), request_timeout=0.5)) as client:
        with pytest.raises(Unavailable, match="Connection refused"):
            await client.revision()


@pytest.mark.parametrize("first", ["dead_endpoint", "silent_endpoint"])
async def test_a_wrong_endpoint_is_passed_over(
    first: str, request: pytest.FixtureRequest, etcd: EtcdServer, etcd_prefix: bytes
) -> None:
    wrong = request.getfixturevalue(first)
    options = EtcdOptions((wrong, etcd.endpoint), connect_timeout=0.2)
    async with EtcdClient(options) as client:
        revision = await put(client, etcd_prefix)
        async with client.watch(etcd_prefix, start_revision=revision) as watch:
            assert (await anext(watch)).revision == revision


async def test_a_request_waits_for_a_server_that_restarts(own_etcd: EtcdServer) -> None:
    async with EtcdClient(EtcdOptions((own_etcd.endpoint,))) as client:
        await put(client, b"a", value=b"1")
        await asyncio.to_thread(own_etcd.kill)
        writing = asyncio.create_task(put(client, b"b", value=b"2"))
        reading = asyncio.create_task(client.range(b"a"))
        own_etcd.launch()
        await writing
        assert (await reading).kvs[0].value == b"1"
        assert (await client.range(b"b")).kvs[0].value == b"2"


async def test_a_server_that_stops_answering(own_etcd: EtcdServer) -> None:
    async with EtcdClient(EtcdOptions((own_etcd.endpoint,), request_timeout=1)) as client:
        await put(client, b"a")
        own_etcd.pause()
        with pytest.raises(OutcomeUnknown, match=own_etcd.endpoint):
            await put(client, b"a")
        with pytest.raises(Unavailable, match=own_etcd.endpoint):
            await client.range(b"a")
        own_etcd.resume()
        await put(client, b"a")


@pytest.mark.parametrize("victim", ["leader", "follower"])
async def test_no_write_is_lost_or_repeated_when_a_member_dies(etcd_cluster: EtcdCluster, victim: str) -> None:
    leader = etcd_cluster.find_leader()
    dying = leader if victim == "leader" else next(each for each in etcd_cluster.members if each is not leader)
    endpoints = sorted(etcd_cluster.endpoints, key=lambda endpoint: endpoint != dying.endpoint)
    acknowledged: set[bytes] = set()
    unknown: set[bytes] = set()

    async def write_new_keys(client: EtcdClient, worker: int) -> None:
        for number in range(100):
            key = b"/k/%d/%d" % (worker, number)
            try:
                response = await client.txn([make_revision_compare(key, 0)], [make_put(key, b"")])
            except OutcomeUnknown:
                unknown.add(key)
                continue
            assert response.succeeded, f"{key!r} was written twice"
            acknowledged.add(key)
            if worker == 0 and number == 20:
                dying.kill()

    async with EtcdClient(EtcdOptions(tuple(endpoints))) as client:
        async with asyncio.TaskGroup() as group:
            for worker in range(8):
                group.create_task(write_new_keys(client, worker))
        found = {kv.key for kv in (await client.range(b"/k/", end_of(b"/k/"), keys_only=True)).kvs}
    assert acknowledged <= found <= acknowledged | unknown
    assert len(acknowledged) >= 700


async def test_reads_go_on_while_the_leader_dies(etcd_cluster: EtcdCluster) -> None:
    dying = etcd_cluster.find_leader()
    endpoints = sorted(etcd_cluster.endpoints, key=lambda endpoint: endpoint != dying.endpoint)
    async with EtcdClient(EtcdOptions(tuple(endpoints))) as client:
        revision = await put(client, b"a")
        reads = [asyncio.create_task(client.revision()) for _ in range(50)]
        dying.kill()
        assert await asyncio.gather(*reads) == [revision] * 50
        assert await client.revision() == revision


async def test_a_read_at_a_member_that_hangs_is_asked_elsewhere(etcd_cluster: EtcdCluster) -> None:
    leader = etcd_cluster.find_leader()
    hanging = next(each for each in etcd_cluster.members if each is not leader)
    options = EtcdOptions((hanging.endpoint, leader.endpoint), request_timeout=3)
    async with EtcdClient(options) as client:
        revision = await put(client, b"a")
        hanging.pause()
        assert await client.revision() == revision


async def test_a_watch_moves_on_when_its_member_dies(etcd_cluster: EtcdCluster) -> None:
    leader = etcd_cluster.find_leader()
    dying = next(each for each in etcd_cluster.members if each is not leader)
    others = [each.endpoint for each in etcd_cluster.members if each is not dying]
    async with EtcdClient(EtcdOptions((dying.endpoint, *others))) as client:
        first = await put(client, b"a")
        async with client.watch(b"a", start_revision=first) as watch:
            assert (await anext(watch)).revision == first
            dying.kill()
            with pytest.raises(Unavailable, match=dying.endpoint):
                await anext(watch)
        second = await put(client, b"a")
        async with client.watch(b"a", start_revision=first + 1) as watch:
            assert [event.kv.mod_revision for event in (await anext(watch)).events] == [second]


async def test_a_member_without_a_leader_ends_watches_and_refuses_writes(etcd_cluster: EtcdCluster) -> None:
    left, *dying = etcd_cluster.members
    options = EtcdOptions((left.endpoint,), request_timeout=2)
    async with EtcdClient(options) as client:
        await put(client, b"a", value=b"1")
        async with client.watch(b"a", start_revision=0) as watch:
            for member in dying:
                member.kill()
            with pytest.raises(Unavailable):
                await anext(watch)
        with pytest.raises(Unavailable, match="no leader"):
            await put(client, b"a")
        with pytest.raises(Unavailable, match="no leader"):
            await client.range(b"a")
        assert (await client.range(b"a", serializable=True)).kvs[0].value == b"1"
        assert len(await client.members()) == 3
        dying[0].launch()
        await asyncio.to_thread(dying[0].wait_ready)
        await put(client, b"a")


async def test_cancelling_a_request_leaves_no_task(own_etcd: EtcdServer) -> None:
    async with EtcdClient(EtcdOptions((own_etcd.endpoint,))) as client:
        await put(client, b"a")
        own_etcd.pause()
        tasks = [asyncio.create_task(put(client, b"a")), asyncio.create_task(client.range(b"a"))]
        await asyncio.wait(tasks, timeout=0.05)
        for task in tasks:
            task.cancel()
        done, _ = await asyncio.wait(tasks, timeout=1)
        assert [task.cancelled() for task in done] == [True, True]
        await wait_for_other_tasks()


async def test_cancelling_while_there_is_no_connection(silent_endpoint: str) -> None:
    async with EtcdClient(EtcdOptions((silent_endpoint,))) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.revision()
        await wait_for_other_tasks()


async def test_closing_the_client_ends_its_requests(own_etcd: EtcdServer) -> None:
    client = EtcdClient(EtcdOptions((own_etcd.endpoint,)))
    await put(client, b"a")
    own_etcd.pause()
    reading = asyncio.create_task(client.range(b"a"))
    writing = asyncio.create_task(put(client, b"a"))
    await asyncio.wait([reading, writing], timeout=0.05)
    await client.aclose()
    with pytest.raises(Closed):
        await reading
    with pytest.raises(OutcomeUnknown):
        await writing
    with pytest.raises(Closed):
        await put(client, b"a")


async def test_tls_with_client_certificates(etcd_binary: str, etcd_certificates: TlsFiles, tmp_path: Path) -> None:
    files = etcd_certificates
    with EtcdServer(tmp_path, tls=files) as server:
        good = EtcdOptions(
            (server.endpoint,),
            ca_file=files.ca,
            cert_file=files.client_cert,
            key_file=files.client_key,
            request_timeout=1,
        )
        async with EtcdClient(good) as client:
            assert await put(client, b"a") == await client.revision()
        async with EtcdClient(replace(good, cert_file="", key_file="")) as client:
            with pytest.raises(Unavailable):
                await client.revision()
        async with EtcdClient(replace(good, ca_file=files.client_cert)) as client:
            with pytest.raises(Unavailable, match=r"certificate|CERTIFICATE"):
                await client.revision()


async def test_logging_in_and_again_when_the_token_is_lost(own_etcd: EtcdServer) -> None:
    enable_authentication(own_etcd)
    options = EtcdOptions((own_etcd.endpoint,), username="root", password="secret")
    async with EtcdClient(options) as client:
        revisions = await asyncio.gather(*(put(client, b"%d" % number) for number in range(5)))
        async with client.watch(b"0", start_revision=min(revisions)) as watch:
            await anext(watch)
        # Off the loop, which has to notice that the connection is gone. Tokens are in the member's memory only.
        await asyncio.to_thread(own_etcd.kill)
        await asyncio.to_thread(own_etcd.start)
        async with client.watch(b"0", start_revision=min(revisions)) as watch:
            await anext(watch)
        await asyncio.to_thread(own_etcd.kill)
        await asyncio.to_thread(own_etcd.start)
        await put(client, b"a")


@pytest.mark.parametrize(
    ("username", "password", "reason"),
    [
        pytest.param("", "", "user name is empty", id="nobody"),
        pytest.param("root", "wrong", "authentication failed", id="wrong-password"),
        pytest.param("guest", "guest", "permission denied", id="no-permission"),
    ],
)
async def test_without_permission_it_is_unavailable_with_the_reason(
    own_etcd: EtcdServer, username: str, password: str, reason: str
) -> None:
    enable_authentication(own_etcd)
    async with EtcdClient(EtcdOptions((own_etcd.endpoint,), username=username, password=password)) as client:
        with pytest.raises(Unavailable, match=reason):
            await put(client, b"a")
        with pytest.raises(Unavailable, match=f"{reason}|permission denied"):
            async with client.watch(b"a", start_revision=1):
                pass


async def test_a_login_that_nobody_asked_for_is_refused(etcd: EtcdServer) -> None:
    async with EtcdClient(EtcdOptions((etcd.endpoint,), username="root", password="secret")) as client:
        with pytest.raises(Unavailable, match="authentication is not enabled"):
            await client.revision()


def enable_authentication(server: EtcdServer) -> None:
    """A root with the password "secret", and a guest who may do nothing; through etcd's own JSON gateway."""
    for path, body in (
        ("auth/user/add", {"name": "root", "password": "secret"}),
        ("auth/user/add", {"name": "guest", "password": "guest"}),
        ("auth/role/add", {"name": "root"}),
        ("auth/user/grant", {"user": "root", "role": "root"}),
        ("auth/enable", {}),
    ):
        request = urllib.request.Request(f"{server.endpoint}/v3/{path}", json.dumps(body).encode())
        urllib.request.urlopen(request, timeout=10).close()
