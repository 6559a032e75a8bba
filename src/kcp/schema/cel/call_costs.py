"""What calls of functions are estimated to cost, and how large their results get.

The numbers decide which rules a definition may have, so they are those of Kubernetes to the unit
(apiserver/pkg/cel/library/cost.go, cel-go/checker/cost.go and cel-go/ext).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.schema.cel import types
from kcp.schema.cel.estimates import MAX_UINT64, ONE, UNKNOWN, Range, exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STRING_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40

_AUTHORIZATION_COST: Final = 350_000
_MAX_FORMAT: Final = 64
_MAX_FORMAT_PATTERN: Final = 128
_ADDRESS: Final = Range(4, 16)  # bytes of an IP


@dataclass(frozen=True, slots=True)
class Operand:
    """A target or an argument of a call."""

    kind: str
    type_name: str
    """Of a type of a library."""

    size: Range | None
    """None if the expression does not tell, and neither does the schema."""

    literal: Any
    """An integer that is written in the expression, if it is one."""

    element_kind: str
    """Of a list or map, or nothing."""

    element_size: Range

    @property
    def known_size(self) -> Range:
        return UNKNOWN if self.size is None else self.size


class Call(NamedTuple):
    """A call that the checker accepted; of a method the target is the first operand."""

    overload: str
    operands: Sequence[Operand]


class Estimate(NamedTuple):
    """The cost without that of the arguments."""

    cost: Range
    size: Range | None = None


if TYPE_CHECKING:
    Estimator = Callable[[Call], Estimate | None]


def estimate_call(function: str, call: Call) -> Estimate | None:
    """What a function with a price of its own costs; None if it costs what every call does."""
    estimators = (_BY_OVERLOAD.get(call.overload), _BY_NAME.get(function), _STANDARD.get(call.overload))
    for estimator in estimators:
        found = None if estimator is None else estimator(call)
        if found is not None:
            return found
    return None


def _unit(call: Call) -> Estimate:
    return Estimate(ONE)


def _check(call: Call) -> Estimate:
    return Estimate(exactly(_AUTHORIZATION_COST))


def _selector(call: Call) -> Estimate:
    size = call.operands[1].known_size
    # A selector is a list of requirements; the shortest one that holds anything has two characters.
    requirements = size.scaled(0.5).scaled(LIST_COST + STRUCT_COST)
    return Estimate(exactly(LIST_COST).plus(size.scaled(STRING_FACTOR)).plus(requirements))


def _search(call: Call) -> Estimate:
    """Looking at everything in a list, or at every character."""
    target = call.operands[0]
    if not target.element_kind:
        return Estimate(target.known_size.scaled(STRING_FACTOR))
    each = ONE
    if target.element_kind in (types.STRING, types.BYTES):
        each = each.plus(target.element_size.scaled(STRING_FACTOR))
    return Estimate(target.known_size.times(each))


def _parse(factor: float = STRING_FACTOR, *, keeps_size: bool = False) -> Estimator:
    def estimate(call: Call) -> Estimate:
        size = call.operands[0].known_size
        return Estimate(size.scaled(factor), size if keeps_size else None)

    return estimate


def _transform(call: Call) -> Estimate:
    size = call.operands[0].known_size
    return Estimate(size.scaled(STRING_FACTOR), size)


def _replace(call: Call) -> Estimate:
    size, old, new = (operand.known_size for operand in call.operands[:3])
    most, most_kept = _replacements(size.max, old.min, shrinks=new.max <= old.min)
    least, least_kept = _replacements(size.min, old.max, shrinks=old.max <= new.min)
    result = Range(least, most).times(new).plus(Range(least_kept, most_kept))
    return Estimate(size.scaled(2 * STRING_FACTOR), result)


def _replacements(size: int, old: int, *, shrinks: bool) -> tuple[int, int]:
    """How often something is replaced, and how much of the rest to count."""
    if old == 0:  # the empty string is around every character
        return min(size + 1, MAX_UINT64), size
    return (0, size) if shrinks else (min(math.ceil(size / old), MAX_UINT64), 0)


def _split(call: Call) -> Estimate:
    size = call.operands[0].known_size
    most = size.max
    if len(call.operands) > 2 and call.operands[2].literal is not None:
        most = call.operands[2].literal % (MAX_UINT64 + 1)
    return Estimate(size.scaled(2 * STRING_FACTOR), Range(0, most))


def _join(call: Call) -> Estimate:
    target, *separator = call.operands
    count = target.known_size
    size = count.times(target.element_size)
    if separator:
        separators = Range(max(count.min - 1, 0), max(count.max - 1, 0))
        size = size.plus(separator[0].known_size.times(separators))
    return Estimate(size.scaled(STRING_FACTOR), size)


def _find(call: Call) -> Estimate:
    size = call.operands[0].known_size
    return Estimate(_match(size, call.operands[1].known_size), Range(0, size.max))


def _match(text: Range, pattern: Range) -> Range:
    return text.plus(ONE).scaled(STRING_FACTOR).times(pattern.scaled(REGEX_FACTOR))


def _ip(call: Call) -> Estimate | None:
    return _unit(call) if call.overload == "cidr_ip" else _parse()(call)


def _contains_address(call: Call) -> Estimate:
    cost = _ADDRESS.plus(_ADDRESS).scaled(STRING_FACTOR)
    if "contains_cidr" in call.overload:
        cost = cost.plus(_ADDRESS.scaled(STRING_FACTOR)).plus(ONE)
    if call.overload.endswith("_string"):
        cost = cost.plus(call.operands[1].known_size.scaled(STRING_FACTOR))
    return Estimate(cost)


def _validate(call: Call) -> Estimate:
    size = call.operands[1].known_size
    return Estimate(size.scaled(STRING_FACTOR).scaled(_MAX_FORMAT_PATTERN * REGEX_FACTOR))


def _equal_values(call: Call) -> Estimate | None:
    """Values of library types; all others are compared as the standard says."""
    left, right = call.operands
    if not left.type_name or left.type_name != right.type_name:
        return None
    if left.type_name == types.FORMAT:
        return Estimate(Range(1, _MAX_FORMAT).scaled(STRING_FACTOR))
    if left.type_name == types.URL:
        return Estimate(Range(1, 1 if right.size is None else right.size.max).scaled(STRING_FACTOR))
    return Estimate(ONE)


_UNITS: Final = (
    "serviceAccount path group resource subresource namespace name allowed reason error errored masked prefixLength "
    "family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast format.named sign "
    "asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch getScheme "
    "getHostname getHost getPort getEscapedPath getQuery"
)
_BY_NAME: Final[dict[str, Estimator]] = {
    "check": _check,
    **dict.fromkeys(_UNITS.split(), _unit),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _search),
    "url": _parse(keeps_size=True),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _transform),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _parse()),
    "ip": _ip,
    "ip.isCanonical": _parse(2 * STRING_FACTOR),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_address),
    "validate": _validate,
    "_==_": _equal_values,
}


def _make_list(factor: float, size: Range) -> Estimate:
    return Estimate(size.scaled(factor).plus(exactly(1 + LIST_COST)), size)


def _number(operand: Operand, otherwise: int) -> int:
    return otherwise if operand.literal is None else max(int(operand.literal), 0)


def _slice(call: Call) -> Estimate:
    target, first, last = call.operands
    start, end = _number(first, 0), _number(last, target.known_size.max)
    return _make_list(1, exactly((end - start) % (MAX_UINT64 + 1)))


def _range(call: Call) -> Estimate:
    return _make_list(1, exactly(_number(call.operands[0], MAX_UINT64)))


def _reverse(call: Call) -> Estimate:
    return _make_list(1, call.operands[0].known_size)


def _flatten(call: Call) -> Estimate:
    target, *given = call.operands
    depth = _number(given[0], MAX_UINT64) if given else 1
    return _make_list(float(depth), target.known_size)


def _sort(call: Call) -> Estimate:
    """Comparing everything with everything: the list itself, or the keys to sort it by."""
    size = call.operands[-1].known_size
    is_text = call.overload.startswith(("list_string_", "list_bytes_"))
    return _make_list(2 + STRING_FACTOR if is_text else 2, size.times(size))


def _compare_sets(factor: float) -> Estimator:
    def estimate(call: Call) -> Estimate:
        left, right = (operand.known_size for operand in call.operands)
        return Estimate(left.times(right).scaled(factor).plus(ONE))

    return estimate


_SORTED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_BY_OVERLOAD: Final[dict[str, Estimator]] = {
    "list_sets_contains_list": _compare_sets(1),
    "list_sets_intersects_list": _compare_sets(1),
    "list_sets_equivalent_list": _compare_sets(2),
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _sort,
    **{f"list_{kind}_sort": _sort for kind in _SORTED},
    **{f"list_{kind}_sortByAssociatedKeys": _sort for kind in _SORTED},
}


def _format(call: Call) -> Estimate:
    return Estimate(call.operands[0].known_size.scaled(STRING_FACTOR))


def _to_bytes(call: Call) -> Estimate:
    size = call.operands[0].known_size
    return Estimate(size.scaled(STRING_FACTOR), Range(size.min, size.max * 4 % (MAX_UINT64 + 1)))


def _to_string(call: Call) -> Estimate:
    size = call.operands[0].known_size
    return Estimate(size.scaled(STRING_FACTOR), Range(size.min // 4, size.max))


def _quote(call: Call) -> Estimate:
    size = call.operands[0].known_size
    return Estimate(size.scaled(STRING_FACTOR), Range(size.min + 2, (size.max * 2 + 2) % (MAX_UINT64 + 1)))


def _part(call: Call) -> Estimate:
    return Estimate(call.operands[1].known_size.scaled(STRING_FACTOR))


def _contained(call: Call) -> Estimate:
    return Estimate(call.operands[1].known_size)


def _matches(call: Call) -> Estimate:
    text, pattern = (operand.known_size for operand in call.operands)
    return Estimate(_match(text, pattern))


def _contains(call: Call) -> Estimate:
    text, part = (operand.known_size for operand in call.operands)
    return Estimate(text.scaled(STRING_FACTOR).times(part.scaled(STRING_FACTOR)))


def _add(call: Call) -> Estimate:
    size = call.operands[0].known_size.plus(call.operands[1].known_size)
    return Estimate(ONE if call.overload == "add_list" else size.scaled(STRING_FACTOR), size)


def _compare(call: Call) -> Estimate:
    most = min(operand.known_size.max for operand in call.operands)
    return Estimate(Range(1 if most else 0, most).scaled(STRING_FACTOR))


_COMPARISONS: Final = tuple(
    f"{name}_{kind}" for name in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
)
_STANDARD: Final[dict[str, Estimator]] = {
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "strings_quote": _quote,
    "starts_with_string": _part,
    "ends_with_string": _part,
    "in_list": _contained,
    "matches_string": _matches,
    "contains_string": _contains,
    **dict.fromkeys(("add_string", "add_bytes", "add_list"), _add),
    **dict.fromkeys((*_COMPARISONS, "equals", "not_equals"), _compare),
}
