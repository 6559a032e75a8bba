"""What Kubernetes asks of literals beyond their types: lists and maps of one kind, and arguments that can be read."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kcp.schema.cel.views import parse_duration
from kcp.schema.structural.formats import is_datetime
from kcp.schema.structural.regexps import PatternError, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Tree = Any  # messages of cel.expr, whose classes are made at run time

_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {1: "any", 2: "timestamp", 3: "duration"}
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+")
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_QUOTED: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
# The years 1 to 9999.
_MAX_INT64: Final = 2**63 - 1
_MIN_SECONDS: Final = -62_135_596_800
_MAX_SECONDS: Final = 253_402_300_799


def check(tree: Tree, nodes: Iterable[Tree], expression: str, exempt: frozenset[int]) -> list[str]:
    """Complaints about an expression that is otherwise fine, each with its place.

    The lists and maps with these ids may hold values of several types.
    """
    kinds = {entry.key: entry.value for entry in tree.type_map}
    positions = {entry.key: entry.value for entry in tree.source_info.positions}
    found = [complaint for node in nodes for complaint in _complaints(node, kinds, exempt)]
    quoted = _QUOTED.sub(lambda literal: "_" * len(literal[0]), expression).find("`")
    if quoted >= 0:
        return [_place(expression, quoted, "unsupported syntax: '`'")]
    found.sort(key=lambda complaint: positions.get(complaint[0], 0))
    return [_place(expression, positions.get(node_id, 0), text) for node_id, text in found]


def _complaints(node: Tree, kinds: dict[int, Tree], exempt: frozenset[int]) -> Iterator[tuple[int, str]]:
    if node.HasField("call_expr"):
        yield from _bad_argument(node.call_expr)
    elif node.id in exempt:
        return
    elif node.HasField("list_expr"):
        optional = set(node.list_expr.optional_indices)
        elements = enumerate(node.list_expr.elements)
        yield from islice(_mismatches((one.id, _type(one, kinds, index in optional)) for index, one in elements), 1)
    elif node.HasField("struct_expr") and not node.struct_expr.message_name:
        entries = list(node.struct_expr.entries)
        yield from _mismatches((entry.map_key.id, _type(entry.map_key, kinds)) for entry in entries)
        yield from _mismatches((one.value.id, _type(one.value, kinds, one.optional_entry)) for one in entries)


def _mismatches(items: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Items that are of another type than the first; of a list, only one is reported."""
    expected = ""
    for node_id, name in items:
        if not expected or "dyn" in expected:
            expected = name
        elif name != expected and "dyn" not in name:
            yield node_id, f"expected type '{expected}' but found '{name}'"


def _bad_argument(call: Tree) -> Iterator[tuple[int, str]]:
    if len(call.args) != 1 or not call.args[0].HasField("const_expr"):
        return
    constant = call.args[0].const_expr
    text = constant.string_value
    is_good = True
    if call.function == "timestamp" and constant.HasField("int64_value"):
        is_good = _MIN_SECONDS <= constant.int64_value <= _MAX_SECONDS
    elif not constant.HasField("string_value"):
        return
    elif call.function == "duration":
        is_good = _DURATION.fullmatch(text) is not None and abs(parse_duration(text) or 0) <= _MAX_INT64
    elif call.function == "timestamp":
        is_good = _TIMESTAMP.fullmatch(text) is not None and is_datetime(text)
    elif call.function == "matches":
        try:
            compile_pattern(text)
        except PatternError:
            is_good = False
    if not is_good:
        yield call.args[0].id, f"invalid {call.function} argument"


def check_patterns(nodes: Iterable[Tree]) -> str:
    """Why the functions cannot be called with the patterns that are written in the expression; nothing if they can."""
    for node in nodes:
        call = node.call_expr
        if call.function in ("find", "findAll") and call.args and call.args[0].const_expr.HasField("string_value"):
            try:
                compile_pattern(call.args[0].const_expr.string_value)
            except PatternError as error:
                return str(error)
    return ""


def _type(node: Tree, kinds: dict[int, Tree], is_optional: bool = False) -> str:
    """The type of an expression as cel-go prints it."""
    kind = kinds.get(node.id)
    if is_optional and kind is not None and len(kind.abstract_type.parameter_types):
        kind = kind.abstract_type.parameter_types[0]
    return "dyn" if kind is None else _name(kind)


def _name(kind: Tree) -> str:
    if kind.primitive or kind.well_known:
        return _PRIMITIVES.get(kind.primitive) or _WELL_KNOWN.get(kind.well_known, "any")
    if kind.HasField("list_type"):
        return f"list({_name(kind.list_type.elem_type)})"
    if kind.HasField("map_type"):
        return f"map({_name(kind.map_type.key_type)}, {_name(kind.map_type.value_type)})"
    if kind.HasField("abstract_type"):
        return f"{kind.abstract_type.name}({', '.join(map(_name, kind.abstract_type.parameter_types))})"
    # Null fits wherever an object does, and is not told apart from what has no type.
    return str(kind.message_type) or "dyn"


def _place(expression: str, offset: int, text: str) -> str:
    starts = [0, *(match.end() for match in re.finditer("\n", expression))]
    row = bisect_right(starts, offset)
    column = offset - starts[row - 1]
    line = expression.split("\n")[row - 1]
    return f"ERROR: <input>:{row}:{column + 1}: {text}\n | {line}\n | {'.' * column}^"
