"""Figures about the server in Prometheus' text format, under the names that kube-apiserver gives them.

Must not label anything with a logical cluster: there may be a million. Series are bounded as well, because tenants
choose the names of their resources: beyond `max_series` of a metric, new label values are counted as `other`.

A child (one series) is a list of numbers, which is the cheapest thing to add to; whoever counts the same thing often
keeps the child.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
DURATION_BUCKETS: Final = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0),
    *(4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
OTHER: Final = "other"
_MAX_SERIES: Final = 5_000


class Metric:
    """What has a name, a type and series by label values."""

    kind = "untyped"

    def __init__(self, name: str, text: str, labels: Sequence[str] = (), *, max_series: int = _MAX_SERIES) -> None:
        self.name = name
        self.text = text
        self.labels = tuple(labels)
        self.series: dict[tuple[str, ...], list[float]] = {}
        self._max_series = max_series

    def child(self, *values: str) -> list[float]:
        """The numbers of one series, to be added to in place."""
        child = self.series.get(values)
        return child if child is not None else self._add(values)

    def _add(self, values: tuple[str, ...]) -> list[float]:
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)}")
        if len(self.series) >= self._max_series:
            values = (OTHER,) * len(values)
        return self.series.setdefault(values, self._make_child())

    def _make_child(self) -> list[float]:
        return [0]

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.text}\n"
        yield f"# TYPE {self.name} {self.kind}\n"
        for values, child in self.series.items():
            yield from self._samples(format_labels(self.labels, values), child)

    def _samples(self, labels: str, child: list[float]) -> Iterator[str]:
        yield f"{self.name}{labels} {_number(child[0])}\n"


class Counter(Metric):
    """Only grows."""

    kind = "counter"

    def add(self, *values: str, amount: float = 1) -> None:
        self.child(*values)[0] += amount


class Gauge(Metric):
    """Goes up and down. A gauge with `read` asks for its values when it is printed."""

    kind = "gauge"
    read: Callable[[], dict[tuple[str, ...], float]] | None = None

    def add(self, *values: str, amount: float = 1) -> None:
        self.child(*values)[0] += amount

    def set(self, *values: str, value: float) -> None:
        self.child(*values)[0] = value

    def lines(self) -> Iterator[str]:
        if self.read is not None:
            self.series = {values: [value] for values, value in self.read().items()}
        yield from super().lines()


class Histogram(Metric):
    """A child is the count of each bucket, then the count above all of them, then the sum."""

    kind = "histogram"

    def __init__(self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float]) -> None:
        super().__init__(name, text, labels)
        self.buckets = tuple(buckets)

    def _make_child(self) -> list[float]:
        return [0] * (len(self.buckets) + 2)

    def observe(self, *values: str, value: float) -> None:
        child = self.child(*values)
        child[bisect_left(self.buckets, value)] += 1
        child[-1] += value

    def _samples(self, labels: str, child: list[float]) -> Iterator[str]:
        opening = f"{{{labels[1:-1]}," if labels else "{"
        total = 0.0
        for bound, count in zip((*self.buckets, float("inf")), child[:-1], strict=True):
            total += count
            yield f'{self.name}_bucket{opening}le="{_bound(bound)}"}} {_number(total)}\n'
        yield f"{self.name}_sum{labels} {_number(child[-1])}\n"
        yield f"{self.name}_count{labels} {_number(total)}\n"


M = TypeVar("M", bound=Metric)


class Metrics:
    """All metrics of a server. `render` prints them."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        where = ("group", "version", "resource", "subresource", "scope", "component")
        self.requests = self.register(
            Counter(
                "apiserver_request_total",
                "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, "
                "scope, component, and HTTP response code.",
                ("verb", "dry_run", *where, "code"),
            )
        )
        self.durations = self.register(
            Histogram(
                "apiserver_request_duration_seconds",
                "Response latency distribution in seconds for each verb, dry run value, group, version, resource, "
                "subresource, scope and component.",
                ("verb", "dry_run", *where),
                buckets=DURATION_BUCKETS,
            )
        )
        self.longrunning = self.register(
            Gauge(
                "apiserver_longrunning_requests",
                "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, "
                "scope and component.",
                ("verb", *where),
            )
        )
        self.watch_events = self.register(
            Counter(
                "apiserver_watch_events_total",
                "Number of events sent in watch clients",
                ("group", "version", "resource"),
            )
        )
        # One look-up per request: what is counted under the same labels, found together.
        self._by_request: dict[tuple[tuple[str, ...], int], tuple[list[float], list[float]]] = {}

    def register(self, metric: M) -> M:
        self._metrics[metric.name] = metric
        return metric

    def gauge(
        self, name: str, text: str, read: Callable[[], dict[tuple[str, ...], float]], labels: Sequence[str] = ()
    ) -> None:
        """A gauge whose values are looked up when they are asked for, and only then."""
        self.register(Gauge(name, text, labels)).read = read

    def observe_request(self, labels: tuple[str, ...], code: int, seconds: float) -> None:
        """Count a finished request.

        `labels` are verb (as LIST, WATCH, APPLY), dry_run, group, version, resource, subresource, scope, component.
        """
        found = self._by_request.get((labels, code))
        if found is None:
            found = self.requests.child(*labels, str(code)), self.durations.child(*labels)
            if len(self._by_request) < _MAX_SERIES:
                self._by_request[labels, code] = found
        count, durations = found
        count[0] += 1
        durations[bisect_left(DURATION_BUCKETS, seconds)] += 1
        durations[-1] += seconds

    def render(self) -> bytes:
        return "".join(line for _, metric in sorted(self._metrics.items()) for line in metric.lines()).encode()


def format_labels(names: Sequence[str], values: Sequence[str]) -> str:
    """`{a="1",b="2"}`, or nothing without labels."""
    if not names:
        return ""
    pairs = (f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _bound(value: float) -> str:
    return "+Inf" if value == float("inf") else _number(value)
