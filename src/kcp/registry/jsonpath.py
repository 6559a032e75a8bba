"""JSONPath as kubectl and printer columns use it (client-go's util/jsonpath), for plain JSON values.

One expression without braces, such as `.status.conditions[?(@.type=="Ready")].status`. Templates of several
expressions, `range` and `end` are left out: nothing that is stored in an object uses them. Keys that are missing give
no result; what Go reports as an error when it evaluates is a JSONPathError here.

Example, `.spec.ports[*].name` on {"spec": {"ports": [{"name": "a"}, {"port": 1}, {"name": "b"}]}}:

    start          [the object]
    .spec          [{"ports": [...]}]
    .ports         [[{...}, {...}, {...}]]
    [*]            [{"name": "a"}, {"port": 1}, {"name": "b"}]
    .name          ["a", "b"]
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kcp.registry import jsonpath_parser
from kcp.registry.jsonpath_parser import (
    Array,
    Field,
    Filter,
    Identifier,
    JSONPathError,
    Literal,
    Node,
    Recursive,
    Union,
    Wildcard,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JSONPath", "JSONPathError", "parse_jsonpath"]

Values: TypeAlias = list[Any]


class JSONPath:
    """A parsed expression."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        # Nearly all columns are a plain chain of fields, which needs no lists of values.
        self._chain = tuple(node.name for node in nodes if isinstance(node, Field))
        self._is_chain = len(self._chain) == len(nodes)

    def find(self, value: Any) -> Values:  # noqa: ANN401 - any JSON value, here and below
        """Everything that the expression selects; empty if it selects nothing. Raises JSONPathError."""
        if not self._is_chain:
            return _walk(self._nodes, [value])
        for name in self._chain:
            if not isinstance(value, dict) or name not in value:
                return []
            value = value[name]
        return [value]


@lru_cache(maxsize=4096)
def parse_jsonpath(text: str) -> JSONPath:
    """Read an expression. Raises JSONPathError."""
    return JSONPath(jsonpath_parser.parse(text))


def _walk(nodes: list[Node], values: Values) -> Values:
    for node in nodes:
        values = _STEPS[type(node)](node, values)
    return values


def _field(node: Field, values: Values) -> Values:
    return [value[node.name] for value in values if isinstance(value, dict) and node.name in value]


def _literal(node: Literal, values: Values) -> Values:
    return [node.value] if isinstance(node.value, str) else [node.value] * len(values)


def _identifier(node: Identifier, values: Values) -> Values:
    raise JSONPathError(f"unrecognized identifier {node.name}")


def _wildcard(node: Wildcard, values: Values) -> Values:
    return [child for value in values for child in _children(value)]


def _recursive(node: Recursive, values: Values) -> Values:
    """Every value that has children, each before its children."""
    found: Values = []
    todo = values[::-1]
    while todo:
        value = todo.pop()
        children = _children(value)
        if children:
            found.append(value)
            todo += children[::-1]
    return found


def _union(node: Union, values: Values) -> Values:
    return [value for nodes in node.branches for value in _walk(nodes, values)]


def _array(node: Array, values: Values) -> Values:
    found: Values = []
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            raise JSONPathError("not an array or slice")
        part = _slice(node, value)
        if part is None:
            return found
        found += part
    return found


def _slice(node: Array, value: Values) -> Values | None:
    """The chosen elements; None where Go stops looking because none are asked for."""
    length = len(value)
    start = node.start or 0
    if start < 0:
        start += length
    # [-1] ends at 0, which means the end and not the beginning.
    end = length if node.end is None else node.end
    if end < 0 or (end == 0 and node.is_index):
        end += length
    if start == end:
        return None
    if not 0 <= start < length or not 0 <= end <= length:
        raise JSONPathError(f"array index out of bounds: index {start}, length {length}")
    if start > end:
        raise JSONPathError(f"starting index {start} is greater than ending index {end}")
    if node.step is not None and node.step <= 0:
        raise JSONPathError("step must be > 0")
    return value[start : end : node.step or 1]


def _filter(node: Filter, values: Values) -> Values:
    found: Values = []
    for value in values:
        if not isinstance(value, list):
            raise JSONPathError("not an array or slice and cannot be filtered")
        found += [item for item in value if _passes(node, item)]
    return found


def _passes(node: Filter, item: Any) -> bool:  # noqa: ANN401
    lefts = _walk(node.left, [item])
    if node.operator == "exists":
        return bool(lefts)
    if not lefts:
        return False
    rights = _walk(node.right, [item])
    if len(lefts) > 1 or len(rights) > 1:
        raise JSONPathError("can only compare one element at a time")
    return bool(rights) and _compare(node.operator, lefts[0], rights[0])


def _compare(operator: str, left: Any, right: Any) -> bool:  # noqa: ANN401
    compare = _OPERATORS.get(operator)
    if compare is None:
        raise JSONPathError(f"unrecognized filter operator {operator}")
    if type(left) is not type(right):
        raise JSONPathError("incompatible types for comparison")
    ordered = operator not in ("==", "!=")
    if not isinstance(left, str | int | float) or (ordered and isinstance(left, bool)):
        raise JSONPathError("invalid type for comparison")
    return compare(left, right)


def _children(value: Any) -> Values:  # noqa: ANN401
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    return list(value.encode()) if isinstance(value, str) else []  # Go sees the bytes of a string


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_STEPS: Final[dict[type[Node], Callable[[Any, Values], Values]]] = {
    Field: _field,
    Literal: _literal,
    Identifier: _identifier,
    Wildcard: _wildcard,
    Recursive: _recursive,
    Union: _union,
    Array: _array,
    Filter: _filter,
}
