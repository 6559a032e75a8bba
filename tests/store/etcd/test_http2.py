"""The connection against a server that misbehaves in ways in which etcd does not."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING

import pytest

from kcp.store.errors import OutcomeUnknown, TooLarge, Unavailable
from kcp.store.etcd.client import EtcdClient, make_put
from kcp.store.etcd.errors import Failure, Fate
from kcp.store.etcd.hpack import encode_request
from kcp.store.etcd.http2 import Connection, Exchange, make_frame
from kcp.store.etcd.options import EtcdOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
OK = b"\x00\x0bgrpc-status\x010"


class Call:
    """One call and what became of it."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.exchange = Exchange(self.messages.append, self.done.set_result)


@contextlib.asynccontextmanager
async def serving(answers: Callable[[int], bytes]) -> AsyncIterator[int]:
    """The port of a server that says `answers(stream)` to each request it sees, on one connection."""

    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(24)
        writer.write(make_frame(SETTINGS, 0, 0))
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                high, low, kind, _, stream = struct.unpack(">HBBBI", await reader.readexactly(9))
                await reader.readexactly((high << 8) + low)
                if kind == HEADERS:
                    writer.write(answers(stream))
        writer.close()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await ended.wait()


@contextlib.asynccontextmanager
async def connected(answers: Callable[[int], bytes]) -> AsyncIterator[Connection]:
    async with serving(answers) as port:
        _, connection = await asyncio.get_running_loop().create_connection(lambda: Connection(5, 1), "127.0.0.1", port)
        await connection.ready
        yield connection
        connection.close(lambda: Failure(Fate.UNKNOWN, "the test is over"))


def start(connection: Connection) -> Call:
    call = Call()
    headers = encode_request("/p", "host", tls=False, headers=())
    connection.start(headers, b"request", call.exchange, end=True)
    return call


def message(body: bytes) -> bytes:
    return b"\0" + struct.pack(">I", len(body)) + body


async def test_messages_are_cut_and_joined_wherever_frames_end() -> None:
    octets = message(b"one") + message(b"") + message(b"three" * 10)

    def answers(stream: int) -> bytes:
        pieces = [octets[place : place + 7] for place in range(0, len(octets), 7)]
        data = b"".join(make_frame(DATA, 0, stream, piece) for piece in pieces)
        padded = make_frame(DATA, 0x8, stream, b"\x02" + message(b"padded") + b"\0\0")
        return make_frame(HEADERS, 4, stream, b"\x88") + data + padded + make_frame(HEADERS, 5, stream, OK)

    async with connected(answers) as connection:
        call = start(connection)
        assert await call.done is None
        assert call.messages == [b"one", b"", b"three" * 10, b"padded"]


async def test_headers_may_be_continued() -> None:
    def answers(stream: int) -> bytes:
        return make_frame(HEADERS, 1, stream, OK[:5]) + make_frame(9, 4, stream, OK[5:])

    async with connected(answers) as connection:
        assert await start(connection).done is None


@pytest.mark.parametrize(
    ("answer", "fate"),
    [
        pytest.param((RST_STREAM, 0, struct.pack(">I", 7)), Fate.NOT_DONE, id="refused"),
        pytest.param((RST_STREAM, 0, struct.pack(">I", 2)), Fate.UNKNOWN, id="reset"),
        pytest.param((HEADERS, 5, b"\x8d"), Fate.UNKNOWN, id="http-404"),
        pytest.param((HEADERS, 5, b"\x88\x00\x0bgrpc-status\x0214"), Fate.UNKNOWN, id="grpc-unavailable"),
        pytest.param((HEADERS, 5, b"\x08\x03504"), Fate.UNKNOWN, id="http-504"),
        pytest.param((DATA, 1, b""), Fate.UNKNOWN, id="no-status"),
        pytest.param((DATA, 0, b"\0\xff\xff\xff\xff"), Fate.UNREADABLE, id="too-large"),
        pytest.param((DATA, 0, b"\0" * 20_000), Fate.UNKNOWN, id="frame-larger-than-allowed"),
        pytest.param((HEADERS, 5, b"\xff\xff"), Fate.UNKNOWN, id="nonsense"),
    ],
)
async def test_fate_of_a_request_that_fails(answer: tuple[int, int, bytes], fate: Fate) -> None:
    kind, flags, payload = answer
    async with connected(lambda stream: make_frame(kind, flags, stream, payload)) as connection:
        failure = await start(connection).done
        assert isinstance(failure, Failure)
        assert failure.fate is fate


async def test_a_message_that_is_too_large_ends_its_own_call_only() -> None:
    def answers(stream: int) -> bytes:
        if stream == 1:
            return make_frame(DATA, 0, stream, b"\0\xff\xff\xff\xff")
        return make_frame(HEADERS, 5, stream, OK)

    async with connected(answers) as connection:
        failure = await start(connection).done
        assert isinstance(failure, Failure)
        assert "4294967295 bytes" in failure.reason
        assert await start(connection).done is None


async def test_headers_without_end_are_not_waited_for() -> None:
    def answers(stream: int) -> bytes:
        return make_frame(HEADERS, 1, stream, b"") + make_frame(9, 0, stream, b"x" * 16000) * 100

    async with connected(answers) as connection:
        failure = await start(connection).done
        assert isinstance(failure, Failure)
        assert "headers of more than" in failure.reason
        assert connection.is_closed


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param([(HEADERS, 5, b"\x08\x03504")], Unavailable, id="http-504"),
        pytest.param([(HEADERS, 4, b"\x88"), (HEADERS, 5, OK)], Unavailable, id="no-message"),
        pytest.param([(HEADERS, 4, b"\x88"), (DATA, 0, message(b"\xff")), (HEADERS, 5, OK)], Unavailable, id="garbage"),
        pytest.param([(HEADERS, 4, b"\x88"), (DATA, 0, b"\0\xff\xff\xff\xff")], TooLarge, id="too-large"),
    ],
)
async def test_a_write_whose_answer_says_nothing_is_not_repeated(
    answer: list[tuple[int, int, bytes]], error: type[Exception]
) -> None:
    requests = 0

    def answers(stream: int) -> bytes:
        nonlocal requests
        requests += 1
        return b"".join(make_frame(kind, flags, stream, payload) for kind, flags, payload in answer)

    async with (
        serving(answers) as port,
        EtcdClient(EtcdOptions((f"http://127.0.0.1:{port}",), request_timeout=0.3)) as client,
    ):
        with pytest.raises(OutcomeUnknown):
            await client.txn([], [make_put(b"a", b"")])
        assert requests == 1
        with pytest.raises(error):
            await client.range(b"a")


async def test_goodbye_tells_what_was_not_seen() -> None:
    """The server answers the first request, and says that it never saw the second."""

    def answers(stream: int) -> bytes:
        if stream == 1:
            return b""
        return make_frame(GOAWAY, 0, 0, struct.pack(">II", 1, 0)) + make_frame(HEADERS, 5, 1, OK)

    async with connected(answers) as connection:
        seen, unseen = start(connection), start(connection)
        failure = await unseen.done
        assert isinstance(failure, Failure)
        assert failure.fate is Fate.NOT_DONE
        assert await seen.done is None
        assert connection.is_closed
        with pytest.raises(Failure):
            start(connection)


async def test_pings_are_answered() -> None:
    async with connected(lambda stream: make_frame(PING, 0, 0, b"12345678") + make_frame(HEADERS, 5, stream, OK)) as it:
        assert await start(it).done is None
        assert await start(it).done is None
