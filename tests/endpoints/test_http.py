"""Connections as clients make them: real sockets, with and without TLS."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth import x509
from kcp.endpoints.http import DRAINING, peer_certificate
from kcp.endpoints.http_options import HTTPOptions
from kcp.endpoints.http_server import HTTPServer, listen
from kcp.meta.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from kcp.endpoints.http import Application

NOW = SystemClock().now()
GET = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


class Client:
    """One connection, spoken byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, server: HTTPServer, tls: ssl.SSLContext | None = None, **limits: int) -> Client:
        port = server._listeners[0].getsockname()[1]
        name = "localhost" if tls else None
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name, **limits))

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        self.writer.write(request)
        return await self.answer(has_body=not request.startswith(b"HEAD"))

    async def answer(self, *, has_body: bool = True) -> tuple[int, dict[str, str], bytes]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await self.reader.readline(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        elif has_body:
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(lines[0].split()[1]), headers, body

    async def rest(self) -> bytes:
        """What comes until the server closes."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class World:
    """A server, its clients, and what its application has seen."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.arrived = asyncio.Event()
        self.go_on = asyncio.Event()
        self.failures: list[BaseException] = []

    async def app(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        self.scopes.append(scope)
        self.arrived.set()
        path = scope["path"]
        handle: Callable[[Any, Any], Any] = getattr(self, f"serve_{path.strip('/')}", self.serve_hello)
        await handle(receive, send)

    async def respond(self, send: Any, body: bytes = b"", status: int = 200, **headers: str) -> None:  # noqa: ANN401
        pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})

    async def serve_hello(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await self.respond(send, b"hello", content_length="5")

    async def serve_empty(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await self.respond(send, status=204)

    async def serve_echo(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.bodies.append(body)
        await self.respond(send, body)

    async def serve_wait(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await self.go_on.wait()
        await self.respond(send, b"done", content_length="4")

    async def serve_last(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await self.respond(send, b"bye", content_length="3", connection="close")

    async def serve_stream(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b"one", b"", b"two"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def serve_watch(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.go_on.wait()
        await send({"type": "http.response.body", "body": b"event"})

    async def serve_flood(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(1000):
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
        self.go_on.set()

    async def serve_big(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        body = bytes(range(250)) * 200_000
        await self.respond(send, body, content_length=str(len(body)))
        self.go_on.set()

    async def serve_split(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await self.respond(send, content_length="0", warning="a\r\nset-cookie: b")

    async def serve_short(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await self.respond(send, b"hello", content_length="9")

    async def serve_confused(self, receive: Any, send: Any) -> None:  # noqa: ANN401
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def world() -> World:
    return World()


@contextlib.asynccontextmanager
async def serving(app: Application, tls: ssl.SSLContext | None = None, **limits: float) -> AsyncIterator[HTTPServer]:
    options = HTTPOptions(**limits)  # type: ignore[arg-type]
    server = HTTPServer(app, [listen("127.0.0.1", 0, options)], tls=tls, options=options, clock=SystemClock())
    async with server:
        yield server


@pytest.fixture
async def server(world: World) -> AsyncIterator[HTTPServer]:
    async with serving(world.app, drain_timeout=0) as server:
        yield server


@pytest.fixture
async def client(server: HTTPServer) -> AsyncIterator[Client]:
    client = await Client.connect(server)
    yield client
    await client.close()


class Authority:
    """Certificates for both ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.key = x509.make_key()
        self.certificate = x509.make_ca("ca", self.key, 2, NOW)

    def context(self, side: int, name: str) -> ssl.SSLContext:
        key = x509.make_key()
        is_server = side == ssl.PROTOCOL_TLS_SERVER
        certificate = x509.sign_certificate(
            self.certificate,
            self.key,
            key,
            common_name=name,
            dns_names=["localhost"],
            days=1,
            now=NOW,
            server=is_server,
            client=not is_server,
        )
        file = self.directory / f"{name}.pem"
        file.write_bytes(key + certificate)
        context = ssl.SSLContext(side)
        context.load_cert_chain(file)
        context.load_verify_locations(cadata=self.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL if is_server else ssl.CERT_REQUIRED
        return context


async def test_many_requests_share_a_connection(world: World, server: HTTPServer, client: Client) -> None:
    for _ in range(3):
        code, headers, body = await client.ask(GET % b"a%20b?x=%31")
        assert (code, body) == (200, b"hello")
        assert set(headers) == {"date", "content-length"}
    scope = world.scopes[0]
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/a b", b"/a%20b", b"x=%31")
    assert (scope["method"], scope["http_version"], scope["headers"]) == ("GET", "1.1", [(b"host", b"x")])
    assert scope["state"][DRAINING] is server.draining
    assert peer_certificate(scope) is None
    assert (server.total_requests, server.connections, server.handshakes) == (3, 1, 0)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (GET % b"stream", (200, b"onetwo")),
        (GET % b"empty", (204, b"")),
        (b"HEAD / HTTP/1.1\r\n\r\n", (200, b"")),
        (b"POST /echo HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc", (200, b"abc")),
        (b"POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Late: 1\r\n\r\n", (200, b"abc")),
        (b"GET / HTTP/1.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n", (200, b"hello")),
    ],
    ids=["chunked", "no content", "HEAD", "POST", "chunked POST with a trailer", "upgrade is ignored"],
)
async def test_bodies_and_their_framing(
    world: World, client: Client, request_: bytes, expected: tuple[int, bytes]
) -> None:
    code, _, body = await client.ask(request_)
    assert (code, body) == expected
    assert (b"x-late", b"1") not in world.scopes[0]["headers"]


async def test_a_stream_begins_before_its_first_part(world: World, client: Client) -> None:
    client.writer.write(GET % b"watch")
    assert await client.reader.readline() == b"HTTP/1.1 200 OK\r\n"
    world.go_on.set()
    assert b"event" in await client.reader.readuntil(b"0\r\n\r\n")


async def test_a_client_that_waits_for_100_continue_gets_it(client: Client) -> None:
    client.writer.write(b"POST /echo HTTP/1.1\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n")
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert (await client.ask(b"abc"))[2] == b"abc"


async def test_requests_sent_together_are_answered_in_order(world: World, client: Client) -> None:
    client.writer.write(GET % b"wait" + GET % b"hello" + GET % b"stream")
    await world.arrived.wait()
    world.go_on.set()
    assert [(await client.answer())[2] for _ in range(3)] == [b"done", b"hello", b"onetwo"]


@pytest.mark.parametrize(
    "request_",
    [GET % b"last", b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"],
    ids=["asked by the application", "HTTP/1.0", "asked by the client"],
)
async def test_a_connection_closes_when_one_side_wants_it(client: Client, request_: bytes) -> None:
    _, headers, _ = await client.ask(request_)
    assert headers["connection"] == "close"
    assert await client.rest() == b""


@pytest.mark.parametrize("path", [b"split", b"confused"])
async def test_what_an_application_must_not_send_is_an_error_of_the_server(client: Client, path: bytes) -> None:
    code, headers, _ = await client.ask(GET % path)
    assert (code, "set-cookie" in headers) == (500, False)
    assert await client.rest() == b""


async def test_a_body_shorter_than_announced_ends_the_connection(client: Client) -> None:
    client.writer.write(GET % b"short")
    assert await client.rest() == b""


# What clients must not do


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\x16\x03\x01\x02\n\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"CONNECT x:443 HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
    ids=["TLS", "header", "CONNECT", "path", "two lengths"],
)
async def test_what_is_not_http_is_refused(client: Client, rubbish: bytes) -> None:
    client.writer.write(rubbish)
    answer = await client.rest()
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer.endswith(b"\r\n\r\n400 Bad Request")


async def test_a_head_that_does_not_end_is_refused(client: Client) -> None:
    client.writer.write(b"GET / HTTP/1.1\r\nx: " + b"y" * (1 << 20))
    assert (await client.rest()).startswith(b"HTTP/1.1 431 ")


async def test_trailers_that_do_not_end_are_cut_off(world: World, client: Client) -> None:
    client.writer.write(b"POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n")
    await world.arrived.wait()
    client.writer.write(b"x: y\r\n" * 300_000)
    assert await client.rest() == b""


async def test_a_large_body_is_not_mistaken_for_a_head(client: Client) -> None:
    body = b"z" * (3 << 20)
    code, _, echo = await client.ask(b"POST /echo HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    assert (code, len(echo)) == (200, len(body))


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        (b"", "header_timeout"),
        (b"GET / HT", "header_timeout"),
        (b"POST /echo HTTP/1.1\r\ncontent-length: 3\r\n\r\na", "body_timeout"),
    ],
    ids=["nothing", "half a head", "half a body"],
)
async def test_a_slow_request_is_cut_off(server: HTTPServer, client: Client, sent: bytes, limit: str) -> None:
    client.writer.write(sent)
    await settle(lambda: server.connections == 1)
    await settle(lambda: not sent or members(server)[0].cycle is not None or b"POST" not in sent)
    since = members(server)[0].reading_since
    server.enforce(since + getattr(HTTPOptions(), limit) - 0.1)
    assert not members(server)[0].transport.is_closing()
    server.enforce(since + getattr(HTTPOptions(), limit) + 0.1)
    assert await client.rest() == b""


async def test_an_idle_connection_is_closed_after_longer_than_clients_keep_it(
    server: HTTPServer, client: Client
) -> None:
    await client.ask(GET % b"hello")
    since = members(server)[0].idle_since
    server.enforce(since + 90)
    assert (await client.ask(GET % b"hello"))[0] == 200
    server.enforce(members(server)[0].idle_since + 181)
    assert await client.rest() == b""


async def test_a_request_that_is_being_worked_on_is_not_cut_off(
    world: World, server: HTTPServer, client: Client
) -> None:
    client.writer.write(GET % b"wait")
    await world.arrived.wait()
    server.enforce(asyncio.get_running_loop().time() + 10_000)
    world.go_on.set()
    assert (await client.answer())[2] == b"done"


async def test_a_client_that_does_not_read_is_cut_off_and_what_waits_for_it_is_bounded(
    world: World, server: HTTPServer
) -> None:
    client = await Client.connect(server, limit=1)
    client.writer.write(GET % b"flood")
    await settle(lambda: bool(members(server) and members(server)[0].stalled_since))
    connection = members(server)[0]
    assert connection.transport.get_write_buffer_size() < 300_000
    server.enforce(connection.stalled_since + HTTPOptions().write_timeout - 1)
    assert not world.go_on.is_set()
    server.enforce(connection.stalled_since + HTTPOptions().write_timeout + 1)
    await world.go_on.wait()  # sending to nobody waits for nobody
    await client.close()


async def test_a_large_response_arrives_whole_and_does_not_wait_in_memory(
    world: World, server: HTTPServer, client: Client
) -> None:
    client.writer.write(GET % b"big")
    await settle(lambda: bool(members(server) and members(server)[0].stalled_since))
    assert members(server)[0].transport.get_write_buffer_size() < 600_000
    assert not world.go_on.is_set()
    assert (await client.answer())[2] == bytes(range(250)) * 200_000


async def test_a_large_response_ends_with_its_client(world: World, server: HTTPServer, client: Client) -> None:
    client.writer.write(GET % b"big")
    await settle(lambda: bool(members(server) and members(server)[0].stalled_since))
    client.writer.transport.abort()
    await world.go_on.wait()


async def test_a_response_goes_on_when_a_slow_client_reads_again(server: HTTPServer, client: Client) -> None:
    client.writer.write(GET % b"flood")
    await settle(lambda: bool(members(server) and members(server)[0].stalled_since))
    await client.reader.readuntil(b"\r\n\r\n")
    received = 0
    while received < 50_000_000:
        received += len(await client.reader.read(1 << 20))
    assert server.connections == 1


# TLS and accepting


async def test_the_client_certificate_is_in_the_scope(world: World, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with serving(world.app, authority.context(ssl.PROTOCOL_TLS_SERVER, "server")) as server:
        client = await Client.connect(server, authority.context(ssl.PROTOCOL_TLS_CLIENT, "alice"))
        assert (await client.ask(GET % b"hello"))[2] == b"hello"
        certificate = peer_certificate(world.scopes[0])
        assert certificate is not None
        assert x509.subject_of(certificate)[0] == "alice"
        assert world.scopes[0]["scheme"] == "https"
        await client.close()


async def test_a_replaced_context_holds_from_the_next_connection_on(world: World, tmp_path: Path) -> None:
    old, new = Authority(tmp_path), Authority(tmp_path)
    async with serving(world.app, old.context(ssl.PROTOCOL_TLS_SERVER, "old")) as server:
        before = await Client.connect(server, old.context(ssl.PROTOCOL_TLS_CLIENT, "a"))
        server.tls = new.context(ssl.PROTOCOL_TLS_SERVER, "new")
        after = await Client.connect(server, new.context(ssl.PROTOCOL_TLS_CLIENT, "b"))
        for client in (before, after):
            assert (await client.ask(GET % b"hello"))[0] == 200
            await client.close()


async def test_a_handshake_that_fails_harms_nobody(world: World, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with serving(world.app, authority.context(ssl.PROTOCOL_TLS_SERVER, "server")) as server:
        plain = await Client.connect(server)
        plain.writer.write(GET % b"hello")
        assert b"HTTP" not in await plain.rest()
        await plain.close()
        client = await Client.connect(server, authority.context(ssl.PROTOCOL_TLS_CLIENT, "alice"))
        assert (await client.ask(GET % b"hello"))[0] == 200
        await client.close()


async def test_half_open_connections_make_room_for_others(world: World, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.context(ssl.PROTOCOL_TLS_SERVER, "server")
    async with serving(world.app, tls, max_handshakes=3) as server:
        silent = [await Client.connect(server) for _ in range(20)]
        client = await Client.connect(server, authority.context(ssl.PROTOCOL_TLS_CLIENT, "alice"))
        assert (await client.ask(GET % b"hello"))[0] == 200
        assert await silent[0].rest() == b""
        assert server.handshakes <= 3
        for one in (*silent, client):
            await one.close()


async def test_connections_above_the_bound_wait_for_one_to_end(world: World) -> None:
    async with serving(world.app, max_connections=2) as server:
        first, second, third = [await Client.connect(server) for _ in range(3)]
        assert (await first.ask(GET % b"hello"))[0] == 200
        assert (await second.ask(GET % b"hello"))[0] == 200
        third.writer.write(GET % b"hello")
        assert server.connections == 2
        await first.close()
        assert (await third.answer())[0] == 200
        await second.close()
        await third.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ECONNABORTED], ids=["no more files", "client gone"])
async def test_accepting_goes_on_after_an_error(world: World, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    loop = asyncio.get_running_loop()
    accept = loop.sock_accept
    failures = [OSError(number, "refused")]

    async def accept_at_the_second_attempt(sock: socket.socket) -> Any:  # noqa: ANN401
        if failures:
            raise failures.pop()
        return await accept(sock)

    monkeypatch.setattr(loop, "sock_accept", accept_at_the_second_attempt)
    async with serving(world.app) as server:
        client = await Client.connect(server)
        assert (await client.ask(GET % b"hello"))[0] == 200
        await client.close()


async def test_a_defect_in_setting_up_a_connection_is_logged(
    world: World, server: HTTPServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise KeyError("defect")

    monkeypatch.setattr(asyncio.get_running_loop(), "connect_accepted_socket", fail)
    client = await Client.connect(server)
    assert await client.rest() == b""
    assert "could not be set up" in caplog.text
    await client.close()


@pytest.mark.parametrize("address", ["::1", "::"])
async def test_listening_on_ipv6(address: str) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with listen(address, 0, HTTPOptions()) as listener:
        assert listener.family == socket.AF_INET6


def test_a_port_in_use_is_named() -> None:
    with listen("127.0.0.1", 0, HTTPOptions()) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use"):
            listen("127.0.0.1", port, HTTPOptions())


# Stopping


async def test_draining_lets_requests_finish_and_closes_the_rest(world: World) -> None:
    async with serving(world.app) as server:
        busy, idle = await Client.connect(server), await Client.connect(server)
        await idle.ask(GET % b"hello")
        world.arrived.clear()
        busy.writer.write(GET % b"wait")
        await world.arrived.wait()
        draining = asyncio.create_task(server.drain())
        await server.draining.wait()
        assert await idle.rest() == b""
        world.go_on.set()
        _, headers, body = await busy.answer()
        assert (headers["connection"], body) == ("close", b"done")
        await draining
        with pytest.raises(OSError, match=r"(?i)connect|bad file"):
            await Client.connect(server)
        await busy.close()
        await idle.close()


@pytest.mark.parametrize("how", ["timeout", "hurry"])
async def test_draining_ends_what_does_not_finish(world: World, how: str) -> None:
    async with serving(world.app, drain_timeout=0 if how == "timeout" else 600) as server:
        client = await Client.connect(server)
        client.writer.write(GET % b"wait")
        await world.arrived.wait()
        draining = asyncio.create_task(server.drain())
        if how == "hurry":
            await server.draining.wait()
            server.hurry()
        await draining
        assert await client.rest() == b""
        await client.close()


async def test_draining_ends_handshakes(world: World, tmp_path: Path) -> None:
    tls = Authority(tmp_path).context(ssl.PROTOCOL_TLS_SERVER, "server")
    async with serving(world.app, tls) as server:
        silent = await Client.connect(server)
        await settle(lambda: server.handshakes == 1)
        await server.drain()
        assert server.handshakes == 0
        await silent.rest()
        await silent.close()


async def test_the_sweep_looks_at_connections_and_at_the_date(world: World) -> None:
    async with serving(world.app, sweep_interval=0.0, header_timeout=0.0) as server:
        client = await Client.connect(server)
        assert await client.rest() == b""
        await client.close()


def members(server: HTTPServer) -> list[Any]:
    return server._connections.members()


async def settle(done: Callable[[], bool]) -> None:
    """Let the loop work until it is so."""
    async with asyncio.timeout(10):
        while not done():  # noqa: ASYNC110 - what is awaited is a number, not an event
            await asyncio.sleep(0)
