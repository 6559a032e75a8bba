"""Values of custom resources as expressions see them.

The engine reads plain dicts and lists without copying them, so most values are handed over as they are. Only what looks
different to an expression is made anew, and what holds it:

    {"a-b": 1, "t": "2001-01-01T00:00:00Z", "n": null}    {"a-b": 1, "a__dash__b": 1, "t": <a timestamp>}

No expression can name `a-b`, but some can `namespace`. A null in an object counts as absent; in a list or map it is a
null (apiserver/pkg/cel/common/valuesunstructured.go).
"""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kcp.schema.cel.declarations import with_type_and_metadata
from kcp.schema.cel.descriptors import duration_of, timestamp_of
from kcp.schema.cel.escaping import escape
from kcp.schema.structural.nodes import INT_OR_STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kcp.schema.structural.nodes import Node

    View = Callable[[Any], Any]

_CACHED_TIMES: Final = 4096  # the same ones are looked at on each update
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_GO_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_GO_DURATION: Final = re.compile(rf"([+-]?)(0|(?:{_GO_PART.pattern})+)")
# Durations in words, such as `2 days`. The unit is one of the names, or begins with the last of them.
_WORDS: Final = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)")
_WORD_UNITS: Final = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 10**3),
    (("ms", "milli"), 10**6),
    (("s", "sec"), 10**9),
    (("m", "min"), 60 * 10**9),
    (("h", "hr", "hour"), 3600 * 10**9),
    (("d", "day"), 24 * 3600 * 10**9),
    (("w", "wk", "week"), 7 * 24 * 3600 * 10**9),
)


def compile_view(node: Node, *, is_resource: bool) -> View | None:
    """How to make the view of a node's values; None if they are their own."""
    if node.schema.get(INT_OR_STRING):
        return None
    if node.type == "object":
        return _compile_object(node, is_resource=is_resource)
    if node.type == "array" and node.items is not None:
        item = compile_view(node.items, is_resource=node.items.embedded)
        return None if item is None else _list_view(item)
    if node.type == "number":
        return _to_float
    return _FORMATS.get(node.schema.get("format") or "") if node.type == "string" else None


def compile_selection(node: Node, fields: frozenset[str], *, is_resource: bool) -> View | None:
    """How to make the view of an object of which only some fields are looked at, by the names in expressions."""
    properties: Mapping[str, Node] = with_type_and_metadata(node) if is_resource else node.properties
    if not properties:
        return compile_view(node, is_resource=is_resource)
    steps: list[tuple[str, str, View | None]] = []
    for name, child in properties.items():
        for identifier in {name, escape(name)} & fields:
            steps.append((name, str(identifier), compile_view(child, is_resource=child.embedded)))

    def view(value: dict[str, Any]) -> dict[str, Any]:
        seen = {}
        for name, identifier, make in steps:
            item = value.get(name)
            if item is not None:
                seen[identifier] = item if make is None else make(item)
        return seen

    return view


def _list_view(item: View) -> View:
    return lambda value: [None if each is None else item(each) for each in value]


def _map_view(item: View) -> View:
    return lambda value: {key: None if each is None else item(each) for key, each in value.items()}


def _compile_object(node: Node, *, is_resource: bool) -> View | None:
    properties: Mapping[str, Node] = with_type_and_metadata(node) if is_resource else node.properties
    if not properties:
        item = None if node.additional is None else compile_view(node.additional, is_resource=node.additional.embedded)
        return None if item is None else _map_view(item)
    renamed: dict[str, str] = {}
    views: dict[str, View] = {}
    for name, child in properties.items():
        identifier = escape(name)
        if identifier is not None and identifier != name:
            renamed[name] = identifier
        view = compile_view(child, is_resource=child.embedded)
        if view is not None:
            views[name] = view
    nullable = any(child.nullable for child in properties.values())
    return _object_view(renamed, views) if renamed or views or nullable else None


def _object_view(renamed: Mapping[str, str], views: Mapping[str, View]) -> View:
    def view(value: dict[str, Any]) -> dict[str, Any]:
        seen = {}
        for name, item in value.items():
            if item is None:
                continue
            make = views.get(name)
            seen[name] = seen[renamed.get(name, name)] = item if make is None else make(item)
        return seen

    return view


def _to_float(value: float) -> float:
    return float(value)


# What does not read as its format stays a string, which no operator for the format's type will take.


@lru_cache(maxsize=_CACHED_TIMES)
def _to_timestamp(value: str) -> Any:  # noqa: ANN401 - a timestamp
    text = value.upper()
    try:
        return timestamp_of(text if "T" in text else f"{text}T00:00:00Z")
    except ValueError:
        return value


@lru_cache(maxsize=_CACHED_TIMES)
def _to_duration(value: str) -> Any:  # noqa: ANN401 - a duration
    nanoseconds = parse_duration(value)
    return value if nanoseconds is None else duration_of(nanoseconds)


def _to_bytes(value: str) -> Any:  # noqa: ANN401 - bytes
    try:
        return base64.b64decode(value.encode(), b"-_", validate=True)
    except (ValueError, binascii.Error):
        return value


_FORMATS: Final[dict[str, View]] = {
    "date": _to_timestamp,
    "date-time": _to_timestamp,
    "duration": _to_duration,
    "byte": _to_bytes,
}


def parse_duration(text: str) -> int | None:
    """Nanoseconds; None if it is no duration, neither Go's nor one in words."""
    match = _GO_DURATION.fullmatch(text)
    if match is not None:
        total = sum((Decimal(factor) * _UNITS[unit] for factor, unit in _GO_PART.findall(match[2])), Decimal())
        return -int(total) if match[1] == "-" else int(total)
    found = [int(factor) * scale for factor, word in _WORDS.findall(text) if (scale := _scale_of(word.lower()))]
    return sum(found) if found else None


def _scale_of(word: str) -> int:
    return next((scale for names, scale in _WORD_UNITS if word in names or word.startswith(names[-1])), 0)
