"""A real `kcp start` process for tests: started, asked, killed and started again.

It must not know what the tests ask, and it leaves no process behind.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import select
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

START_TIMEOUT = 30.0  # seconds; with the whole suite beside it on two cores
ANSWER_TIMEOUT = 30.0  # seconds

# The command's own entry point, in a process that dies with its parent.
_START = "import ctypes; ctypes.CDLL(None).prctl(1, 9); from kcp.cli.main import main; main()"


class Answer(NamedTuple):
    code: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def body(self) -> Any:  # noqa: ANN401
        return json.loads(self.content)

    def created(self) -> Any:  # noqa: ANN401
        """The object, where nothing but success will do."""
        assert self.code in (200, 201), self.content
        return self.body


class Endpoint(NamedTuple):
    """Where a server listens, and by which authority it is known."""

    host: str
    port: int
    tls: ssl.SSLContext


class Api:
    """Requests as one user to one logical cluster, over one connection that is opened again when it breaks."""

    def __init__(self, endpoint: Endpoint, token: str | None, prefix: str = "/clusters/root") -> None:
        self.endpoint = endpoint
        self.token = token
        self.prefix = prefix
        self._connection: http.client.HTTPSConnection | None = None
        self._derived: list[Api] = []

    def at(self, cluster: str) -> Api:
        """The same user in another cluster. Closed with this one."""
        return self._derive(self.token, f"/clusters/{cluster}")

    def bearing(self, token: str | None) -> Api:
        """Another user in the same cluster. Closed with this one."""
        return self._derive(token, self.prefix)

    def _derive(self, token: str | None, prefix: str) -> Api:
        self._derived.append(Api(self.endpoint, token, prefix))
        return self._derived[-1]

    def headers(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        authorization = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"Content-Type": "application/json", **authorization, **(more or {})}

    def request(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One request. A body that is not bytes is sent as JSON."""
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        fresh = self._connection is None
        connection = self._connection = self._connection or self._open()
        try:
            connection.request(method, self.prefix + path, sent, self.headers(headers))
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        except (OSError, http.client.HTTPException):
            self.close()
            if fresh or method != "GET":
                raise
            return self.request(method, path, body, headers)

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, body: object) -> Answer:
        return self.request("POST", path, body)

    def delete(self, path: str, body: object = None) -> Answer:
        return self.request("DELETE", path, body)

    def patch(self, path: str, body: object, kind: str = "merge-patch") -> Answer:
        return self.request("PATCH", path, body, {"Content-Type": f"application/{kind}+json"})

    def watch(self, path: str) -> Watch:
        """Open a watch; the answer to it has begun when this returns."""
        connection = self._open()
        connection.request("GET", self.prefix + path, headers=self.headers())
        return Watch(connection, connection.getresponse())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for derived in self._derived:
            derived.close()

    def _open(self) -> http.client.HTTPSConnection:
        host, port, tls = self.endpoint
        return http.client.HTTPSConnection(host, port, timeout=ANSWER_TIMEOUT, context=tls)


class Watch:
    """The events of one watch."""

    def __init__(self, connection: http.client.HTTPSConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer
        self.code = answer.status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._connection.close()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Until the server ends the watch; an end without the last chunk is an error, as for any client."""
        while line := self._answer.readline():
            yield json.loads(line)

    def next(self) -> dict[str, Any]:
        return next(iter(self))

    def read(self) -> bytes:
        return self._answer.read()


@dataclass
class KcpServer:
    """One server with its root directory. Start it, use it, kill it, start it again."""

    root_directory: Path
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    url: str = ""
    apis: list[Api] = field(default_factory=list)

    def start(self, port: int = 0) -> Self:
        self.root_directory.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", _START, "start", f"--root-directory={self.root_directory}"]
        command += ["--bind-address=127.0.0.1", f"--secure-port={port}", "-v", *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self.url = self._read_url()
        except BaseException:
            self.kill()
            raise
        return self

    def _read_url(self) -> str:
        """What the greeting says, once it says that the server is ready."""
        assert self.process is not None
        assert self.process.stdout is not None
        greeting, deadline = b"", time.monotonic() + START_TIMEOUT
        while b"ready" not in greeting:
            readable, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 65536) if readable else b""
            if not piece:
                raise AssertionError(f"the server did not start: {greeting.decode()}\n{self.log.read_text()}")
            greeting += piece
        return greeting.decode().partition("address")[2].split()[0]

    @property
    def log(self) -> Path:
        return self.root_directory.parent / f"{self.root_directory.name}.log"

    @property
    def kubeconfig(self) -> Path:
        return self.root_directory / "admin.kubeconfig"

    @property
    def endpoint(self) -> Endpoint:
        authority = self._config()["clusters"][0]["cluster"]["certificate-authority-data"]
        tls = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        host, _, port = self.url.removeprefix("https://").rpartition(":")
        return Endpoint(host, int(port), tls)

    def token(self, user: str) -> str:
        return str(next(each["user"]["token"] for each in self._config()["users"] if each["name"] == user))

    def api(self, user: str = "kcp-admin", prefix: str = "/clusters/root") -> Api:
        """A client as this user. It is closed with the server at the latest."""
        self.apis.append(Api(self.endpoint, self.token(user), prefix))
        return self.apis[-1]

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, timeout: float = 30.0) -> int:
        assert self.process is not None
        code = self.process.wait(timeout)
        if self.process.stdout:
            self.process.stdout.close()
        return code

    def kill(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for api in self.apis:
            api.close()

    def _config(self) -> Any:  # noqa: ANN401
        return yaml.safe_load(self.kubeconfig.read_bytes())
