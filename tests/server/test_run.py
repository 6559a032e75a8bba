"""A whole server in this process: start, use, stop."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import os
import resource
import signal
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from kcp.endpoints.http_options import HTTPOptions
from kcp.meta.clock import SystemClock
from kcp.meta.codec import loads_yaml
from kcp.meta.fake_clock import FakeClock
from kcp.server.kubeconfig import open_admin_tokens
from kcp.server.options import ServerOptions, ServingOptions
from kcp.server.run import find_url, fit_to_files, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kcp.server.run import Running


@pytest.fixture
def options(tmp_path: Path) -> ServerOptions:
    return ServerOptions(tmp_path / "root", serving=ServingOptions(bind_address="127.0.0.1", secure_port=0))


@contextlib.asynccontextmanager
async def started(options: ServerOptions, **more: Any) -> AsyncIterator[tuple[Running, asyncio.Task[None]]]:  # noqa: ANN401
    ready: asyncio.Future[Running] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(options, ready.set_result, **more))
    both: list[asyncio.Future[Any]] = [task, ready]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    running = await ready
    yield running, task
    running.stop()
    await task


async def get(running: Running, path: str) -> tuple[int, bytes]:
    """As a client that has only the kubeconfig."""
    config = loads_yaml(running.kubeconfig.read_bytes())
    authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
    tls = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    host, _, port = running.url.removeprefix("https://").rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return int(head.split()[1]), body


async def test_a_server_is_ready_when_it_says_so(options: ServerOptions) -> None:
    async with started(options) as (running, _):
        assert running.url.startswith("https://127.0.0.1:")
        assert await get(running, "/readyz") == (200, b"ok")
        assert running.store.revision >= 0


async def test_the_tokens_in_the_kubeconfig_are_those_of_the_server(options: ServerOptions) -> None:
    async with started(options) as (running, _):
        users = loads_yaml(running.kubeconfig.read_bytes())["users"]
    assert open_admin_tokens(options.root_directory, options.kubeconfig).shard_admin == users[1]["user"]["token"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_server(options: ServerOptions, number: signal.Signals) -> None:
    async with started(options) as (_, task):
        os.kill(os.getpid(), number)
        await task


async def test_a_stopping_server_serves_on_but_is_not_ready(options: ServerOptions) -> None:
    clock = FakeClock()
    serving = dataclasses.replace(options.serving, shutdown_delay=10.0)
    async with started(dataclasses.replace(options, serving=serving), clock=PresentClock(clock)) as (running, task):
        running.stop()
        await clock.wait_for_sleepers(3)
        code, body = await get(running, "/readyz")
        assert (code, b"[-]shutdown failed: reason withheld" in body) == (500, True)
        assert (await get(running, "/livez"))[0] == 200
        clock.advance(10)
        await task


class PresentClock:
    """A fake clock that tells the real time: certificates must be valid for the client too."""

    def __init__(self, clock: FakeClock) -> None:
        self.now = SystemClock().now
        self.monotonic = clock.monotonic
        self.sleep = clock.sleep


async def test_told_twice_a_server_stops_at_once(options: ServerOptions) -> None:
    async with started(options) as (running, task):
        _, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
        running.stop()
        running.stop()
        await task
        writer.close()


async def test_a_port_that_is_taken_is_an_error_and_not_a_server(options: ServerOptions, tmp_path: Path) -> None:
    async with started(options) as (running, _):
        port = int(running.url.rpartition(":")[2])
        serving = dataclasses.replace(options.serving, secure_port=port)
        with pytest.raises(OSError, match="cannot listen on"):
            await serve(ServerOptions(tmp_path / "second", serving=serving), lambda _: None)


class Listener:
    def getsockname(self) -> tuple[str, int]:
        return "", 6443


@pytest.mark.parametrize(
    ("address", "external", "url"),
    [
        ("0.0.0.0", "", "https://127.0.0.1:6443"),
        ("::", "", "https://127.0.0.1:6443"),
        ("10.0.0.1", "", "https://10.0.0.1:6443"),
        ("::1", "", "https://[::1]:6443"),
        ("0.0.0.0", "kcp.example.com", "https://kcp.example.com:6443"),
        ("0.0.0.0", "[2001:db8::1]", "https://[2001:db8::1]:6443"),
    ],
)
def test_where_clients_find_the_server(address: str, external: str, url: str) -> None:
    serving = ServingOptions(bind_address=address, external_hostname=external)
    assert find_url(serving, Listener()) == url  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "connections"),
    [((1024, 1024), 768), ((64, 1_000_000), 20_000), ((resource.RLIM_INFINITY,) * 2, 20_000), ((1, 1), 16)],
    ids=["few files", "raised", "no limit", "absurd"],
)
def test_connections_fit_the_files_a_process_may_have(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], connections: int
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda *arguments: raised.append(arguments))
    assert fit_to_files(HTTPOptions()).max_connections == connections
    assert len(raised) == (limits[0] != limits[1])


def test_a_limit_that_cannot_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, 2000))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert fit_to_files(HTTPOptions()).max_connections == 744
