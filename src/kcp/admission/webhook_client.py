"""The door to aiohttp: calls to webhooks, over connections that are kept, with failures in Go's words."""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from kcp.meta.gotext import quote

if TYPE_CHECKING:
    import aiohttp

_MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, */*", "User-Agent": "kcp-admission"}
_CACHED_CONTEXTS: Final = 256
_UNKNOWN_AUTHORITY: Final = (18, 19, 20, 21)  # OpenSSL's codes for a chain that ends in nobody we trust
_EXPIRED: Final = 10
_BODY_SHOWN: Final = 2048


class CallFailed(Exception):
    """The webhook gave no answer; the text is the end of Kubernetes' sentence about it."""


class WebhookCaller(Protocol):
    """Sends one review. Raises CallFailed."""

    async def post(self, url: str, body: bytes, *, ca_bundle: bytes, timeout: float) -> bytes: ...


class WebhookClient:
    """Must be made and closed in the event loop that uses it."""

    def __init__(self, concurrency: int = 256, per_host: int = 32) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._concurrency, self._per_host = concurrency, per_host
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, *, ca_bundle: bytes, timeout: float) -> bytes:
        import aiohttp

        try:
            context = _context(ca_bundle)
        except ssl.SSLError as error:
            raise CallFailed(f"unable to load root certificates: {error.reason or error}") from None
        try:
            async with asyncio.timeout(timeout), self._slots:
                return await self._post(url, body, context)
        except TimeoutError:
            raise CallFailed(f"Post {quote(url)}: context deadline exceeded") from None
        except aiohttp.ClientError as error:
            raise CallFailed(f"Post {quote(url)}: {_explain(error)}") from None

    async def _post(self, url: str, body: bytes, context: ssl.SSLContext) -> bytes:
        if self._session is None:
            self._session = self._open()
        async with self._session.post(url, data=body, ssl=context, allow_redirects=False) as response:
            answer = await response.content.read(_MAX_ANSWER_BYTES)
            if not response.content.at_eof():
                raise CallFailed(f"Post {quote(url)}: http: response body too large")
            if response.status != 200:
                raise CallFailed(_refused(response.status, answer))
            return answer

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp  # takes a while, and few installations have webhooks

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._concurrency, limit_per_host=self._per_host, ttl_dns_cache=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
            headers=_HEADERS,
        )

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


@lru_cache(maxsize=_CACHED_CONTEXTS)
def _context(ca_bundle: bytes) -> ssl.SSLContext:
    """Without a bundle, the machine's roots decide."""
    context = ssl.create_default_context(cadata=ca_bundle.decode(errors="replace") if ca_bundle else None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Go trusts whatever is in the bundle, also what did not sign itself, and minds fewer formalities.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
    return context


def _explain(error: aiohttp.ClientError) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: x509: {_explain_certificate(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        why = (error.strerror or "").lower() or str(error.os_error)
        if isinstance(error.os_error, ConnectionRefusedError):
            why = "connection refused"
        return f"dial tcp {error.host}:{error.port}: connect: {why}"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError):
        return "EOF"
    return str(error) or type(error).__name__


def _explain_certificate(error: Exception) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return str(error)
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code == _EXPIRED:
        return "certificate has expired or is not yet valid"
    return error.verify_message


def _refused(status: int, answer: bytes) -> str:
    """What client-go makes of an answer that is no success."""
    sentence = {
        400: "the server rejected our request for an unknown reason",
        401: "the server has asked for the client to provide credentials",
        403: "the server does not allow access to the requested resource",
        404: "the server could not find the requested resource",
        405: "the server does not allow this method on the requested resource",
        413: "the request is too large",
        429: "the server has received too many requests and has asked us to try again later",
        503: "the server is currently unable to handle the request",
    }.get(status)
    if sentence is not None:
        return sentence
    text = answer[:_BODY_SHOWN].decode(errors="replace").strip() or "unknown"
    if status >= 500:
        return f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"
