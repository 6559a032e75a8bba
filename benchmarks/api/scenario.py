"""One measurement, told apart from where it is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.api.load import Load, from_iterable, measure
from benchmarks.report import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.api.load import Source
    from benchmarks.api.stage import Stage
    from benchmarks.measure import Timed

NO_END = 1 << 40


class Scenario(NamedTuple):
    """A row of the table: its name, and how to find its value once."""

    name: str
    measure: Callable[[Stage], Timed]
    """`per_second` is the value, whatever the unit."""

    unit: Unit = Unit.PER_SECOND
    note: str = ""


def plural(connections: int) -> str:
    return "1 connection" if connections == 1 else f"{connections} connections"


def for_a_time(stage: Stage, make_source: Callable[[int, int], Source], connections: int) -> Timed:
    settings = stage.settings
    load = Load(make_source=make_source, connections=connections, seconds=settings.seconds, warmup=settings.warmup)
    return measure(stage.target, load, settings.clients)


def for_all(stage: Stage, requests: Iterable[bytes], connections: int) -> Timed:
    """To the end of the requests. They are built before, and shared between the clients."""
    waiting = list(requests)
    load = Load(make_source=lambda number, clients: from_iterable(waiting[number::clients]), connections=connections)
    return measure(stage.target, load, stage.settings.clients)
