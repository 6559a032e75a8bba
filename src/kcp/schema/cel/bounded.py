"""Functions of the language that make much out of little, with a limit on what one evaluation may make.

`lists.range(1000000000)`, or a chain of `replace` of which each makes its text ten times as long, would take all
memory. Kubernetes stops them by counting costs. The engine counts steps of loops only, so these run here instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.schema.cel.functions import Overload, function, method
from kcp.schema.cel.types import INT, STRING, ListType

if TYPE_CHECKING:
    from kcp.schema.cel.functions import Function

# Kubernetes' limit for one call, and its price of a character.
_MAX_COST: Final = 1_000_000
_CHARACTERS_PER_COST: Final = 10
MAX_CHARACTERS: Final = _MAX_COST * _CHARACTERS_PER_COST
EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"

# Functions of the engine's libraries that are not to be called there: name -> name at run time.
RENAMED: Final = {"lists.range": "@lists.range", "replace": "@replace", "join": "@join"}


class _Budget:
    """What the evaluation that is going on has spent. Evaluations do not wait for anything, so there is only one."""

    spent = 0

    @classmethod
    def spend(cls, cost: int) -> None:
        cls.spent += cost
        if cls.spent > _MAX_COST:
            raise ValueError(EXCEEDED)


def start() -> None:
    """A new evaluation begins."""
    _Budget.spent = 0


def make_range(count: int) -> list[int]:
    _Budget.spend(max(count, 0))
    return list(range(count))


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    times = text.count(old)
    if limit >= 0:
        times = min(times, limit)
    length = len(text) + times * (len(new) - len(old))
    _Budget.spend(max(len(text), length) // _CHARACTERS_PER_COST)
    return text.replace(old, new, limit)


def join(items: list[Any], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise ValueError("no such overload")
    length = sum(map(len, items)) + len(separator) * len(items)
    _Budget.spend(length // _CHARACTERS_PER_COST)
    return separator.join(items)


_STRINGS: Final = ListType(STRING)

RUNTIME_FUNCTIONS: Final[tuple[Function, ...]] = (
    function(RENAMED["lists.range"], Overload("@list_range", (INT,), ListType(INT), make_range)),
    method(
        RENAMED["replace"],
        Overload("@string_replace", (STRING, STRING, STRING), STRING, replace),
        Overload("@string_replace_int", (STRING, STRING, STRING, INT), STRING, replace),
    ),
    method(
        RENAMED["join"],
        Overload("@list_join", (_STRINGS,), STRING, join),
        Overload("@list_join_string", (_STRINGS, STRING), STRING, join),
    ),
)
