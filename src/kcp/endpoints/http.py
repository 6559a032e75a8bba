"""The door to uvicorn and httptools: one connection's HTTP/1.1, with the limits that a server on a network needs.

Must not know paths, users or kinds. uvicorn's protocol turns bytes into ASGI calls; `Connection` adds to it what it
leaves open: the peer's certificate, bounds on the size of a request's head, on the time it takes to arrive and on the
time that a response takes to leave. Time limits are checked by one sweep over all connections (`HTTPServer` in
`http_server.py`), because a timer per request costs more than the rest of this module together.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HEADER_VALUE_RE, STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    from kcp.endpoints.http_options import HTTPOptions

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Application = Callable[
        [Scope, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
    ]

PEER_CERTIFICATE: Final = "kcp.peer_certificate"  # in scope["extensions"]: DER, verified by TLS; absent without one
DRAINING: Final = "draining"  # in scope["state"]: an asyncio.Event that is set once long-running requests should end

_log = logging.getLogger(__name__)

_ASGI: Final[Any] = {"version": "3.0", "spec_version": "2.3"}
_SLICE_BYTES: Final = 256 << 10
_NO_EXTENSIONS: Final[dict[str, Any]] = {}


def peer_certificate(scope: Scope) -> bytes | None:
    """The client's certificate (DER), if it showed one that the client authorities signed."""
    found: bytes | None = scope["extensions"].get(PEER_CERTIFICATE)
    return found


class Connections(ServerState):
    """What all connections of one server share, in the shape that uvicorn's protocol wants."""

    def __init__(self, app: Application, options: HTTPOptions, state: dict[str, Any]) -> None:
        super().__init__()
        self.options = options
        self.state = state
        self.is_draining = state[DRAINING].is_set
        self.on_lost: Callable[[], None] = lambda: None
        self.config = Config(
            cast("Any", app),
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
        # By hand: `load` calls the application without arguments to find out whether it is a factory.
        self.config.loaded_app = app
        self.config.ws_protocol_class = None
        self.config.loaded = True
        # An error in the application is logged by the application; what remains here is noise that clients can cause.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)

    def make_connection(self) -> Connection:
        return Connection(self)

    def members(self) -> list[Connection]:
        return cast("list[Connection]", list(self.connections))


class Exchange(RequestResponseCycle):
    """One request and its response. Head and body leave together where the body's length is known: a write of its
    own for the head costs a fifth of the request."""

    _head: list[bytes] | None = None

    async def send(self, message: Message) -> None:  # type: ignore[override]
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.response_started:
            head = self._make_head(message["status"], message.get("headers", ()))
            self.response_started = True
            self.waiting_for_100_continue = False
            if self.chunked_encoding:  # a stream: its first part may be long in coming
                self.transport.write(b"".join(head))
            else:
                self._head = head
        elif message["type"] == "http.response.body" and self.response_started and not self.response_complete:
            body, more_body = message.get("body", b""), message.get("more_body", False)
            if len(body) > _SLICE_BYTES:
                body = await self._send_slices(memoryview(body))
            if body is not None:
                self._send_body(body, more_body)
        else:
            raise RuntimeError(f"unexpected ASGI message {message['type']!r}")

    def _make_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
        head = [STATUS_LINE[status]]
        for name, value in (*self.default_headers, *headers):
            if HEADER_VALUE_RE.search(value) is not None:  # or text from a client could begin a header of its own
                raise RuntimeError(f"invalid value of the header {name!r}")
            if name == b"content-length":
                self.expected_content_length = int(value)
                self.chunked_encoding = False
            elif name == b"connection" and value == b"close":
                self.keep_alive = False
                continue
            head += (name, b": ", value, b"\r\n")
        if not self.keep_alive:
            head.append(b"connection: close\r\n")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = True
            head.append(b"transfer-encoding: chunked\r\n")
        head.append(b"\r\n")
        return head

    async def _send_slices(self, body: memoryview) -> memoryview | None:
        """Send all but the last slice, which is returned; None if the client has left.

        Encrypting a large body at once would hold up everyone else, and what the transport has accepted is out of
        reach of the limits for slow clients.
        """
        while len(body) > _SLICE_BYTES:
            self._send_body(body[:_SLICE_BYTES], more_body=True)
            body = body[_SLICE_BYTES:]
            if self.flow.write_paused:
                await self.flow.drain()
            if self.disconnected:
                return None
        return body

    def _send_body(self, body: bytes | memoryview, more_body: bool) -> None:
        parts: list[bytes | memoryview] = [*self._head] if self._head else []
        self._head = None
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
        elif self.chunked_encoding:
            if body:
                parts += (b"%x\r\n" % len(body), body, b"\r\n")
            if not more_body:
                parts.append(b"0\r\n\r\n")
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (self.expected_content_length and not more_body):
                raise RuntimeError("the body is not as long as its content-length")
            parts.append(body)
        if parts:
            self.transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
        if not more_body:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()


class Connection(HttpToolsProtocol):
    """One connection. Its times are the loop's; 0.0 says that nothing is awaited.

    `reading_since`   a request has begun to arrive (or the connection is new) and is not complete
    `idle_since`      a response is complete and no request has begun
    `stalled_since`   a response waits for the client to read
    """

    def __init__(self, shared: Connections) -> None:
        super().__init__(shared.config, shared, shared.state)
        self.shared = shared
        self.access_log = False
        self._now = self.loop.time
        self._extensions = _NO_EXTENSIONS
        self._in_head = True
        self._surplus = 0
        self._head_bytes = shared.options.max_header_bytes
        self.is_lost = False
        self.reading_since = 0.0
        self.idle_since = 0.0
        self.stalled_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(self.shared.options.write_buffer_bytes)
        self.reading_since = self._now()
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        if certificate:
            self._extensions = {PEER_CERTIFICATE: certificate}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.is_lost = True
        self.reading_since = self.idle_since = self.stalled_since = 0.0
        self.shared.on_lost()

    def data_received(self, data: bytes) -> None:
        if self.is_lost:  # uvloop may still have data for us
            return
        self._surplus += len(data)
        super().data_received(data)
        # What is neither body nor a finished request: heads, trailers, chunk sizes and their extensions.
        if self._surplus > self._head_bytes and self.reading_since:
            self._refuse(b"431 Request Header Fields Too Large")

    def send_400_response(self, msg: str) -> None:
        _log.debug("request refused client=%s reason=%r", self.client, msg)
        self._refuse(b"400 Bad Request")

    def _refuse(self, status: bytes) -> None:
        """As Go's server words it. A response that is under way cannot be followed by another."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            head = b"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s"
            self.transport.write(head % (status, status))
            self.transport.close()
        else:
            self.transport.abort()

    def _unsupported_upgrade_warning(self) -> None:
        """There is nothing to upgrade to: the request is answered as if it had not asked."""

    # The parser's callbacks, in the order in which they come

    def on_message_begin(self) -> None:
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self.reading_since = self._now()
        self.idle_since = 0.0
        self._in_head = True
        self.scope = {  # type: ignore[typeddict-item]
            "type": "http",
            "asgi": _ASGI,
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "https",
            "root_path": "",
            "headers": self.headers,
            "state": self.app_state,
            "extensions": self._extensions,
        }

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:  # a trailer comes too late for whoever has read the headers
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser, scope = self.parser, self.scope
        http_version = parser.get_http_version()
        url = httptools.parse_url(self.url)
        raw_path = url.path
        path = raw_path.decode("ascii")
        scope["method"] = parser.get_method().decode("ascii")
        scope["http_version"] = http_version
        scope["raw_path"] = raw_path
        scope["path"] = unquote(path) if "%" in path else path
        scope["query_string"] = url.query or b""
        earlier = self.cycle
        self.cycle = exchange = Exchange(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=http_version != "1.0" and parser.should_keep_alive() and not self.shared.is_draining(),
            on_response=self.on_response_complete,
        )
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(exchange, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))

    def on_body(self, body: bytes) -> None:
        self._surplus -= 2 * len(body)  # leaves room for framing as large as the body
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.reading_since = 0.0
        self._surplus = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self.idle_since = self._now()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalled_since = self._now()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stalled_since = 0.0

    # What the server does with connections

    def enforce(self, now: float) -> None:
        """End the connection if one of its limits has passed."""
        options = self.shared.options
        if self.stalled_since:
            if now - self.stalled_since > options.write_timeout:
                _log.info("connection ended client=%s reason='it does not read'", self.client)
                self.transport.abort()
        elif self.reading_since:
            if now - self.reading_since > (options.header_timeout if self._in_head else options.body_timeout):
                _log.debug("connection ended client=%s reason='request incomplete'", self.client)
                self.transport.abort()
        elif self.idle_since and now - self.idle_since > options.idle_timeout:
            self.transport.close()
