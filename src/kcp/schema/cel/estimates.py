"""Ranges of costs and sizes that cannot overflow (cel-go/checker/cost.go)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MAX_UINT64: Final = 2**64 - 1


class Range(NamedTuple):
    """The least and the most that something costs, or that there is of something."""

    min: int
    max: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.min + other.min, MAX_UINT64), min(self.max + other.max, MAX_UINT64))

    def times(self, other: Range) -> Range:
        return Range(min(self.min * other.min, MAX_UINT64), min(self.max * other.max, MAX_UINT64))

    def scaled(self, factor: float) -> Range:
        """Multiplied and rounded up."""
        return Range(_scale(self.min, factor), _scale(self.max, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.min, other.min), max(self.max, other.max))


def exactly(number: int) -> Range:
    return Range(number, number)


def _scale(number: int, factor: float) -> int:
    return min(math.ceil(float(number) * factor), MAX_UINT64)


NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MAX_UINT64)
