"""Bytes to a server as a broken or hostile client sends them, and what comes back."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.kcp_server import Api, Endpoint

TIMEOUT = 20.0  # seconds


class RawAnswer(NamedTuple):
    code: int
    head: bytes
    content: bytes

    @property
    def body(self) -> Any:  # noqa: ANN401
        return json.loads(self.content)


@contextlib.contextmanager
def connected(endpoint: Endpoint) -> Iterator[socket.socket]:
    with (
        socket.create_connection((endpoint.host, endpoint.port), TIMEOUT) as plain,
        endpoint.tls.wrap_socket(plain, server_hostname=endpoint.host) as connection,
    ):
        # What is sent is there, and does not wait in the kernel for more to send with it.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def head(api: Api, method: str, path: str, *headers: str, prefix: str | None = None) -> bytes:
    """The head of a request, up to the headers that the caller adds."""
    start = f"{method} {api.prefix if prefix is None else prefix}{path} HTTP/1.1"
    lines = [start, f"Host: {api.endpoint.host}", f"Authorization: Bearer {api.token}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def send(api: Api, *pieces: bytes) -> list[RawAnswer]:
    """All answers until the server closes, having sent these bytes. A server may close before it has read them all."""
    with connected(api.endpoint) as connection:
        with contextlib.suppress(OSError):
            for piece in pieces:
                connection.sendall(piece)
        return answers(read_all(connection))


def read_all(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            received += piece
    return received


def answers(received: bytes) -> list[RawAnswer]:
    """Answers one after the other, each with a Content-Length or, as the last, up to the end."""
    found = []
    while received:
        start, _, rest = received.partition(b"\r\n\r\n")
        size = next(
            (int(line.split(b":")[1]) for line in start.split(b"\r\n") if line.lower().startswith(b"content-length:")),
            len(rest),
        )
        found.append(RawAnswer(int(start.split()[1]), start, rest[:size]))
        received = rest[size:]
    return found
