"""One HTTP/2 connection that carries gRPC (RFC 9113), as far as a client of etcd needs it.

All of it runs in the event loop: what one read of the socket brings (answers to many requests, many events of a watch)
is handled in one go, and what one turn of the loop sends goes out in one write. It knows gRPC's framing and status, not
etcd's messages; it does not connect, retry or choose.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, ClassVar, cast
from urllib.parse import unquote

from kcp.store.errors import TooLarge
from kcp.store.etcd.errors import Failure, Fate, explain
from kcp.store.etcd.hpack import BadHeaders, decode_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.store.errors import StoreError

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_ACK = _END_STREAM = 0x1
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_REFUSED_STREAM, _CANCEL = 7, 8
_FRAME = struct.Struct(">HBBBI")  # the length in two parts, kind, flags, stream
_SETTING = struct.Struct(">HI")
_U32 = struct.Struct(">I")

_MAX_FRAME = 16384  # what every peer takes; etcd's never asks for more
_MAX_HEADERS = 1 << 20
_MAX_MESSAGE = 256 << 20  # above all of kcp's: a refused commit's answer has 128 objects of 1.5 MiB
_MAX_WINDOW = 2**31 - 1
_MAX_STREAM_ID = 2**31 - 1
_STREAM_WINDOW = 4 << 20  # bytes of unread messages, per stream, after which the server has to wait
_CREDIT_STEP = 1 << 20  # bytes received before the server is told that it may send more

_STATUS_NAMES = """
OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED
FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED
""".split()  # noqa: SIM905 - in the order of their numbers


def make_frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return _FRAME.pack(len(payload) >> 8, len(payload) & 255, kind, flags, stream_id) + payload


class Exchange:
    """One call on the connection. `deliver` gets each message, `finish` the end: None if all went well."""

    __slots__ = ("_partial", "deliver", "finish", "id", "send_window", "uncredited", "unread", "unsent", "unsent_end")

    def __init__(self, deliver: Callable[[bytes], None], finish: Callable[[Failure | StoreError | None], None]) -> None:
        self.deliver = deliver
        self.finish = finish
        self.id = 0
        self.send_window = 0
        self.unsent = memoryview(b"")
        self.unsent_end = False
        self.uncredited = 0  # bytes received and not yet credited to the server
        self.unread = 0  # bytes of messages that wait for their reader
        self._partial = bytearray()

    def take(self, octets: bytes) -> None:
        """Cut messages out of what arrived: a flag for compression (never used), a length, the message.

        Raises a Failure for a message that is too large to wait for.
        """
        partial = self._partial
        if not partial and len(octets) >= 5 and len(octets) == 5 + _U32.unpack_from(octets, 1)[0]:
            self.deliver(octets[5:])
            return
        partial += octets
        start = 0
        while len(partial) - start >= 5:
            size = _U32.unpack_from(partial, start + 1)[0]
            if size > _MAX_MESSAGE:
                reason = f"an answer of {size} bytes is more than the {_MAX_MESSAGE} bytes that kcp takes from etcd"
                raise Failure(Fate.UNREADABLE, reason, TooLarge(reason))
            end = start + 5 + size
            if end > len(partial):
                break
            self.deliver(bytes(memoryview(partial)[start + 5 : end]))
            start = end
        del partial[:start]


class Connection(asyncio.Protocol):
    """Made by `loop.create_connection`; usable once `ready` is done."""

    def __init__(self, keepalive: float, keepalive_timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self._keepalive = keepalive
        self._keepalive_timeout = keepalive_timeout
        self._exchanges: dict[int, Exchange] = {}
        self._blocked: dict[int, Exchange] = {}  # with something unsent
        self._received = bytearray()
        self._outgoing: list[bytes] = []
        self._headers = bytearray()  # of a block that is continued
        self._next_id = 1
        self._usable = False
        self._send_window = 65535
        self._uncredited = 0
        self._peer_window = 65535
        self._peer_streams = _MAX_STREAM_ID
        self._heard = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_usable(self) -> bool:
        """Takes new calls."""
        return self._usable and self._next_id <= _MAX_STREAM_ID

    @property
    def is_closed(self) -> bool:
        return self._transport.is_closing()

    def start(self, headers: bytes, body: bytes, exchange: Exchange, *, end: bool) -> None:
        """Begin a call. A Failure means that nothing was sent."""
        if not self.is_usable:
            raise Failure(Fate.NOT_DONE, "the connection has ended")
        if len(self._exchanges) >= self._peer_streams:
            raise Failure(Fate.NOT_DONE, f"the member takes only {self._peer_streams} requests at a time")
        exchange.id = self._next_id
        exchange.send_window = self._peer_window
        self._next_id += 2
        self._exchanges[exchange.id] = exchange
        self._write(make_frame(_HEADERS, _END_HEADERS, exchange.id, headers))
        self.send(exchange, body, end=end)

    def send(self, exchange: Exchange, body: bytes, *, end: bool) -> None:
        """Send one message of a call, as the server's windows allow."""
        exchange.unsent = memoryview(b"".join((exchange.unsent, b"\0", _U32.pack(len(body)), body)))
        exchange.unsent_end = end
        self._blocked[exchange.id] = exchange
        self._send_unsent()

    def cancel(self, exchange: Exchange) -> None:
        """Give up a call; the server is told. Its `finish` is not called."""
        if self._exchanges.pop(exchange.id, None) is not None:
            self._blocked.pop(exchange.id, None)
            self._write(make_frame(_RST_STREAM, 0, exchange.id, _U32.pack(_CANCEL)))
            self._close_if_drained()

    def credit(self, exchange: Exchange) -> None:
        """Let the server send more, if its messages are being read."""
        if exchange.uncredited >= _CREDIT_STEP and exchange.unread < _STREAM_WINDOW and exchange.id in self._exchanges:
            self._write(make_frame(_WINDOW_UPDATE, 0, exchange.id, _U32.pack(exchange.uncredited)))
            exchange.uncredited = 0

    def close(self, make_error: Callable[[], Failure | StoreError]) -> None:
        """End the connection and all its calls."""
        self._usable = False
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        self._transport.close()
        if not self.ready.done():
            self.ready.set_exception(make_error())
        exchanges, self._exchanges = self._exchanges, {}
        self._blocked.clear()
        for exchange in exchanges.values():
            exchange.finish(make_error())

    def _fail(self, reason: str) -> None:
        self.close(lambda: Failure(Fate.UNKNOWN, reason))

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # No dynamic table for headers, no pushes, our stream window; then the connection's window as large as can be.
        settings = b"".join(_SETTING.pack(*each) for each in ((1, 0), (2, 0), (4, _STREAM_WINDOW)))
        self._write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + make_frame(_SETTINGS, 0, 0, settings))
        self._write(make_frame(_WINDOW_UPDATE, 0, 0, _U32.pack(_MAX_WINDOW - 65535)))
        self._timer = self._loop.call_later(self._keepalive, self._check_silence)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the connection was lost: {exc or 'closed by the member'}")

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        received = self._received
        received += data
        start, end = 0, len(received)
        while end - start >= 9:
            high, low, kind, flags, stream_id = _FRAME.unpack_from(received, start)
            size = (high << 8) + low
            if size > _MAX_FRAME:
                self._fail(f"the member does not speak HTTP/2 as expected: a frame of {size} bytes")
                return
            after = start + 9 + size
            if after > end:
                break
            handler = self._HANDLERS.get(kind)
            if handler is not None:
                try:
                    handler(self, flags, stream_id, bytes(memoryview(received)[start + 9 : after]))
                except (BadHeaders, struct.error, IndexError) as error:
                    self._fail(f"the member does not speak HTTP/2 as expected: {error}")
                    return
            start = after
        del received[:start]

    # --- frames ---

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._uncredited += len(payload)
        if self._uncredited >= _CREDIT_STEP:
            self._write(make_frame(_WINDOW_UPDATE, 0, 0, _U32.pack(self._uncredited)))
            self._uncredited = 0
        exchange = self._exchanges.get(stream_id)
        if exchange is None:  # we gave it up
            return
        exchange.uncredited += len(payload)
        try:
            exchange.take(payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload)
        except Failure as failure:
            self.cancel(exchange)
            exchange.finish(failure)
            return
        self.credit(exchange)
        if flags & _END_STREAM:
            self._end(stream_id, Failure(Fate.UNKNOWN, "an answer ended without a status"))

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if flags & _PADDED:
            payload = payload[1 : len(payload) - payload[0]]
        if flags & _PRIORITY:
            payload = payload[5:]
        if not flags & _END_HEADERS:
            self._headers = bytearray([flags & _END_STREAM]) + payload
            return
        self._take_headers(stream_id, payload, is_last=bool(flags & _END_STREAM))

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._headers += payload
        if len(self._headers) > _MAX_HEADERS:
            raise BadHeaders(f"headers of more than {_MAX_HEADERS} bytes")
        if flags & _END_HEADERS:
            self._take_headers(stream_id, bytes(self._headers[1:]), is_last=bool(self._headers[0]))

    def _take_headers(self, stream_id: int, block: bytes, *, is_last: bool) -> None:
        headers = decode_headers(block)
        status = headers.get("grpc-status")
        if is_last and status is not None:
            code = int(status) if status.isdigit() else 2
            name = _STATUS_NAMES[code] if code < len(_STATUS_NAMES) else "UNKNOWN"
            text = unquote(headers.get("grpc-message", "")) or "no reason given"
            self._end(stream_id, None if code == 0 else explain(name, text))
        elif is_last or headers.get(":status") != "200":
            # From a proxy, say, which may have passed the request on before it gave up.
            self._end(stream_id, Failure(Fate.UNKNOWN, f"not etcd: HTTP status {headers.get(':status')}"))

    def _on_rst_stream(self, flags: int, stream_id: int, payload: bytes) -> None:
        (code,) = _U32.unpack(payload)
        if code == _REFUSED_STREAM:
            self._end(stream_id, Failure(Fate.NOT_DONE, "the member did not take the request"))
        else:
            self._end(stream_id, Failure(Fate.UNKNOWN, f"the member reset the request (code {code})"))

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if flags & _ACK:
            return
        for setting, value in _SETTING.iter_unpack(payload):
            if setting == 3:
                self._peer_streams = value
            elif setting == 4:
                for exchange in self._exchanges.values():
                    exchange.send_window += value - self._peer_window
                self._peer_window = value
        self._write(make_frame(_SETTINGS, _ACK, 0))
        if not self.ready.done():
            self._usable = True
            self.ready.set_result(None)
        self._send_unsent()

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not flags & _ACK:
            self._write(make_frame(_PING, _ACK, 0, payload))

    def _on_goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        """The member takes no more calls; those up to the number it names may still be answered."""
        self._usable = False
        last = _U32.unpack_from(payload)[0] & _MAX_STREAM_ID
        for unseen in [each for each in self._exchanges if each > last]:
            self._end(unseen, Failure(Fate.NOT_DONE, "the member is shutting down"))
        self._close_if_drained()

    def _on_window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        (more,) = _U32.unpack(payload)
        if stream_id == 0:
            self._send_window += more
        elif stream_id in self._exchanges:
            self._exchanges[stream_id].send_window += more
        self._send_unsent()

    _HANDLERS: ClassVar[dict[int, Callable[[Connection, int, int, bytes], None]]] = {
        _DATA: _on_data,
        _HEADERS: _on_headers,
        _RST_STREAM: _on_rst_stream,
        _SETTINGS: _on_settings,
        _PING: _on_ping,
        _GOAWAY: _on_goaway,
        _WINDOW_UPDATE: _on_window_update,
        _CONTINUATION: _on_continuation,
    }

    # --- sending ---

    def _end(self, stream_id: int, failure: Failure | None) -> None:
        exchange = self._exchanges.pop(stream_id, None)
        if exchange is not None:
            self._blocked.pop(stream_id, None)
            exchange.finish(failure)
            self._close_if_drained()

    def _close_if_drained(self) -> None:
        if not self.is_usable and not self._exchanges:
            self._fail("the member said goodbye")

    def _send_unsent(self) -> None:
        for exchange in list(self._blocked.values()):
            while exchange.unsent:
                size = min(len(exchange.unsent), _MAX_FRAME, exchange.send_window, self._send_window)
                if size <= 0:
                    break
                chunk, exchange.unsent = exchange.unsent[:size], exchange.unsent[size:]
                exchange.send_window -= size
                self._send_window -= size
                is_end = exchange.unsent_end and not exchange.unsent
                self._write(make_frame(_DATA, _END_STREAM if is_end else 0, exchange.id, bytes(chunk)))
            if not exchange.unsent:
                del self._blocked[exchange.id]

    def _write(self, octets: bytes) -> None:
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(octets)

    def _flush(self) -> None:
        if self._outgoing:
            octets = b"".join(self._outgoing)
            self._outgoing.clear()
            if not self._transport.is_closing():
                self._transport.write(octets)

    def _check_silence(self) -> None:
        """Ping a member that said nothing for a while, if anyone waits for it: etcd forbids pings without a call."""
        silence = self._loop.time() - self._heard
        if not self._exchanges or silence < self._keepalive:
            delay = self._keepalive if not self._exchanges else self._keepalive - silence
            self._timer = self._loop.call_later(delay, self._check_silence)
            return
        self._write(make_frame(_PING, 0, 0, b"\0" * 8))
        self._timer = self._loop.call_later(self._keepalive_timeout, self._check_answer, self._heard)

    def _check_answer(self, heard_before: float) -> None:
        if self._heard == heard_before:
            self._transport.abort()
            self._fail("the member did not answer a ping")
            return
        self._timer = self._loop.call_later(self._keepalive, self._check_silence)
