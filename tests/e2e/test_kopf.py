"""A kopf operator on config maps: it reacts to what happens, and after a restart goes on where it was."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.e2e.kubectl_command import Printed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.kcp_server import Api, KcpServer

HANDLED = "kopf.zalando.org/last-handled-configuration"

OPERATOR = """
import kopf

@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "example.com/operator"
    settings.posting.enabled = False

@kopf.on.resume("configmaps", labels={"operated": "yes"})
def resumed(name, **_):
    print("resumed", name, flush=True)

@kopf.on.create("configmaps", labels={"operated": "yes"})
def created(name, spec, patch, **_):
    patch.metadata.annotations["example.com/seen"] = "yes"
    print("created", name, flush=True)

@kopf.on.update("configmaps", labels={"operated": "yes"}, field="data.colour")
def updated(name, old, new, **_):
    print("updated", name, old, new, flush=True)

@kopf.on.delete("configmaps", labels={"operated": "yes"})
def deleted(name, **_):
    print("deleted", name, flush=True)
"""


class Operator:
    """The operator as a process of its own, as it would run anywhere."""

    def __init__(self, directory: Path, kubeconfig: Path, namespace: str) -> None:
        program = directory / "operator.py"
        program.write_text(OPERATOR)
        self._command = [sys.executable, "-m", "kopf", "run", "--quiet", "--standalone", "-n", namespace, str(program)]
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(directory)}
        self._log = directory / "operator.log"

    def __enter__(self) -> Printed:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL
            )
        assert self._process.stdout is not None
        return Printed(self._process.stdout.fileno())

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def test_an_operator_reacts_and_resumes(server: KcpServer, api: Api, namespace: str, tmp_path: Path) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = {"metadata": {"name": "lamp", "labels": {"operated": "yes"}}, "data": {"colour": "red"}}
    api.post(path, body).created()
    api.post(path, {"metadata": {"name": "other"}}).created()
    operator = Operator(tmp_path, server.kubeconfig, namespace)
    with operator as printed:
        assert printed.line() == "created lamp"
        # The patch of the operator comes after what it prints; the next change waits for it by its own event.
        with api.watch(f"{path}?watch=1&fieldSelector=metadata.name=lamp&timeoutSeconds=20") as watch:
            seen = next(event for event in watch if "example.com/seen" in annotations_of(event))
        assert seen["object"]["metadata"]["finalizers"] == ["example.com/operator"]
        api.patch(f"{path}/lamp", {"data": {"colour": "blue"}}).created()
        assert printed.line() == "updated lamp red blue"
        # A killed operator knows what it had noted down.
        with api.watch(f"{path}?watch=1&fieldSelector=metadata.name=lamp&timeoutSeconds=20") as watch:
            assert any("blue" in annotations_of(event).get(HANDLED, "") for event in watch)
    api.patch(f"{path}/lamp", {"data": {"colour": "green"}}).created()
    with operator as printed:
        assert {printed.line(), printed.line()} == {"resumed lamp", "updated lamp blue green"}
        version = api.get(path).body["metadata"]["resourceVersion"]
        api.delete(f"{path}/lamp").created()
        assert printed.line() == "deleted lamp"
        # The object goes once the operator has taken its finalizer away: at once, or as the next event.
        with api.watch(f"{path}?watch=1&resourceVersion={version}&timeoutSeconds=20") as watch:
            assert any(event["type"] == "DELETED" for event in watch)
    assert api.get(f"{path}/other").body["metadata"].get("finalizers") is None


def annotations_of(event: dict[str, dict[str, dict[str, dict[str, str]]]]) -> dict[str, str]:
    return event["object"]["metadata"].get("annotations", {})
