"""Kubernetes' functions on lists: isSorted, sum, min, max, indexOf and lastIndexOf."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from kcp.schema.cel import tree
from kcp.schema.cel.functions import Overload, method
from kcp.schema.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, ListType

if TYPE_CHECKING:
    from kcp.schema.cel.functions import Function

_MAX_INT64: Final = 2**63 - 1
_SUMMABLE: Final = (INT, UINT, DOUBLE, DURATION)
_COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)

List = list[Any]


def is_sorted(items: List) -> bool:
    try:
        return all(not left > right for left, right in pairwise(items))
    except TypeError:
        raise ValueError("no such overload") from None


def add_up(items: List) -> Any:  # noqa: ANN401 - whatever the list holds
    try:
        total = sum(items, timedelta()) if items and isinstance(items[0], timedelta) else sum(items)
    except TypeError:
        raise ValueError("no such overload") from None
    if isinstance(total, int) and not -_MAX_INT64 - 1 <= total <= _MAX_INT64:
        raise ValueError("integer overflow")
    return total


def add_up_durations(items: list[timedelta]) -> timedelta:
    return sum(items, timedelta())


def to_milliseconds(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)


def smallest(items: List) -> Any:  # noqa: ANN401
    return _extreme("min", items)


def largest(items: List) -> Any:  # noqa: ANN401
    return _extreme("max", items)


def _extreme(name: str, items: List) -> Any:  # noqa: ANN401
    if not items:
        raise ValueError(f"{name} called on empty list")
    try:
        return min(items) if name == "min" else max(items)
    except TypeError:
        raise ValueError("no such overload") from None


def index_of(items: List, item: object) -> int:
    return next((index for index, other in enumerate(items) if _equal(other, item)), -1)


def last_index_of(items: List, item: object) -> int:
    return next((index for index in reversed(range(len(items))) if _equal(items[index], item)), -1)


def _equal(left: object, right: object) -> bool:
    """Python takes True for 1; CEL does not."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


FUNCTIONS: Final[tuple[Function, ...]] = (
    method("isSorted", *(Overload(f"list_{t}_is_sorted_bool", (ListType(t),), BOOL, is_sorted) for t in _COMPARABLE)),
    method("sum", *(Overload(f"list_{t}_sum_{t}", (ListType(t),), t, add_up) for t in _SUMMABLE)),
    method("min", *(Overload(f"list_{t}_min_{t}", (ListType(t),), t, smallest) for t in _COMPARABLE)),
    method("max", *(Overload(f"list_{t}_max_{t}", (ListType(t),), t, largest) for t in _COMPARABLE)),
    method("indexOf", Overload("list_a_index_of_int", (ListType(DYN), DYN), INT, index_of)),
    method("lastIndexOf", Overload("list_a_last_index_of_int", (ListType(DYN), DYN), INT, last_index_of)),
)
# The sum of no durations is a duration, too; and of a duration all milliseconds count.
RUNTIME_FUNCTIONS: Final[tuple[Function, ...]] = (
    method(tree.SUM_OF_DURATIONS, Overload("@sum_of_durations", (ListType(DURATION),), DURATION, add_up_durations)),
    method(tree.MILLISECONDS, Overload("@milliseconds", (DURATION,), INT, to_milliseconds)),
)
