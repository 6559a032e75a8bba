"""Watching: events to many watchers, and the start of a watch over many objects."""

from __future__ import annotations

import select
import time
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.api.load import check_answer
from benchmarks.api.scenario import Scenario
from benchmarks.api.stage import config_maps
from benchmarks.api.target import BenchmarkFailed, call
from benchmarks.api.wire import Connection, EventCounter
from benchmarks.measure import Timed, latency_of
from benchmarks.report import Unit
from kcp.meta import codec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from benchmarks.api.settings import Settings
    from benchmarks.api.stage import Stage

_WRITERS = 8
_SILENCE_SECONDS = 60.0


def watches(settings: Settings) -> list[Scenario]:
    note = "events delivered; latency: one event, until all watchers have it"
    counts = (settings.few_watchers, settings.many_watchers)
    return [
        *(
            Scenario(f"watch fan-out, {count} watchers", partial(_fan_out, watchers=count), note=note)
            for count in counts
        ),
        Scenario(f"watch start with {settings.large:,} objects", _watch_start, Unit.MILLISECONDS),
    ]


class Audience:
    """Watchers of one namespace and the connections that write to it, in one loop."""

    def __init__(self, stage: Stage, watchers: int, path: str) -> None:
        """Connects; the watches start with `begin`."""
        self._stage = stage
        self._poll = select.epoll()
        self._watchers: dict[int, tuple[Connection, EventCounter]] = {}
        self._writers: dict[int, Connection] = {}
        self._idle: list[Connection] = []
        self.received = 0
        self._request = stage.target.request("GET", path)
        for _ in range(watchers):
            connection = Connection(stage.target)
            self._poll.register(connection.fileno, select.EPOLLIN)
            self._watchers[connection.fileno] = (connection, EventCounter())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._poll.close()
        for connection, _ in self._watchers.values():
            connection.close()
        for connection in self._writers.values():
            connection.close()

    def begin(self) -> None:
        for connection, _ in self._watchers.values():
            connection.send(self._request)

    def open_writers(self) -> None:
        for _ in range(_WRITERS):
            connection = Connection(self._stage.target)
            self._poll.register(connection.fileno, select.EPOLLIN)
            self._writers[connection.fileno] = connection
            self._idle.append(connection)

    def await_heads(self) -> None:
        """Until the server has answered every watch: from then on it is told of every event."""
        waiting = set(self._watchers)
        while waiting:
            for number in self._turn():
                waiting.discard(number)

    def await_events(self, count: int) -> None:
        while self.received < count:
            self._turn()

    def write(self, requests: Iterable[bytes]) -> None:
        """Send them all, until all are answered and everyone has every event."""
        expected = self.received
        for request in requests:
            while not self._idle:
                self._turn()
            self._idle.pop().send(request)
            expected += len(self._watchers)
        while self.received < expected or len(self._idle) < len(self._writers):
            self._turn()

    def _turn(self) -> list[int]:
        """Take what has arrived; returns who has something."""
        ready = self._poll.poll(_SILENCE_SECONDS)
        if not ready:
            raise BenchmarkFailed(f"nothing arrived within {_SILENCE_SECONDS:.0f} s, after {self.received:,} events")
        heard = []
        for number, _ in ready:
            watcher = self._watchers.get(number)
            if watcher is None:
                self._hear_writer(self._writers[number])
                continue
            connection, counter = watcher
            received = connection.receive_raw()
            if received:
                before = counter.count
                counter.feed(received)
                self.received += counter.count - before
                heard.append(number)
        return heard

    def _hear_writer(self, writer: Connection) -> None:
        if writer.receive():
            check_answer(writer)
            self._idle.append(writer)


def _fan_out(stage: Stage, *, watchers: int) -> Timed:
    settings = stage.settings
    with Audience(stage, watchers, _watch_path(stage)) as audience:
        audience.open_writers()
        audience.begin()
        audience.await_heads()
        count = max(1, settings.fan_out_events // watchers)
        requests = list(stage.create_requests(stage.scratch, stage.new_names(count)))
        start = time.perf_counter()
        audience.write(requests)
        per_second = count * watchers / (time.perf_counter() - start)
        return Timed(per_second, latency_of(_one_by_one(stage, audience)))


def _one_by_one(stage: Stage, audience: Audience) -> list[float]:
    seconds = []
    for request in stage.create_requests(stage.scratch, stage.new_names(stage.settings.fan_out_turns)):
        start = time.perf_counter()
        audience.write([request])
        seconds.append(time.perf_counter() - start)
    return seconds


def _watch_path(stage: Stage) -> str:
    """From now on."""
    path = config_maps(stage.scratch)
    status, body = call(stage.target, "GET", f"{path}?limit=1")
    if status != 200:
        raise BenchmarkFailed(f"{stage.target.name}: GET {path} answered {status}: {body[:400]!r}")
    revision = codec.loads(body)["metadata"]["resourceVersion"]
    return f"{path}?watch=true&resourceVersion={revision}&timeoutSeconds=600"


def _watch_start(stage: Stage) -> Timed:
    """Until the watcher has every object that is there."""
    path = f"{config_maps(stage.large)}?watch=true&timeoutSeconds=600"
    seconds = []
    for _ in range(stage.settings.watch_starts):
        with Audience(stage, 1, path) as audience:
            start = time.perf_counter()
            audience.begin()
            audience.await_events(stage.settings.large)
            seconds.append(time.perf_counter() - start)
    latency = latency_of(seconds)
    return Timed(latency.p50, latency)
