"""Custom resources: 1.5 KiB each, with defaults and three rules in CEL; and how soon a new kind is served."""

from __future__ import annotations

import time
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from benchmarks.api.load import endless, from_iterable
from benchmarks.api.scenario import NO_END, Scenario, for_a_time, plural
from benchmarks.api.stage import APPLY_PATCH, MERGE_PATCH
from benchmarks.api.target import BenchmarkFailed, call, wait_for_answer
from benchmarks.api.wire import Connection
from benchmarks.measure import Timed, latency_of
from benchmarks.report import Unit
from kcp.meta import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.api.load import Source
    from benchmarks.api.settings import Settings
    from benchmarks.api.stage import Stage

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PAYLOAD = "x" * 100
_PORTS = 8
_SERVED_SECONDS = 60.0


def custom(settings: Settings) -> list[Scenario]:
    return [
        Scenario("get custom resource, 32 connections", _get),
        Scenario(f"list {settings.small:,} custom resources, 8 connections", _list),
        *(
            Scenario(f"create custom resource, {plural(count)}", partial(_create, connections=count))
            for count in (1, 32)
        ),
        Scenario("patch custom resource, 8 connections", _patch),
        Scenario("apply custom resource, 8 connections", _apply),
        Scenario("CRD create until served", _create_until_served, Unit.MILLISECONDS),
    ]


def _get(stage: Stage) -> Timed:
    path = _path(stage)
    requests = [stage.target.request("GET", f"{path}/w-{number}") for number in range(stage.settings.small)]
    return for_a_time(stage, lambda number, _: endless(requests, number), connections=32)


def _list(stage: Stage) -> Timed:
    request = stage.target.request("GET", _path(stage))
    return for_a_time(stage, lambda *_: endless([request]), connections=8)


def _create(stage: Stage, *, connections: int) -> Timed:
    path = _path(stage, stage.scratch)
    serial = stage.new_names(1)[0]

    def make_source(number: int, _: int) -> Source:
        names = (f"{serial}-{number}-{turn}" for turn in range(NO_END))
        return from_iterable(stage.target.request("POST", path, _widget(stage, name)) for name in names)

    return for_a_time(stage, make_source, connections)


def _patch(stage: Stage) -> Timed:
    path = _path(stage)

    def requests(turns: int) -> Iterable[bytes]:
        for turn in range(turns):
            body = codec.dumps({"spec": {"turn": stage.turn_name(turn)}})
            yield stage.target.request("PATCH", f"{path}/w-{turn % stage.settings.small}", body, MERGE_PATCH)

    return _change(stage, requests)


def _apply(stage: Stage) -> Timed:
    path = _path(stage, stage.scratch)

    def requests(turns: int) -> Iterable[bytes]:
        for turn in range(turns):
            name = f"applied-{turn % stage.settings.small}"
            body = _widget(stage, name, stage.turn_name(turn))
            query = "fieldManager=bench&force=true"
            yield stage.target.request("PATCH", f"{path}/{name}?{query}", body, APPLY_PATCH)

    stage.send_all(requests(stage.settings.small))  # what is measured is a change
    return _change(stage, requests)


def _change(stage: Stage, requests: Callable[[int], Iterable[bytes]]) -> Timed:
    stage.begin_turns()

    def make_source(number: int, clients: int) -> Source:
        return from_iterable(islice(requests(NO_END), number, None, clients))

    return for_a_time(stage, make_source, connections=8)


def _create_until_served(stage: Stage) -> Timed:
    seconds = []
    for number in range(stage.settings.watch_starts):
        group = f"n{number}-{stage.new_names(1)[0]}.{stage.group}"
        start = time.perf_counter()
        stage.create(_CRDS, _definition(group))
        _await_served(stage, f"/apis/{group}/v1/widgets")
        seconds.append(time.perf_counter() - start)
        call(stage.target, "DELETE", f"{_CRDS}/widgets.{group}")
    latency = latency_of(seconds)
    return Timed(latency.p50, latency)


def _await_served(stage: Stage, path: str) -> None:
    connection = Connection(stage.target)
    request = stage.target.request("GET", path)
    start = time.monotonic()
    while time.monotonic() - start < _SERVED_SECONDS:
        connection.send(request)
        if wait_for_answer(connection)[0] == 200:
            connection.close()
            return
    raise BenchmarkFailed(f"{stage.target.name}: {path} is not served after {_SERVED_SECONDS:.0f} s")


def _path(stage: Stage, namespace: str = "") -> str:
    """Of the stage's widgets, which are made when first asked for."""
    collection = f"/apis/{stage.group}/v1/namespaces/{{}}/widgets".format
    if "widgets" not in stage.prepared:
        stage.prepared.add("widgets")
        stage.create(_CRDS, _definition(stage.group))
        stage.definitions.append(f"{_CRDS}/widgets.{stage.group}")
        _await_served(stage, collection(stage.small))
        names = [f"w-{number}" for number in range(stage.settings.small)]
        stage.send_all(stage.target.request("POST", collection(stage.small), _widget(stage, name)) for name in names)
    return collection(namespace or stage.small)


def _widget(stage: Stage, name: str, turn: str = "0") -> bytes:
    ports = [{"name": f"p{number}", "port": 8000 + number, "text": _PAYLOAD} for number in range(_PORTS)]
    spec = {"turn": turn, "replicas": 3, "maxReplicas": 5, "ports": ports}
    metadata = {"name": name}
    return codec.dumps({"apiVersion": f"{stage.group}/v1", "kind": "Widget", "metadata": metadata, "spec": spec})


def _definition(group: str) -> dict[str, Any]:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"type": "object", "properties": {"spec": _spec_schema()}, "required": ["spec"]}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _spec_schema() -> dict[str, Any]:
    text = {"type": "string", "maxLength": 200}
    number = {"type": "integer", "minimum": 0}
    port = {
        "type": "object",
        "required": ["name", "port"],
        "properties": {
            "name": text,
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "text": text,
            "protocol": {**text, "default": "TCP"},
        },
    }
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "maxItems": 20}
    return {
        "type": "object",
        "properties": {
            "turn": text,
            "replicas": {**number, "default": 1},
            "maxReplicas": {**number, "default": 10},
            "paused": {"type": "boolean", "default": False},
            "ports": {"type": "array", "items": port, **keyed},
        },
        "x-kubernetes-validations": [
            {"rule": "self.replicas <= self.maxReplicas", "message": "replicas must not be over maxReplicas"},
            {"rule": "!self.paused || self.replicas == 0", "message": "what is paused has no replicas"},
            {"rule": "self.ports.all(p, p.port != 6443)", "message": "6443 is taken"},
        ],
    }
