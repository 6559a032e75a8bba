"""The `kcp` command as a user runs it: real processes, what they print and how they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcp.store import EmbeddedStore
from kcp.store.etcd.options import EtcdOptions
from kcp.store.etcd.store import EtcdStore
from tests.store.etcd.etcd_server import EtcdServer, find_etcd
from tests.store.objects import CONFIGMAPS, create, key, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

KCP = str(Path(sys.executable).with_name("kcp"))


def kcp(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([KCP, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


class Server:
    """`kcp start` in a process of its own."""

    def __init__(self, cwd: Path, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [KCP, "start", "--bind-address", "127.0.0.1", "--secure-port", "0", *arguments],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self._output: IO[str] = self.process.stdout
        self.greeting = ""
        for line in self._output:
            self.greeting += line
            if line.startswith("Stop with"):
                break

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(how)
        farewell = self._output.read()
        self._output.close()
        return self.process.wait(timeout=30), farewell


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        if server.process.poll() is None:
            server.stop(signal.SIGKILL)


async def test_start_says_what_it_is_and_stops_when_told(tmp_path: Path, servers: list[Server]) -> None:
    async with await EmbeddedStore.open(tmp_path / ".kcp" / "store") as store:
        await create(store, "x")
    for how in (signal.SIGTERM, signal.SIGINT):
        server = Server(tmp_path)
        servers.append(server)
        assert "embedded, in .kcp/store" in server.greeting
        assert re.search(r"\d+ objects at revision \d+", server.greeting)
        assert "export KUBECONFIG=" in server.greeting
        assert server.stop(how) == (0, "Stopped; everything is on the disk.\n")


def test_a_second_server_on_the_same_directory_is_refused(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(Server(tmp_path, "--root-directory", "data"))
    refused = kcp("start", "--root-directory", "data", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: ")
    assert f"process {servers[0].process.pid}" in refused.stderr
    servers[0].stop(signal.SIGKILL)
    again = Server(tmp_path, "--root-directory", "data")
    servers.append(again)
    assert again.stop()[0] == 0


async def test_backup_check_and_restore_of_a_running_server(tmp_path: Path, servers: list[Server]) -> None:
    async with await EmbeddedStore.open(tmp_path / ".kcp" / "store") as store:
        await create(store, "x", "precious")
    servers.append(Server(tmp_path))
    assert kcp("check", cwd=tmp_path).stdout == ".kcp/store is sound.\n"
    written = kcp("backup", "backup.kcp", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    found = re.match(r"Wrote (\d+) objects at revision (\d+) to backup.kcp \(", written.stdout)
    assert found, written.stdout
    refused = kcp("restore", "backup.kcp", cwd=tmp_path)
    assert (refused.returncode, "not empty" in refused.stderr) == (1, True)
    restored = kcp("restore", "backup.kcp", "--root-directory", "new", cwd=tmp_path)
    beginning = f"{1_000_000_000 + int(found[2]):,}"
    assert restored.stdout == (
        f"Restored {found[1]} objects to embedded, in new/store; it begins at revision {beginning}.\n"
    ), restored.stderr
    async with await EmbeddedStore.open(tmp_path / "new" / "store") as store:
        assert text_of(store.get(key("x"))) == "precious"


async def test_servers_share_an_etcd(tmp_path: Path, servers: list[Server]) -> None:
    find_etcd()
    with EtcdServer(tmp_path) as etcd:
        for name in ("a", "b"):
            server = Server(tmp_path, "--root-directory", name, "--etcd-servers", etcd.endpoint)
            servers.append(server)
            assert f"etcd at {etcd.endpoint}, mirrored in {name}/etcd-mirror" in server.greeting
        async with await EtcdStore.open(tmp_path / "c", EtcdOptions((etcd.endpoint,))) as store:
            await create(store, "x", "shared")
        assert servers[0].stop()[0] == 0
        options = ("--root-directory", "a", "--etcd-servers", etcd.endpoint)
        written = kcp("backup", "backup.kcp", *options, cwd=tmp_path)
        assert re.match(r"Wrote \d\d objects", written.stdout), written.stderr
        target = ("--etcd-servers", etcd.endpoint, "--etcd-prefix", "/copy")
        restored = kcp("restore", "backup.kcp", *target, cwd=tmp_path)
        assert restored.returncode == 0, restored.stderr
        async with await EtcdStore.open(tmp_path / "d", EtcdOptions((etcd.endpoint,)), prefix="/copy") as store:
            assert text_of(store.get(key("x", resource=CONFIGMAPS))) == "shared"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["start", "--etcd-servers", "ftp://x"], "write it as http://127.0.0.1:2379"),
        (["start", "--etcd-servers", ","], "non-empty list"),
        (["start", "--etcd-cafile", "ca.pem"], "need --etcd-servers"),
        (["start", "--etcd-servers", "https://127.0.0.1:1", "--etcd-cafile", "missing.pem"], "missing.pem"),
        (["start", "--root-directory", "file"], "file"),
        (["backup", "out.kcp"], "there is no kcp store"),
        (["backup", "no/such/directory/out.kcp", "--root-directory", "ok"], "could not be written"),
        (["restore", "missing.kcp"], "does not exist"),
        (["restore", "file"], "is not a"),
        (["check", "--root-directory", "nowhere"], "there is no kcp store"),
    ],
    ids=lambda part: " ".join(part[:3]) if isinstance(part, list) else "",
)
async def test_mistakes_are_answered_in_one_line(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    (tmp_path / "file").write_text("not a directory, not a backup")
    async with await EmbeddedStore.open(tmp_path / "ok" / "store") as store:
        await create(store, "x")
    result = kcp(*arguments, cwd=tmp_path)
    assert result.returncode in (1, 2)
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_every_command_has_help(tmp_path: Path) -> None:
    for command in ("start", "backup", "restore", "check"):
        assert "Example" in kcp(command, "--help", cwd=tmp_path).stdout
    assert kcp("--version", cwd=tmp_path).stdout.startswith("kcp 0.")
