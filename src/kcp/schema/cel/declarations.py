"""What a structural schema declares to expressions: types, and how large values can get.

    {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}}

declares a list of at most 5 strings of at most 40 bytes each. What a schema says nothing about (a field without a type
that preserves unknown fields, say) is not declared, and neither is what holds it (apiserver/pkg/cel/common/schemas.go).
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Final

from kcp.schema.cel import types
from kcp.schema.cel.escaping import escape, reserved_in
from kcp.schema.structural.nodes import INT_OR_STRING, Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.schema.cel.types import CelType

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
OBJECT: Final = "object"
LIST: Final = "list"
MAP: Final = "map"

_MAX_STRING: Final = MAX_REQUEST_BYTES - 2  # without the quotes
_BYTES_PER_CHARACTER: Final = 4
_STRING_SIZE: Final = 2
# Types of strings by format: the type, the smallest size in JSON, and the largest.
_FORMATS: Final = {
    "duration": (types.DURATION, 3, 32),
    "date": (types.TIMESTAMP, 12, 12),
    "date-time": (types.TIMESTAMP, 21, 32),
}
_SIMPLE: Final = {"boolean": (types.BOOL, 4), "number": (types.DOUBLE, 1), "integer": (types.INT, 1)}


@dataclass(frozen=True, slots=True)
class Declaration:
    """`kind` is one of the three above or a simple type. `fields` go by the names that expressions use."""

    kind: str
    min_size: int
    """The fewest bytes that a value takes in JSON."""

    max_elements: int = 0
    """Of a list, map or string; of nothing else is anything known."""

    fields: Mapping[str, Declaration] = dataclass_field(default_factory=dict)
    key: Declaration | None = None
    element: Declaration | None = None
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()


_KEY: Final = Declaration(types.STRING, _STRING_SIZE)


def declare(node: Node, *, is_resource: bool) -> Declaration | None:
    """What a node declares. The type and the names of a resource, outermost or embedded, are declared in any case."""
    if node.schema.get(INT_OR_STRING):
        longest = node.schema.get("maxLength")
        return Declaration(types.DYN, 1, _MAX_STRING if longest is None else _bytes_in(longest))
    if node.type == "array":
        return _declare_list(node)
    if node.type == "object":
        if node.additional is not None:
            return _declare_map(node, node.additional)
        return _declare_object(node, is_resource=is_resource)
    if node.type == "string":
        return _declare_string(node)
    return Declaration(*_SIMPLE[node.type]) if node.type in _SIMPLE else None


def _declare_list(node: Node) -> Declaration | None:
    element = None if node.items is None else declare(node.items, is_resource=node.items.embedded)
    if element is None:
        return None
    most = node.schema.get("maxItems")
    if most is None:
        most = (MAX_REQUEST_BYTES - 2) // (element.min_size + 1)
    keys = tuple(escape(key) or key for key in node.list_map_keys)
    return Declaration(LIST, 2, max(most, 0), element=element, list_type=node.list_type, list_map_keys=keys)


def _declare_map(node: Node, values: Node) -> Declaration | None:
    element = declare(values, is_resource=values.embedded)
    if element is None:
        return None
    most = node.schema.get("maxProperties")
    if most is None:
        # A pair has a key of at least two bytes, its quotes, a colon and a comma.
        most = (MAX_REQUEST_BYTES - 2) // (element.min_size + 6)
    return Declaration(MAP, 2, max(most, 0), key=_KEY, element=element)


def _declare_object(node: Node, *, is_resource: bool) -> Declaration:
    properties = with_type_and_metadata(node) if is_resource else node.properties
    required = frozenset(node.schema.get("required") or ())
    fields: dict[str, Declaration] = {}
    size = 2
    for name, child in properties.items():
        declaration = declare(child, is_resource=child.embedded)
        if declaration is None:
            continue
        identifier = escape(name)
        if identifier is not None:
            fields[identifier] = declaration
        if name in required and child.default is None:
            size += len(name.encode()) + declaration.min_size + 4
    return Declaration(OBJECT, size, fields=fields)


def with_type_and_metadata(node: Node) -> Mapping[str, Node]:
    """The properties of a resource: its type, and the name in its metadata, unless they are all there already."""
    given = node.properties
    metadata = given.get("metadata")
    names = metadata.properties if metadata is not None and metadata.type == "object" else {}
    strings = (given.get("kind"), given.get("apiVersion"), names.get("name"), names.get("generateName"))
    if all(child is not None and child.type == "string" for child in strings):
        return given
    return {**given, **_TYPE_AND_METADATA}


def _make_string() -> Node:
    return Node({"type": "string"})


def _make_metadata() -> Node:
    metadata = Node({"type": "object"})
    metadata.properties = {"name": _make_string(), "generateName": _make_string()}
    return metadata


_TYPE_AND_METADATA: Final = {"kind": _make_string(), "apiVersion": _make_string(), "metadata": _make_metadata()}


def _declare_string(node: Node) -> Declaration:
    schema = node.schema
    longest, string_format = schema.get("maxLength"), schema.get("format") or ""
    if string_format in _FORMATS:
        return Declaration(*_FORMATS[string_format])
    if string_format == "byte":
        return Declaration(types.BYTES, _STRING_SIZE, _MAX_STRING if longest is None else max(longest, 0))
    if longest is not None:
        return Declaration(types.STRING, _STRING_SIZE, _bytes_in(longest))
    allowed = schema.get("enum") or ()
    if allowed:
        lengths = (len(value.encode()) for value in allowed if isinstance(value, str))
        return Declaration(types.STRING, _STRING_SIZE, max(lengths, default=0))
    return Declaration(types.STRING, _STRING_SIZE, _MAX_STRING)


def _bytes_in(characters: int) -> int:
    return int(max(characters, 0)) * _BYTES_PER_CHARACTER


def cel_type(declaration: Declaration, name: str) -> CelType:
    """The type for the checker; object types are named after the place where they are."""
    if declaration.kind == OBJECT:
        fields = {field: cel_type(child, f"{name}.{field}") for field, child in declaration.fields.items()}
        plain = {word: fields[field] for field in declaration.fields if (word := reserved_in(field))}
        return types.ObjectType(name, {**plain, **fields})
    if declaration.element is not None:
        if declaration.kind == LIST:
            return types.ListType(cel_type(declaration.element, f"{name}.@idx"))
        return types.MapType(cel_type(declaration.element, f"{name}.@elem"))
    return declaration.kind
