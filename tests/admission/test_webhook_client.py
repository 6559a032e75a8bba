"""Calls over TLS to a server that lives as long as the test."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kcp.admission.webhook_client import CallFailed, WebhookClient
from kcp.auth import x509

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Answer = Callable[[bytes], Awaitable[bytes]]

NOW = datetime.now(UTC)


class Authority:
    """A CA and a server certificate for 127.0.0.1."""

    def __init__(self, directory: Path, now: datetime = NOW, days: int = 2) -> None:
        ca_key, key = x509.make_key(), x509.make_key()
        self.ca = x509.make_ca("test", ca_key, 10, now)
        certificate = x509.sign_certificate(
            self.ca,
            ca_key,
            key,
            common_name="hook",
            ip_addresses=["127.0.0.1"],
            days=days,
            now=now,
            server=True,
            client=False,
        )
        path = directory / f"{id(self)}.pem"
        path.write_bytes(certificate + key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(path)


@asynccontextmanager
async def serving(authority: Authority, answer: Answer) -> AsyncIterator[tuple[str, list[int]]]:
    """An address, and the ports that its clients came from."""
    ports: list[int] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.append(writer.get_extra_info("peername")[1])
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
                reply = await answer(head + await reader.readexactly(length))
                if not reply:
                    break
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=authority.context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/admit", ports
    finally:
        server.close()


def reply(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def echo(request: bytes) -> bytes:
    return reply(request.rpartition(b"\r\n\r\n")[2])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def client() -> AsyncIterator[WebhookClient]:
    client = WebhookClient()
    yield client
    await client.aclose()


async def test_a_review_is_posted_and_answered_over_one_connection(client: WebhookClient, authority: Authority) -> None:
    async with serving(authority, echo) as (url, ports):
        for body in (b"one", b"two"):
            assert await client.post(url, body, ca_bundle=authority.ca, timeout=5) == body
        await client.aclose()
    assert len(ports) == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(b"x", "404 Not Found"), "the server could not find the requested resource"),
        (
            reply(b"boom", "500 Internal Server Error"),
            'an error on the server ("boom") has prevented the request from succeeding',
        ),
        (
            reply(b"", "302 Found"),
            "the server responded with the status code 302 but did not return more information",
        ),
        (b"", "EOF"),
        (b"junk\r\n\r\n", "Post "),
    ],
    ids=["not found", "error", "redirect", "closed", "no HTTP"],
)
async def test_other_answers_are_failures(client: WebhookClient, authority: Authority, answer: bytes, why: str) -> None:
    async def give(request: bytes) -> bytes:
        return answer

    async with serving(authority, give) as (url, _):
        with pytest.raises(CallFailed) as caught:
            await client.post(url, b"x", ca_bundle=authority.ca, timeout=5)
        await client.aclose()
    assert why in str(caught.value)


async def test_nobody_listening(client: WebhookClient, authority: Authority) -> None:
    async with serving(authority, echo) as (url, _):
        pass
    with pytest.raises(CallFailed) as caught:
        await client.post(url, b"x", ca_bundle=authority.ca, timeout=5)
    address = url.removeprefix("https://").partition("/")[0]
    assert str(caught.value) == f'Post "{url}": dial tcp {address}: connect: connection refused'


async def test_a_host_that_does_not_exist(client: WebhookClient) -> None:
    with pytest.raises(CallFailed, match=r"dial tcp: lookup hook\.invalid: no such host"):
        await client.post("https://hook.invalid/", b"x", ca_bundle=b"", timeout=30)


async def test_an_answer_that_does_not_come_in_time(client: WebhookClient, authority: Authority) -> None:
    async def never(request: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with serving(authority, never) as (url, _):
        with pytest.raises(CallFailed, match="context deadline exceeded"):
            await client.post(url, b"x", ca_bundle=authority.ca, timeout=0.05)


async def test_a_certificate_of_somebody_else(client: WebhookClient, authority: Authority, tmp_path: Path) -> None:
    async with serving(authority, echo) as (url, _):
        with pytest.raises(CallFailed, match="x509: certificate signed by unknown authority"):
            await client.post(url, b"x", ca_bundle=Authority(tmp_path).ca, timeout=5)


async def test_a_certificate_that_is_over(client: WebhookClient, tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW - timedelta(days=5), days=1)
    async with serving(authority, echo) as (url, _):
        with pytest.raises(CallFailed, match="x509: certificate has expired or is not yet valid"):
            await client.post(url, b"x", ca_bundle=authority.ca, timeout=5)


async def test_a_name_that_is_not_in_the_certificate(client: WebhookClient, authority: Authority) -> None:
    async with serving(authority, echo) as (url, _):
        with pytest.raises(CallFailed, match="x509: Hostname mismatch"):
            await client.post(url.replace("127.0.0.1", "localhost"), b"x", ca_bundle=authority.ca, timeout=5)


async def test_a_bundle_that_is_none(client: WebhookClient) -> None:
    with pytest.raises(CallFailed, match="unable to load root certificates"):
        await client.post("https://127.0.0.1:1/", b"x", ca_bundle=b"nonsense", timeout=5)
