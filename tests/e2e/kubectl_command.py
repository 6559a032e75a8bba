"""The real kubectl: where it comes from, and how tests call it."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from scripts.get_kubectl import KubectlUnavailable, get_kubectl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COMMAND_TIMEOUT = 60.0  # seconds
VERSION = "1.32"


class KubectlNotFound(Exception):
    """There is no kubectl to test with; the message says how to get one."""


@functools.cache
def find_kubectl() -> str:
    """$KCP_TEST_KUBECTL, then a kubectl of the right version on PATH, then Debian's, fetched into the environment."""
    named = os.environ.get("KCP_TEST_KUBECTL")
    if named:
        return named
    on_path = shutil.which("kubectl")
    if on_path:
        # Google's SDK installs a dispatcher that asks the server for its version first, and one program per version.
        real = Path(on_path).resolve()
        for candidate in (real.with_name(f"kubectl.{VERSION}"), real):
            if candidate.exists() and version_of(candidate).startswith(f"v{VERSION}."):
                return str(candidate)
    try:
        return str(get_kubectl(Path(sys.prefix) / "kubectl"))
    except KubectlUnavailable as error:
        raise KubectlNotFound(f"no kubectl {VERSION}: {error}; set KCP_TEST_KUBECTL to one") from error


def version_of(program: Path) -> str:
    printed = subprocess.run([program, "version", "--client", "-o", "yaml"], capture_output=True, check=False).stdout
    return str(((yaml.safe_load(printed) or {}).get("clientVersion") or {}).get("gitVersion", ""))


class Output(NamedTuple):
    code: int
    out: str
    err: str


class Printed:
    """The output of a command that still runs, line by line and never waiting for long."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._waiting = b""

    def line(self, timeout: float = 20.0) -> str:
        """The next line; a TimeoutError with what there is when it does not come."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._waiting:
            readable, _, _ = select.select([self._file], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._file, 65536) if readable else b""
            if not piece:
                raise TimeoutError(f"no further line; the last is {self._waiting!r}")
            self._waiting += piece
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line.decode()


@dataclass(frozen=True)
class Kubectl:
    """kubectl with a kubeconfig, a home of its own and a default namespace."""

    program: str
    kubeconfig: Path
    home: Path
    namespace: str = ""
    context: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """What it prints, where nothing but success will do."""
        output = self.run(*arguments, stdin=stdin)
        assert output.code == 0, f"kubectl {' '.join(arguments)}: {output}"
        return output.out

    def run(self, *arguments: str, stdin: str | None = None) -> Output:
        done = subprocess.run(
            self.command(*arguments),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )
        return Output(done.returncode, done.stdout, done.stderr)

    def fails(self, *arguments: str, stdin: str | None = None) -> str:
        """What it complains about, where it has to fail."""
        output = self.run(*arguments, stdin=stdin)
        assert output.code == 1, f"kubectl {' '.join(arguments)}: {output}"
        return output.err

    def get(self, *arguments: str) -> Any:  # noqa: ANN401
        return yaml.safe_load(self("get", *arguments, "-o", "yaml"))

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[Printed]:
        """What it prints while it runs; it is killed at the end."""
        with subprocess.Popen(
            self.command(*arguments),
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdout is not None
            try:
                yield Printed(process.stdout.fileno())
            finally:
                process.kill()

    def command(self, *arguments: str) -> list[str]:
        chosen = [f"--namespace={self.namespace}"] if self.namespace else []
        chosen += [f"--context={self.context}"] if self.context else []
        return [self.program, *chosen, *arguments]

    def variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": os.environ["PATH"],
            **self.environment,
        }

    def within(self, namespace: str) -> Kubectl:
        return replace(self, namespace=namespace)

    def using(self, context: str) -> Kubectl:
        return replace(self, context=context)

    def having(self, **environment: str) -> Kubectl:
        return replace(self, environment={**self.environment, **environment})
