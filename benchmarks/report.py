"""Results, their table, and their comparison with an earlier run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.measure import Timed


class Unit(Enum):
    """What a value counts, as it is written behind it."""

    PER_SECOND = "/s"
    MILLISECONDS = "ms"
    BYTES = "B"
    MEBIBYTES = "MiB"
    RATIO = "x"

    @property
    def more_is_better(self) -> bool:
        return self in (Unit.PER_SECOND, Unit.RATIO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    """Says what was measured, and finds the same row in another run."""

    value: float
    unit: Unit = Unit.PER_SECOND
    p50_ms: float | None = None
    p99_ms: float | None = None
    machine: float | None = None
    """What the machine itself does, in the same unit."""

    goal: float | None = None
    note: str = ""

    @property
    def of_machine(self) -> float | None:
        return None if self.machine is None else self.value / self.machine

    @property
    def meets_goal(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value >= self.goal if self.unit.more_is_better else self.value <= self.goal


def rate_row(
    name: str, timed: Timed, *, machine: float | None = None, goal: float | None = None, note: str = ""
) -> Row:
    p50, p99 = timed.latency or (None, None)
    return Row(name=name, value=timed.per_second, p50_ms=p50, p99_ms=p99, machine=machine, goal=goal, note=note)


class Section(NamedTuple):
    """The rows of one benchmark, under its title."""

    title: str
    rows: list[Row]


class Earlier(NamedTuple):
    """What an earlier run found for a row."""

    value: float
    of_machine: float | None


_COLUMNS = ("", "result", "", "p50 ms", "p99 ms", "of {peer}", "goal", "")
_COMPARED = ("before", "change")


def format_table(
    sections: Sequence[Section], earlier: Mapping[str, Earlier] | None = None, *, peer: str = "machine"
) -> str:
    """The table in Markdown's shape: readable as it is, and in a report.

    With an earlier run, two more columns: its value, and how this run's ratio to the machine compares with its own
    (plainly the value's ratio, where nothing was measured of the machine). Over 1 is more, whether or not that is good.
    `peer` names what stands in `machine` where that is another server.
    """
    columns = [column.format(peer=peer) for column in _COLUMNS]
    header = [*columns[:-1], *(_COMPARED if earlier is not None else ()), columns[-1]]
    lines = [header]
    for section in sections:
        lines.append([f"**{section.title}**", *[""] * (len(header) - 1)])
        lines += [_cells(row, earlier) for row in section.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    aligned = [_align(line, widths) for line in lines]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([aligned[0], f"|{rule}|", *aligned[1:]])


def _align(cells: list[str], widths: list[int]) -> str:
    left = (0, 2, len(cells) - 1)  # names, units and notes
    padded = [
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _cells(row: Row, earlier: Mapping[str, Earlier] | None) -> list[str]:
    cells = [row.name, format_number(row.value), row.unit.value, _optional(row.p50_ms), _optional(row.p99_ms)]
    cells += ["" if row.of_machine is None else f"{row.of_machine:.2f}", _goal(row)]
    if earlier is not None:
        cells += _compared(row, earlier.get(row.name))
    return [*cells, row.note]


def _compared(row: Row, before: Earlier | None) -> list[str]:
    if before is None:
        return ["", ""]
    if row.of_machine is not None and before.of_machine:
        change = row.of_machine / before.of_machine
    elif before.value:
        change = row.value / before.value
    else:
        return [format_number(before.value), ""]
    return [format_number(before.value), f"x {change:.2f}"]


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    sign = ">=" if row.unit.more_is_better else "<="
    return f"{'met' if row.meets_goal else 'MISSED'} {sign} {format_number(row.goal)}"


def _optional(milliseconds: float | None) -> str:
    return "" if milliseconds is None else format_number(milliseconds)


def format_number(value: float) -> str:
    """Three digits that matter, never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def save(path: Path, sections: Sequence[Section]) -> None:
    rows = {row.name: _saved(row) for section in sections for row in section.rows}
    path.write_text(json.dumps({"rows": rows}, indent=2) + "\n", encoding="utf-8")


def _saved(row: Row) -> dict[str, Any]:
    saved = {
        "value": row.value,
        "unit": row.unit.value,
        "p50_ms": row.p50_ms,
        "p99_ms": row.p99_ms,
        "of_machine": row.of_machine,
        "goal": row.goal,
    }
    return {name: field for name, field in saved.items() if field is not None}


def load(path: Path) -> dict[str, Earlier]:
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {name: Earlier(row["value"], row.get("of_machine")) for name, row in rows.items()}
