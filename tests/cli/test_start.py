"""`kcp start`: its options, and what the process does with them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kcp.cli import start as start_module
from kcp.cli.main import cli
from kcp.cli.options import describe_store
from kcp.server.options import AuthenticationOptions, ServerOptions, ServingOptions
from kcp.server.run import Running, open_store
from kcp.store import InUse

KCP = str(Path(sys.executable).with_name("kcp"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:  # noqa: ANN401 - a function
    """The options that `kcp start` would start with; nothing is started."""
    made: list[ServerOptions] = []
    make = start_module.make_start_options

    def keep(given: dict[str, Any]) -> ServerOptions:
        made.append(make(given))
        raise click.Abort

    monkeypatch.setattr(start_module, "make_start_options", keep)
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> ServerOptions | str:
        result = CliRunner().invoke(cli, ["start", *arguments])
        return made.pop() if made else result.output

    return invoke


def test_without_arguments_the_defaults_hold(run: Any) -> None:  # noqa: ANN401
    assert run() == ServerOptions(Path(".kcp"))


def test_every_argument_reaches_the_options(run: Any, tmp_path: Path) -> None:  # noqa: ANN401
    for name in ("crt", "key", "ca", "tokens", "sa", "old1", "old2"):
        (tmp_path / name).touch()
    options = run(
        *("--bind-address", "10.0.0.1", "--secure-port", "0", "--external-hostname", "kcp.example.com"),
        *("--tls-cert-file", "crt", "--tls-private-key-file", "key", "--shutdown-delay-duration", "1m30s"),
        *("--client-ca-file", "ca", "--token-auth-file", "tokens", "--anonymous-auth=false"),
        *("--service-account-issuer", "https://x", "--service-account-signing-key-file", "sa"),
        *("--service-account-key-file", "old1", "--service-account-key-file", "old2"),
        *("--max-requests-inflight", "7", "--max-mutating-requests-inflight", "3", "--request-timeout", "5s"),
    )
    flow = dataclasses.replace(ServingOptions().flow, max_readonly=7, max_mutating=3, request_timeout=5.0)
    assert options.serving == ServingOptions(
        "10.0.0.1", 0, "kcp.example.com", Path("crt"), Path("key"), shutdown_delay=90.0, flow=flow
    )
    assert options.authentication == AuthenticationOptions(
        Path("ca"), Path("tokens"), "https://x", Path("sa"), (Path("old1"), Path("old2")), anonymous_auth=False
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--tls-cert-file", "file"], "go together"),
        (["--tls-cert-file", "missing"], "does not exist"),
        (["--secure-port", "70000"], "0<=x<=65535"),
        (["--request-timeout", "5"], "missing unit"),
        (["--request-timeout=-5s"], "must not be negative"),
        (["--max-requests-inflight", "0"], "x>=1"),
        (["--log-format", "xml"], "'text', 'json'"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_mistakes_are_explained(run: Any, tmp_path: Path, arguments: list[str], complaint: str) -> None:  # noqa: ANN401
    (tmp_path / "file").touch()
    assert complaint in run(*arguments)


def test_help_is_grouped_and_has_examples() -> None:
    text = CliRunner().invoke(cli, ["start", "--help"]).output
    headings = re.findall(r"^(\w+):$", text, re.MULTILINE)
    assert headings == ["Store", "Serving", "Authentication", "Protection", "Logs", "Other"]
    assert "kcp start --root-directory" in text
    assert "[default: 6443" in text


def test_etcd_replaces_the_embedded_store(run: Any) -> None:  # noqa: ANN401
    options = run("--etcd-servers", "http://a:2379, http://b:2379", "--etcd-prefix", "/x")
    assert (options.etcd.endpoints, options.etcd_prefix) == (("http://a:2379", "http://b:2379"), "/x")
    assert describe_store(options) == "etcd at http://a:2379, http://b:2379, mirrored in .kcp/etcd-mirror"
    assert "need --etcd-servers" in run("--etcd-cafile", "ca")
    assert "http://127.0.0.1:2379" in run("--etcd-servers", "ftp://a")


def test_the_greeting_says_how_to_use_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def stop_when_ready(options: ServerOptions, ready: Any) -> None:  # noqa: ANN401
        async with open_store(options) as store:
            ready(Running(store, "https://127.0.0.1:6443", options.kubeconfig, lambda: None))

    monkeypatch.setattr("kcp.server.run.serve", stop_when_ready)
    monkeypatch.setattr(start_module, "configure_logging", lambda *_: None)
    result = CliRunner().invoke(cli, ["start", "--root-directory", str(tmp_path)])
    assert result.exit_code == 0
    assert "address   https://127.0.0.1:6443" in result.output
    assert f"store     embedded, in {tmp_path}/store" in result.output
    assert f"export KUBECONFIG={tmp_path}/admin.kubeconfig" in result.output


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InUse("it is in use"), "it is in use"),
        (FileNotFoundError(2, "No such file", "x.pem"), "x.pem: No such file"),
        (OSError(98, "cannot listen on port 1"), "cannot listen on port 1"),
        (ValueError("no key"), "no key"),
    ],
    ids=["store", "file", "system", "value"],
)
def test_what_cannot_be_started_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, line: str
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("kcp.server.run.serve", fail)
    monkeypatch.setattr(start_module, "configure_logging", lambda *_: None)
    result = CliRunner().invoke(cli, ["start", "--root-directory", str(tmp_path)])
    assert (result.exit_code, result.output) == (1, f"Error: {line}\n")


def test_a_process_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    arguments = ["--root-directory", "data", "--bind-address", "127.0.0.1", "--secure-port", "0"]
    process = subprocess.Popen(
        [KCP, "start", *arguments, "-v", "--log-format", "json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Stop with"):
            break
    greeting = "".join(lines)
    assert f"export KUBECONFIG={tmp_path}/data/admin.kubeconfig" in greeting
    address = re.search(r"https://127\.0\.0\.1:\d+", greeting)
    assert address is not None, greeting
    tls = ssl.create_default_context(cafile=str(tmp_path / "data" / "apiserver-ca.crt"))
    with urllib.request.urlopen(f"{address[0]}/readyz?verbose", context=tls, timeout=30) as response:
        assert response.read().decode().endswith("readyz check passed\n")
    process.send_signal(signal.SIGTERM)
    farewell, log = process.communicate(timeout=60)
    assert (process.returncode, farewell) == (0, "Stopped; everything is on the disk.\n")
    assert json.loads(log.splitlines()[-1])["level"] == "info"
