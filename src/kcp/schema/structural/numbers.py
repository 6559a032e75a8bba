"""Numbers as Go's JSON decoder and kube-openapi see them: int64 or float64."""

from __future__ import annotations

import math
from typing import Any, Final

MIN_INT64: Final = -(2**63)
MAX_INT64: Final = 2**63 - 1
_MAX_JSON_FLOAT: Final = float(2**53 - 1)
_EPSILON: Final = 1e-9
_SMALLEST: Final = 5e-324


def as_number(value: Any) -> int | float:  # noqa: ANN401 - int or float
    """An integer that no int64 can hold is a float64."""
    return value if value.__class__ is float or MIN_INT64 <= value <= MAX_INT64 else float(value)


def as_int64(value: float) -> int:
    """Go's conversion on amd64: the fraction is cut off, and what does not fit becomes the smallest number."""
    if not math.isfinite(value):
        return MIN_INT64
    whole = int(value)
    return whole if MIN_INT64 <= whole <= MAX_INT64 else MIN_INT64


def is_json_integer(value: float) -> bool:
    """swag.IsFloat64AJSONInteger: whole, or so nearly that it makes no difference."""
    if not math.isfinite(value) or abs(value) > _MAX_JSON_FLOAT:
        return False
    whole = float(int(value))
    if value == whole:
        return True
    difference = abs(value - whole)
    if whole == 0 or difference < _SMALLEST:
        return difference < _EPSILON * _SMALLEST
    return difference / (abs(value) + abs(whole)) < _EPSILON
