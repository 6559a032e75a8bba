"""One HTTP request, as the handlers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from kcp.endpoints.request_info import UNKNOWN, RequestInfo
from kcp.meta import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kcp.auth.user import UserInfo

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

MAX_BODY_BYTES = 3 * 1024 * 1024  # as kube-apiserver; what may be stored is smaller still


class Request:
    """`cluster` and `user` are set by filters. Headers have lower-case names, and the first of several values."""

    __slots__ = (
        "_body",
        "_query",
        "all_headers",
        "certificate",
        "cluster",
        "headers",
        "info",
        "method",
        "path",
        "query_string",
        "receive",
        "served",
        "streaming",
        "user",
        "warnings",
    )

    cluster: str
    user: UserInfo

    def __init__(self, scope: dict[str, Any], receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query_string: bytes = scope["query_string"]
        self.all_headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.headers: dict[bytes, bytes] = dict(reversed(self.all_headers))
        self.receive = receive
        self.info: RequestInfo = UNKNOWN
        self.certificate: bytes | None = None
        self.served = False  # a resource that exists is asked for
        self.streaming = False  # the answer has begun
        self.warnings: list[str] = []
        self._body: bytes | None = None
        self._query: dict[str, list[str]] | None = None

    @property
    def query(self) -> dict[str, list[str]]:
        if self._query is None:
            text = self.query_string
            self._query = parse_qs(text.decode("latin-1"), keep_blank_values=True) if text else {}
        return self._query

    def parameter(self, name: str, default: str = "") -> str:
        if not self.query_string:
            return default
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """As Kubernetes reads booleans: anything but false and 0 is true."""
        values = self.query.get(name) if self.query_string else None
        return values is not None and values[0].lower() not in ("false", "0")

    def header(self, name: bytes, default: str = "") -> str:
        value = self.headers.get(name)
        return default if value is None else value.decode("latin-1")

    async def body(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """The whole body. Raises RequestEntityTooLarge before more than `limit` bytes are kept."""
        if self._body is None:
            self._body = await self._read(limit)
        return self._body

    async def _read(self, limit: int) -> bytes:
        length = self.headers.get(b"content-length")
        if length is not None and (not length.isdigit() or int(length) > limit):
            raise _too_large(limit)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            if not message.get("more_body"):
                return b"".join((*chunks, chunk)) if chunks else chunk
            chunks.append(chunk)


class ClientGone(Exception):
    """The client hung up before it had sent everything; nobody is there to answer."""


def _too_large(limit: int) -> errors.RequestEntityTooLarge:
    return errors.RequestEntityTooLarge(f"limit is {limit}")
