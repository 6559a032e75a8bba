"""One connection to one member of an etcd cluster: connect, send a request, open a stream.

gRPC on our own HTTP/2 (`http2.py`). What fails is a Failure, or Closed. It does not retry and does not know other
members; `transport.py` does.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from kcp.store.errors import Closed, OutcomeUnknown
from kcp.store.etcd import messages
from kcp.store.etcd.errors import Failure, Fate
from kcp.store.etcd.hpack import encode_request
from kcp.store.etcd.http2 import Connection, Exchange

if TYPE_CHECKING:
    from kcp.store.errors import StoreError
    from kcp.store.etcd.options import Endpoint, EtcdOptions

    Metadata = tuple[tuple[str, str], ...]

RequestT = TypeVar("RequestT", bound=messages.Message)
ResponseT = TypeVar("ResponseT", bound=messages.Message)

_GRPC_HEADERS = (("te", "trailers"), ("content-type", "application/grpc"), ("user-agent", "kcp"))
_MAX_HEADER_BLOCKS = 64  # encoded headers that are kept, one for each method and token


@dataclass(frozen=True, slots=True)
class Method(Generic[RequestT, ResponseT]):
    """One procedure of etcd's API."""

    path: str
    request: type[RequestT]
    response: type[ResponseT]
    writes: bool = False
    streams: bool = False


STATUS = Method("/etcdserverpb.Maintenance/Status", messages.StatusRequest, messages.StatusResponse)


class Channel:
    """A connection to one endpoint, made when first needed and made again when it broke."""

    def __init__(self, endpoint: Endpoint, options: EtcdOptions, credentials: Credentials) -> None:
        self.endpoint = endpoint
        self._options = options
        self._tls = credentials.make() if endpoint.tls else None
        self._connections: list[Connection] = []  # the last one is for new requests, others still end theirs
        self._connect_once = asyncio.Lock()
        self._header_blocks: dict[tuple[str, Metadata], bytes] = {}
        self._is_closed = False

    async def connect(self, timeout: float) -> None:
        """Return if connected, else connect. A Failure tells why that cannot be; nothing was sent then."""
        if self._is_connected:
            return
        try:
            async with asyncio.timeout(timeout):
                # Held across I/O on purpose: of many requests that find no connection, one connects for all.
                async with self._connect_once:
                    if not self._is_connected:
                        await self._dial()
        except TimeoutError:
            raise Failure(Fate.NOT_DONE, f"no connection within {timeout:g} s") from None
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and not isinstance(error, ssl.SSLError) else str(error)
            raise Failure(Fate.NOT_DONE, f"no connection: {reason}") from None

    @property
    def _is_connected(self) -> bool:
        return bool(self._connections) and self._connections[-1].is_usable

    async def _dial(self) -> None:
        self._check_open()
        host, _, port = self.endpoint.target.rpartition(":")
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(self._options.keepalive, self._options.keepalive_timeout),
            host.strip("[]"),
            int(port),
            ssl=self._tls,
        )
        try:
            await connection.ready
            self._check_open()
        except BaseException as error:
            connection.close(Closed)
            if isinstance(error, Failure):
                raise Failure(Fate.NOT_DONE, f"no connection: {error.reason}") from None
            raise
        self._connections = [each for each in self._connections if not each.is_closed] + [connection]

    async def send(
        self, method: Method[RequestT, ResponseT], request: RequestT, *, timeout: float, metadata: Metadata = ()
    ) -> ResponseT:
        """One request and its answer, or a Failure. Closed means that nothing was written."""
        loop = asyncio.get_running_loop()
        connection = self._connected()
        answer: asyncio.Future[bytes] = loop.create_future()
        body: bytes | None = None

        def deliver(message: bytes) -> None:
            nonlocal body
            body = message

        def finish(error: Failure | StoreError | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            elif body is None:
                answer.set_exception(Failure(Fate.UNKNOWN, "an answer without a message"))
            else:
                answer.set_result(body)

        exchange = Exchange(deliver, finish)
        connection.start(self._headers(method.path, metadata), request.SerializeToString(), exchange, end=True)
        timer = loop.call_later(timeout, lambda: finish(Failure(Fate.UNKNOWN, f"no answer within {timeout:g} s")))
        try:
            return method.response.FromString(await answer)
        except Closed:
            if method.writes:
                raise OutcomeUnknown("the connection to etcd was closed before it answered") from None
            raise
        except messages.DecodeError as error:
            raise Failure(Fate.UNKNOWN, f"an answer that cannot be read: {error}") from None
        finally:
            timer.cancel()
            connection.cancel(exchange)

    def open(self, method: Method[RequestT, ResponseT], metadata: Metadata = ()) -> Stream[RequestT, ResponseT]:
        """A two-way stream; it has no time limit of its own."""
        return Stream(self, self._connected(), method, self._headers(method.path, metadata))

    async def aclose(self) -> None:
        """Disconnect. Requests under way raise Closed, or OutcomeUnknown if they write."""
        self._is_closed = True
        for connection in self._connections:
            connection.close(Closed)

    def _check_open(self) -> None:
        if self._is_closed:
            raise Closed

    def _connected(self) -> Connection:
        self._check_open()
        if not self._connections:
            raise Failure(Fate.NOT_DONE, "no connection")
        return self._connections[-1]

    def _headers(self, path: str, metadata: Metadata) -> bytes:
        block = self._header_blocks.get((path, metadata))
        if block is None:
            if len(self._header_blocks) >= _MAX_HEADER_BLOCKS:
                self._header_blocks.clear()
            headers = (*_GRPC_HEADERS, *metadata)
            block = encode_request(path, self.endpoint.target, tls=self.endpoint.tls, headers=headers)
            self._header_blocks[path, metadata] = block
        return block


class Stream(Generic[RequestT, ResponseT]):
    """An open two-way stream. Whoever opened it must close it. For one reader at a time."""

    def __init__(
        self, channel: Channel, connection: Connection, method: Method[RequestT, ResponseT], headers: bytes
    ) -> None:
        self.channel = channel
        self._connection = connection
        self._method = method
        self._headers = headers
        self._exchange = Exchange(self._deliver, self._finish)
        self._messages: deque[bytes] = deque()
        self._error: Failure | StoreError | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def write(self, request: RequestT) -> None:
        if self._error is not None:
            raise self._error
        body = request.SerializeToString()
        if not self._exchange.id:
            self._connection.start(self._headers, body, self._exchange, end=False)
        else:
            self._connection.send(self._exchange, body, end=False)

    async def read(self) -> ResponseT:
        """The next message, or a Failure once the stream has ended, for whatever reason."""
        while not self._messages:
            if self._error is not None:
                raise self._error
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        message = self._messages.popleft()
        self._exchange.unread -= len(message)
        self._connection.credit(self._exchange)
        return self._method.response.FromString(message)

    def close(self) -> None:
        self._connection.cancel(self._exchange)
        self._finish(Closed())

    def _deliver(self, message: bytes) -> None:
        self._messages.append(message)
        self._exchange.unread += len(message)
        self._wake()

    def _finish(self, error: Failure | StoreError | None) -> None:
        if self._error is None:
            self._error = error or Failure(Fate.UNKNOWN, "the member ended the stream")
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Credentials:
    """The certificates of the options, read once, so that a bad file is known at the start and not at a retry."""

    def __init__(self, options: EtcdOptions) -> None:
        for name in ("ca_file", "cert_file", "key_file"):
            _check_pem(getattr(options, name), name)
        self._options = options

    def make(self) -> ssl.SSLContext:
        """Raises ValueError for files that are no certificate or do not belong together."""
        try:
            context = ssl.create_default_context(cafile=self._options.ca_file or None)
            if self._options.cert_file:
                context.load_cert_chain(self._options.cert_file, self._options.key_file)
        except ssl.SSLError as error:
            raise ValueError(f"etcd's certificate files cannot be used: {error}") from error
        context.set_alpn_protocols(["h2"])
        return context


def _check_pem(file: str, option: str) -> None:
    if not file:
        return
    try:
        pem = Path(file).read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read etcd's {option} {file!r}: {error.strerror}") from error
    if b"-----BEGIN " not in pem:
        raise ValueError(f"etcd's {option} {file!r} is not a PEM file")
