"""What a server is filled with before it is measured, and the requests for that."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.api.load import Load, from_iterable, measure
from benchmarks.api.target import BenchmarkFailed, call
from benchmarks.measure import progress
from kcp.meta import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.api.settings import Settings
    from benchmarks.api.target import Target

SELECTED = "bench=selected"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_SEEDING_CONNECTIONS = 16
_PAYLOAD = "x" * 760  # with its name, managed fields and all, an object is 1 KiB


@dataclass(slots=True)
class Stage:
    """One server, ready to be measured."""

    target: Target
    settings: Settings
    namespace: str = field(default_factory=lambda: f"bench-{secrets.token_hex(4)}")
    prepared: set[str] = field(default_factory=set)
    """What benchmarks have added for themselves."""

    definitions: list[str] = field(default_factory=list)
    """Paths of the CustomResourceDefinitions among it."""

    _serial: int = 0

    @property
    def small(self) -> str:
        return self.namespace

    @property
    def large(self) -> str:
        return f"{self.namespace}-large"

    @property
    def scratch(self) -> str:
        """For what is created by measurements."""
        return f"{self.namespace}-scratch"

    @property
    def group(self) -> str:
        """Of custom resources."""
        return f"{self.namespace}.example.com"

    @property
    def namespaces(self) -> tuple[str, ...]:
        return (self.small, self.large, self.scratch)

    def set_up(self) -> None:
        settings = self.settings
        progress(f"{self.target.name}: {settings.small + settings.large:,} objects to read")
        for name in self.namespaces:
            self.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.send_all(self.create_requests(self.small, (f"cm-{number}" for number in range(settings.small))))
        names = [f"cm-{number}" for number in range(settings.large)]
        every = settings.large // settings.labelled
        self.send_all(self.create_requests(self.large, names[::every], {"bench": "selected"}))
        self.send_all(self.create_requests(self.large, (name for at, name in enumerate(names) if at % every)))

    def tear_down(self) -> None:
        """A server that is not ours is left as it was found."""
        for path in (*(f"/api/v1/namespaces/{name}" for name in self.namespaces), *self.definitions):
            call(self.target, "DELETE", path)

    def create(self, path: str, obj: dict[str, Any]) -> None:
        status, answer = call(self.target, "POST", path, codec.dumps(obj))
        if status != 201:
            raise BenchmarkFailed(f"{self.target.name}: POST {path} answered {status}: {answer[:400]!r}")

    def send_all(self, requests: Iterable[bytes]) -> None:
        """To their end, as fast as possible."""
        waiting = list(requests)
        measure(self.target, Load(make_source=lambda *_: from_iterable(waiting), connections=_SEEDING_CONNECTIONS))

    def new_names(self, count: int) -> Sequence[str]:
        """Names that were not used before."""
        self._serial += 1
        return [f"new-{self._serial}-{number}" for number in range(count)]

    def get_requests(self) -> list[bytes]:
        paths = (f"{config_maps(self.small)}/cm-{number}" for number in range(self.settings.small))
        return [self.target.request("GET", path) for path in paths]

    def create_requests(
        self, namespace: str, names: Iterable[str], labels: dict[str, str] | None = None
    ) -> Iterable[bytes]:
        """Made as they are taken: building one is cheaper than keeping many."""
        for name in names:
            body = config_map(namespace, name, labels=labels)
            yield self.target.request("POST", config_maps(namespace), body)

    def update_requests(self, turns: int) -> Iterable[bytes]:
        """Every object in turn, and each time another content: an update that changes nothing writes nothing."""
        for turn in range(turns):
            name = f"cm-{turn % self.settings.small}"
            body = config_map(self.small, name, turn=self.turn_name(turn))
            yield self.target.request("PUT", f"{config_maps(self.small)}/{name}", body)

    def merge_patch_requests(self, turns: int) -> Iterable[bytes]:
        for turn in range(turns):
            path = f"{config_maps(self.small)}/cm-{turn % self.settings.small}"
            body = b'{"data":{"turn":"%b"}}' % self.turn_name(turn).encode()
            yield self.target.request("PATCH", path, body, MERGE_PATCH)

    def apply_requests(self, turns: int) -> Iterable[bytes]:
        for turn in range(turns):
            name = f"applied-{turn % self.settings.small}"
            body = config_map(self.scratch, name, turn=self.turn_name(turn))
            path = f"{config_maps(self.scratch)}/{name}?fieldManager=bench&force=true"
            yield self.target.request("PATCH", path, body, APPLY_PATCH)

    def turn_name(self, turn: int) -> str:
        return f"{self._serial}.{turn}"

    def begin_turns(self) -> None:
        """Contents differ from those of every earlier measurement."""
        self._serial += 1


def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_map(namespace: str, name: str, *, turn: str = "0", labels: dict[str, str] | None = None) -> bytes:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    data = {"payload": _PAYLOAD, "turn": turn}
    return codec.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
