"""One TLS connection and the little of HTTP/1.1 that a load generator needs.

A general client spends more on a request than the server that it measures. This one sends bytes that were built
before, looks in an answer for its status and its end, and decodes a body only when asked.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.api.target import Target

_RECEIVE_BYTES = 1 << 18
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length:"
_CHUNKED = b"\r\ntransfer-encoding: chunked"
_LAST_CHUNK = b"0\r\n\r\n"
_EVENT_END = b"}\n"


class ConnectionLost(Exception):
    """The server closed a connection in the middle of an answer."""


class Answer:
    """One HTTP answer as it arrives. Bodies are JSON: they hold no bare CR LF, and so the end of a chunked one is
    found without following its chunks."""

    __slots__ = ("_head", "_missing", "_parts", "status")

    def __init__(self) -> None:
        self.status = 0
        self._head = b""
        self._parts: list[bytes] = []
        self._missing = -1
        """Bytes of the body that have not arrived; -1 while unknown, for a head or a chunked body."""

    def feed(self, received: bytes) -> bool:
        """Whether the answer is complete."""
        if not self.status:
            received = self._head + received
            end = received.find(_HEAD_END)
            if end < 0:
                self._head = received
                return False
            self._read_head(received[:end])
            received = received[end + 4 :]
        if received:
            self._parts.append(received)
        if self._missing >= 0:
            self._missing -= len(received)
            return self._missing <= 0
        return self._ends_with_last_chunk(received)

    def _read_head(self, head: bytes) -> None:
        self._head = head.lower()
        self.status = int(head[9:12])
        at = self._head.find(_LENGTH)
        if at >= 0:
            self._missing = int(self._head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
        elif _CHUNKED not in self._head:
            self._missing = 0

    def _ends_with_last_chunk(self, received: bytes) -> bool:
        if len(received) < 7 and len(self._parts) > 1:  # the mark came in pieces
            received = b"".join(self._parts[-7:])
        return received.endswith(b"\r\n" + _LAST_CHUNK) or received == _LAST_CHUNK

    @property
    def body(self) -> bytes:
        body = b"".join(self._parts)
        return decode_chunks(body) if _CHUNKED in self._head else body


def decode_chunks(body: bytes) -> bytes:
    """The content of a complete chunked body."""
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].split(b";", 1)[0], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2


class EventCounter:
    """Counts the events of a watch: each is one line of JSON, and only its end is followed by a newline."""

    __slots__ = ("_tail", "count")

    def __init__(self) -> None:
        self.count = 0
        self._tail = b""

    def feed(self, received: bytes) -> None:
        if self._tail == b"}" and received[:1] == b"\n":
            self.count += 1
        self.count += received.count(_EVENT_END)
        self._tail = received[-1:]


class Connection:
    """A connection without waiting: whoever owns it polls `fileno`."""

    __slots__ = ("_answer", "_socket", "answer", "fileno", "started")

    def __init__(self, target: Target) -> None:
        raw = socket.create_connection((target.host, target.port), timeout=60)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = target.tls.wrap_socket(raw, server_hostname=target.host)
        self._socket.setblocking(False)
        self.fileno = self._socket.fileno()
        self.answer: Answer | None = None
        """The last complete one."""
        self._answer = Answer()
        self.started = 0.0

    def send(self, request: bytes) -> None:
        try:
            sent = self._socket.send(request)
        except ssl.SSLWantWriteError:
            sent = 0
        if sent < len(request):
            self._socket.settimeout(60)
            self._socket.sendall(request[sent:])
            self._socket.setblocking(False)

    def receive(self) -> bool:
        """Take what has arrived; whether that completes an answer."""
        try:
            received = self._socket.recv(_RECEIVE_BYTES)
            if not received:
                raise ConnectionLost
            complete = self._answer.feed(received)
            while not complete and self._socket.pending():
                complete = self._answer.feed(self._socket.recv(_RECEIVE_BYTES))
        except ssl.SSLWantReadError:  # a part of a record, or one without data, such as a session ticket
            return False
        if complete:
            self.answer, self._answer = self._answer, Answer()
        return complete

    def receive_raw(self) -> bytes:
        """What has arrived, as it is; nothing if that is a part of a record."""
        try:
            received = self._socket.recv(_RECEIVE_BYTES)
            if not received:
                raise ConnectionLost
            while self._socket.pending():
                received += self._socket.recv(_RECEIVE_BYTES)
        except ssl.SSLWantReadError:
            return b""
        return received

    def close(self) -> None:
        self._socket.close()
