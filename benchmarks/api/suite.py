"""The benchmarks by name, taken in turns on one server or two."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.api.custom import custom
from benchmarks.api.memory import tree_bytes
from benchmarks.api.reads import gets, lists
from benchmarks.api.settings import GOALS
from benchmarks.api.watches import watches
from benchmarks.api.writes import mixed, writes
from benchmarks.measure import best, progress, worst
from benchmarks.report import Row, Section, Unit, format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.api.scenario import Scenario
    from benchmarks.api.settings import Settings
    from benchmarks.api.stage import Stage
    from benchmarks.measure import Timed

BENCHMARKS = {"gets": gets, "lists": lists, "writes": writes, "watches": watches, "mixed": mixed, "custom": custom}


def run(only: Sequence[str], settings: Settings, stages: Sequence[Stage]) -> list[Section]:
    """The first of the stages is measured; the second, if there is one, is what it is compared with."""
    sections = []
    for name in only or BENCHMARKS:
        start = time.monotonic()
        rows = [_measure(scenario, settings, stages) for scenario in BENCHMARKS[name](settings)]
        sections.append(Section(name, rows))
        progress(f"{name}: {time.monotonic() - start:.0f} s")
    rows = _process_rows(stages)
    sections += [Section("process", rows)] if rows else []
    return sections if settings.judged else [_unjudged(section) for section in sections]


def _unjudged(section: Section) -> Section:
    return Section(section.title, [replace(row, goal=None) for row in section.rows])


def _measure(scenario: Scenario, settings: Settings, stages: Sequence[Stage]) -> Row:
    progress(scenario.name)
    found: list[list[Timed]] = [[] for _ in stages]
    for _ in range(settings.rounds):
        for stage, rounds in zip(stages, found, strict=True):
            rounds.append(scenario.measure(stage))
    choose = best if scenario.unit.more_is_better else worst  # worst is the least, here the fastest
    ours, *others = [choose(rounds) for rounds in found]
    return _row(scenario.name, scenario.unit, ours, others, scenario.note)


def _row(name: str, unit: Unit, ours: Timed, others: Sequence[Timed], note: str = "") -> Row:
    p50, p99 = ours.latency or (None, None)
    notes = [note] if note else []
    if others and others[0].latency:
        notes.insert(0, f"beside: p99 {format_number(others[0].latency.p99)} ms")
    return Row(
        name=name,
        value=ours.per_second,
        unit=unit,
        p50_ms=p50,
        p99_ms=p99,
        machine=others[0].per_second if others else None,
        goal=GOALS.get(name),
        note="; ".join(notes),
    )


def _process_rows(stages: Sequence[Stage]) -> list[Row]:
    """What was not measured by requests: of the first server, beside the second if it is known there, too."""
    memory = [tree_bytes(stage.target.pids) / (1 << 20) for stage in stages]
    ready = [stage.target.ready_ms for stage in stages]
    rows = []
    if memory[0]:
        name = "memory after all of it"
        rows.append(Row(name=name, value=memory[0], unit=Unit.MEBIBYTES, machine=_other(memory), goal=GOALS[name]))
    if ready[0] is not None:
        name = "start to ready"
        rows.append(Row(name=name, value=ready[0], unit=Unit.MILLISECONDS, machine=_other(ready), goal=GOALS[name]))
    return rows


def _other(values: Sequence[float | None]) -> float | None:
    return (values[1] or None) if len(values) > 1 else None
