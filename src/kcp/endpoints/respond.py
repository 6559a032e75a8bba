"""The only printer: answers and errors as bytes with their headers."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from kcp.endpoints import negotiation
from kcp.meta import codec
from kcp.meta.gotext import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.endpoints.request import Request, Send
    from kcp.meta.codec import Object
    from kcp.meta.errors import StatusError

COMPRESS_FROM_BYTES = 128 * 1024  # kube-apiserver's limit: smaller answers cost more to compress than to send
_CACHE_CONTROL = (b"cache-control", b"no-cache, private")
_CONTENT_TYPES = {name: (b"content-type", name.encode()) for name in negotiation.OBJECT_TYPES}
_START, _BODY = "http.response.start", "http.response.body"


class Response:
    """A whole answer."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes,
        content_type: str = negotiation.JSON,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers


def json_response(status: int, document: Any) -> Response:  # noqa: ANN401 - any JSON document
    return Response(status, codec.dumps(document))


def error_response(error: StatusError, accept: str = "") -> Response:
    """A Status, in the client's format where that is one we have."""
    headers = []
    if error.retry_after_seconds:
        headers.append((b"retry-after", str(error.retry_after_seconds).encode()))
    if error.code == 401:
        headers.append((b"www-authenticate", b'Bearer realm="kcp"'))
    status = error.to_status()
    media = negotiation.JSON
    if accept and negotiation.PROTOBUF in accept:
        from kcp.endpoints import protobuf

        first = negotiation.parse_accept(accept)[:1]
        if first and f"{first[0].type}/{first[0].subtype}" == negotiation.PROTOBUF:
            return Response(error.code, protobuf.encode(status), negotiation.PROTOBUF, headers)
    return Response(error.code, codec.dumps(status), media, headers)


def encode(body: bytes, media: str, *, pretty: bool = False) -> bytes:
    """JSON bytes in the format the client chose."""
    if media == negotiation.JSON:
        return codec.dumps_pretty(codec.loads(body)) if pretty else body
    if media == negotiation.YAML:
        return codec.dumps_yaml(codec.sort_keys(codec.loads(body))).encode()
    from kcp.endpoints import protobuf

    return protobuf.encode(codec.loads(body))


async def send_response(response: Response, request: Request | None, send: Send) -> None:
    body = response.body
    headers = [
        _CACHE_CONTROL,
        _CONTENT_TYPES.get(response.content_type) or (b"content-type", response.content_type.encode()),
        *response.headers,
    ]
    if request is not None:
        if request.warnings:
            headers += [(b"warning", warning_header(text)) for text in _unique(request.warnings)]
        if len(body) >= COMPRESS_FROM_BYTES and _accepts_gzip(request):
            body = _gzip(body)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        if request.method == "HEAD":
            headers.append((b"content-length", str(len(body)).encode()))
            body = b""
    if request is None or request.method != "HEAD":
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": _START, "status": response.status, "headers": headers})
    await send({"type": _BODY, "body": body})


def warning_header(text: str) -> bytes:
    """`299 - "text"` (RFC 7234), the text quoted as HTTP wants it."""
    cleaned = "".join(character if character >= " " and character != "\x7f" else " " for character in text)
    quoted = cleaned.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode()


def _unique(warnings: list[str]) -> list[str]:
    return list(dict.fromkeys(warnings))


def _accepts_gzip(request: Request) -> bool:
    return b"gzip" in request.headers.get(b"accept-encoding", b"")


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return compressor.compress(body) + compressor.flush()


def not_found_page() -> Response:
    """What Go's router says where there is no API at all."""
    headers = ((b"x-content-type-options", b"nosniff"),)
    return Response(404, b"404 page not found\n", "text/plain; charset=utf-8", headers)


def success_status(details: Object) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def quoted(text: str) -> str:
    return quote(text)
