"""The servers that are measured: how to reach one, and how to start one of our own."""

from __future__ import annotations

import base64
import contextlib
import select
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from benchmarks.api.wire import Connection, ConnectionLost
from kcp.meta import codec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_START_SECONDS = 60.0
_STOP_SECONDS = 60.0


class BenchmarkFailed(Exception):
    """A figure cannot be had; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server, with the credentials of an admin."""

    name: str
    host: str
    port: int
    prefix: str
    """Before every path: a logical cluster, or nothing."""

    token: str
    tls: ssl.SSLContext = field(repr=False)
    pids: tuple[int, ...] = ()
    """Local processes whose trees are counted as the server's memory."""

    ready_ms: float | None = None
    """From the start of its process to its first answer, if it was started here."""

    def request(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        """The bytes of a request. `%` in a body stays as it is."""
        return b"%b%b" % (self.head(method, path, content_type, len(body)), body)

    def head(
        self, method: str, path: str, content_type: str, length: int, *, accept: str = "application/json"
    ) -> bytes:
        lines = [
            f"{method} {self.prefix}{path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.token}",
            "User-Agent: kcp-benchmark",
            f"Accept: {accept}",
        ]
        if length:
            lines += [f"Content-Type: {content_type}", f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()


def make_tls(ca_file: str = "", ca_text: str = "", *, insecure: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file or None, cadata=ca_text or None)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def make_target(name: str, url: str, token: str, tls: ssl.SSLContext, prefix: str = "", **more: Any) -> Target:  # noqa: ANN401
    """A path in the URL is a prefix too, so that the server of a kubeconfig can be given as it is."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise BenchmarkFailed(f"{url!r} is no https URL")
    whole = parts.path.rstrip("/") + prefix.rstrip("/")
    return Target(name=name, host=parts.hostname, port=parts.port or 443, prefix=whole, token=token, tls=tls, **more)


@contextlib.contextmanager
def start_kcp(directory: Path) -> Iterator[Target]:
    """A server of our own on a free port, stopped at the end."""
    kubeconfig = directory / "root" / "admin.kubeconfig"
    command = [sys.executable, "-m", "kcp.cli.main", "start"]
    command += ["--root-directory", str(kubeconfig.parent), "--bind-address", "127.0.0.1", "--secure-port", "0"]
    with (directory / "log").open("wb") as log:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        target = _await_ready(process, kubeconfig, started, directory / "log")
        yield target
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(process: subprocess.Popen[bytes], kubeconfig: Path, started: float, log: Path) -> Target:
    while time.perf_counter() - started < _START_SECONDS:
        if process.poll() is not None:
            raise BenchmarkFailed(f"kcp start ended:\n{log.read_text(errors='replace')}")
        with contextlib.suppress(FileNotFoundError, OSError, ConnectionLost, KeyError, TypeError, ValueError):
            target = read_kubeconfig(kubeconfig, process.pid)
            if _is_ready(target):
                ready_ms = (time.perf_counter() - started) * 1000
                return read_kubeconfig(kubeconfig, process.pid, ready_ms)
        time.sleep(0.01)
    raise BenchmarkFailed(f"kcp start is not ready after {_START_SECONDS:.0f} s")


def read_kubeconfig(path: Path, pid: int, ready_ms: float | None = None) -> Target:
    """The current context of a kubeconfig that has one cluster and one user by name."""
    config = codec.loads_yaml(path.read_bytes())
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    token = _named(config["users"], context["user"])["user"]["token"]
    tls = make_tls(ca_text=base64.b64decode(cluster["certificate-authority-data"]).decode())
    return make_target("kcp", cluster["server"], token, tls, pids=(pid,), ready_ms=ready_ms)


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _is_ready(target: Target) -> bool:
    return call(target, "GET", "/readyz")[0] == 200


def call(target: Target, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """One request on a connection of its own: its status and its body."""
    connection = Connection(target)
    try:
        connection.send(target.request(method, path, body))
        return wait_for_answer(connection)
    finally:
        connection.close()


def wait_for_answer(connection: Connection) -> tuple[int, bytes]:
    poll = select.poll()
    poll.register(connection.fileno, select.POLLIN)
    while not connection.receive():
        if not poll.poll(60_000):
            raise BenchmarkFailed("no answer within a minute")
    assert connection.answer is not None
    return connection.answer.status, connection.answer.body
