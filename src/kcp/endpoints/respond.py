"""The only printer: answers and errors as bytes with their headers."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any

from kcp.endpoints import negotiation
from kcp.meta import codec
from kcp.meta.errors import NotAcceptable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.endpoints.request import Request, Send
    from kcp.meta.codec import Object
    from kcp.meta.errors import StatusError

COMPRESS_FROM_BYTES = 128 * 1024  # kube-apiserver's limit: smaller answers cost more to compress than to send
_CACHE_CONTROL = (b"cache-control", b"no-cache, private")
_CONTENT_TYPES = {name: (b"content-type", name.encode()) for name in negotiation.OBJECT_TYPES}
_TRUE = ("1", "t", "T", "TRUE", "true", "True")  # what Go's strconv.ParseBool takes for true
# Warnings longer than this together are cut to so many characters each, as in kube-apiserver.
_WARNING_CHARACTERS, _WARNING_ITEM_CHARACTERS = 4 * 1024, 256
_CONTROL, _QUOTABLE, _ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f]"), re.compile(r'["\\]'), r"\\\g<0>"
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


def error_response(error: StatusError, request: Request) -> Response:
    """A Status, in the client's format where that is one we have."""
    headers = []
    if error.retry_after_seconds:
        headers.append((b"retry-after", str(error.retry_after_seconds).encode()))
    if error.code == 413:  # what is still to come is not wanted
        headers.append((b"connection", b"close"))
    if error.code == 401:
        headers.append((b"www-authenticate", b'Bearer realm="kcp"'))
    try:
        media = negotiation.negotiate(request.header(b"accept"), custom=True, transforms=False).name
    except NotAcceptable:
        media = negotiation.JSON
    body = encode(codec.dumps(error.to_status()), media, pretty=wants_pretty(request))
    return Response(error.code, body, media, headers)


def wants_pretty(request: Request) -> bool:
    """Asked for, or sent by a program that a person looks at directly."""
    if b"pretty" in request.query_string and (asked := request.parameter("pretty")):
        return asked in _TRUE
    return request.headers.get(b"user-agent", b"").startswith((b"curl", b"Wget", b"Mozilla/5.0"))


def encode(body: bytes, media: str, *, pretty: bool = False) -> bytes:
    """JSON bytes in the format the client chose."""
    if media == negotiation.JSON:
        return codec.dumps_pretty(codec.loads(body)) if pretty else body
    if media == negotiation.YAML:
        return codec.dumps_yaml(codec.sort_keys(codec.loads(body))).encode()
    from kcp.endpoints import protobuf

    return protobuf.encode(codec.loads(body))


async def send_response(response: Response, request: Request, send: Send) -> None:
    body = response.body
    headers = [*response.headers]
    if not any(name == b"cache-control" for name, _ in headers):
        headers.append(_CACHE_CONTROL)
    if response.content_type:
        headers.append(_CONTENT_TYPES.get(response.content_type) or (b"content-type", response.content_type.encode()))
    if request.warnings:
        headers += warning_headers(request.warnings)
    if len(body) >= COMPRESS_FROM_BYTES and _accepts_gzip(request):
        body = _gzip(body)
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
    if response.status != 304:  # clients take the headers of "not modified" for those of what they have
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": _START, "status": response.status, "headers": headers})
    await send({"type": _BODY, "body": b"" if request.method == "HEAD" else body})


def warning_headers(warnings: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """`299 - "text"` (RFC 7234) for each warning, once; all of them shortened if they are too long together."""
    texts = [text for text in dict.fromkeys(warnings) if text and not _CONTROL.search(text)]
    if sum(map(len, texts)) > _WARNING_CHARACTERS:
        shortened, size = [], 0
        for text in texts:
            if size < _WARNING_CHARACTERS:
                shortened.append(text[:_WARNING_ITEM_CHARACTERS])
                size += len(shortened[-1])
        texts = shortened
    return [(b"warning", f'299 - "{_QUOTABLE.sub(_ESCAPED, text)}"'.encode()) for text in texts]


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
