"""Accepting connections: how many, with which certificate, and how they end when the server stops.

Must not read requests: that is `http.py`. Connections are accepted one by one instead of by the loop's own server, for
three reasons: their number has a bound that counts handshakes, an unfinished handshake can make room for a newcomer,
and a renewed certificate or client authority holds from the next connection on (`tls` is simply replaced).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import socket
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final

from kcp.endpoints.http import DRAINING, Connections

if TYPE_CHECKING:
    import ssl

    from kcp.endpoints.http import Application
    from kcp.endpoints.http_options import HTTPOptions
    from kcp.meta.clock import Clock

_log = logging.getLogger(__name__)

# The process or the machine has no room: it may have some in a moment.
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def listen(address: str, port: int, options: HTTPOptions) -> socket.socket:
    """A bound and listening socket; port 0 is any free one. Raises OSError with the address in it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    dual = family is socket.AF_INET6 and address == "::" and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server((address, port), family=family, backlog=options.backlog, dualstack_ipv6=dual)
    except OSError as error:
        reason = error.strerror.partition(" (while")[0] if error.strerror else str(error)
        raise OSError(error.errno, f"cannot listen on {address} port {port}: {reason}") from error
    listener.setblocking(False)
    # On Linux, accepted sockets inherit these: the kernel drops peers that are gone, or that never read.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    probe = max(int(options.peer_timeout // 3), 1)
    for name, value in (
        ("TCP_KEEPIDLE", probe),
        ("TCP_KEEPINTVL", probe),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", int(options.peer_timeout * 1000)),
    ):
        if hasattr(socket, name):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return listener


class HTTPServer:
    """Serves an ASGI application on listening sockets.

    `async with server: ...` accepts; leaving it drains. `draining` is in every request's scope, as
    `scope["state"]["draining"]`: whoever serves a watch ends it when the event is set.
    """

    def __init__(
        self,
        app: Application,
        listeners: list[socket.socket],
        *,
        tls: ssl.SSLContext | None,
        options: HTTPOptions,
        clock: Clock,
        draining: asyncio.Event | None = None,
    ) -> None:
        self.tls = tls
        self.draining = draining or asyncio.Event()
        self._is_hurried = False
        self._listeners = listeners
        self._options = options
        self._clock = clock
        self._connections = Connections(app, options, {DRAINING: self.draining})
        self._connections.on_lost = self._on_lost
        self._handshakes: dict[asyncio.Task[None], None] = {}  # in the order of their beginning
        self._room = asyncio.Event()  # set whenever a connection or a handshake ends
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def connections(self) -> int:
        """How many are open, handshakes not included."""
        return len(self._connections.connections)

    @property
    def handshakes(self) -> int:
        return len(self._handshakes)

    @property
    def total_requests(self) -> int:
        return self._connections.total_requests

    async def __aenter__(self) -> HTTPServer:
        self._refresh_date()
        self._tasks = [asyncio.create_task(self._accept(listener)) for listener in self._listeners]
        self._tasks.append(asyncio.create_task(self._sweep()))
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.drain()

    # Accepting

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wait_for_room()
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    _log.warning("connections wait reason=%r", error.strerror)
                    await self._clock.sleep(0.1)
                continue  # otherwise the client has left already
            if len(self._handshakes) >= self._options.max_handshakes:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]  # at once: it ends when the loop comes to it
                oldest.cancel()
            task = loop.create_task(self._handshake(sock))
            self._handshakes[task] = None
            task.add_done_callback(functools.partial(self._on_handshake, sock))

    async def _wait_for_room(self) -> None:
        while self.connections + self.handshakes >= self._options.max_connections:
            self._room.clear()
            await self._room.wait()

    async def _handshake(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        limits: dict[str, Any] = {}
        if self.tls:
            limits["ssl_handshake_timeout"] = self._options.handshake_timeout
            limits["ssl_shutdown_timeout"] = self._options.shutdown_timeout
        await loop.connect_accepted_socket(self._connections.make_connection, sock, ssl=self.tls, **limits)

    def _on_handshake(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)
        self._room.set()
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            sock.close()
        if isinstance(error, OSError):  # ssl.SSLError, timeouts and resets among them
            _log.debug("handshake failed error=%r", str(error))
        elif error is not None:
            _log.error("connection could not be set up error=%r", error)

    def _on_lost(self) -> None:
        self._room.set()

    # Limits

    async def _sweep(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            await self._clock.sleep(self._options.sweep_interval)
            self._refresh_date()
            self.enforce(now())

    def _refresh_date(self) -> None:
        date = formatdate(self._clock.now().timestamp(), usegmt=True).encode()
        self._connections.default_headers = [(b"date", date)]

    def enforce(self, now: float) -> None:
        """End the connections that are over one of their limits at `now`, on the loop's clock."""
        for connection in self._connections.members():
            connection.enforce(now)

    # Stopping

    async def drain(self) -> None:
        """Accept no more, let requests finish for `drain_timeout` seconds, end what remains. Safe to call twice."""
        self.draining.set()
        for task in self._tasks:
            task.cancel()
        for handshake in list(self._handshakes):
            handshake.cancel()
        await asyncio.gather(*self._tasks, *self._handshakes, return_exceptions=True)
        self._tasks = []
        for listener in self._listeners:
            listener.close()
        for connection in self._connections.members():
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.drain_timeout):
                while self._connections.connections and not self._is_hurried:
                    self._room.clear()
                    await self._room.wait()
        await self._abort()

    def hurry(self) -> None:
        """Do not wait for requests any longer."""
        self._is_hurried = True
        self._room.set()

    async def _abort(self) -> None:
        remaining = self._connections.members()
        if remaining:
            _log.warning("requests cut off connections=%d", len(remaining))
        for connection in remaining:
            connection.transport.abort()
        await asyncio.sleep(0)  # lets applications see the disconnect
        tasks = list(self._connections.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
