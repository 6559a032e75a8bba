"""The types that the checker found for the expressions in a syntax tree."""

from __future__ import annotations

from typing import Any, Final

from kcp.schema.cel import declarations, types

Tree = Any  # messages of cel.expr, whose classes are made at run time

STRUCT: Final = "struct"
OPTIONAL: Final = "optional_type"

_PRIMITIVES: Final = {1: types.BOOL, 2: types.INT, 3: types.UINT, 4: types.DOUBLE, 5: types.STRING, 6: types.BYTES}
_WELL_KNOWN: Final = {2: types.TIMESTAMP, 3: types.DURATION}


class Kinds:
    """What kind of value each expression of a tree has; `dyn` where that is not known."""

    def __init__(self, tree: Tree) -> None:
        self._types = {entry.key: entry.value for entry in tree.type_map}

    def kind(self, node: Tree) -> str:
        return _kind(self._types.get(node.id))

    def value_kind(self, node: Tree) -> str:
        """The kind, of an optional value that of what it may hold."""
        found = self._types.get(node.id)
        while found is not None and _kind(found) == OPTIONAL:
            found = found.abstract_type.parameter_types[0]
        return _kind(found)

    def element_kind(self, node: Tree) -> str:
        """The kind of a list's items or a map's keys; nothing if it is neither."""
        found = self._types.get(node.id)
        kind = _kind(found)
        if found is None or kind not in (declarations.LIST, declarations.MAP, OPTIONAL):
            return ""
        if kind == OPTIONAL:
            return _kind(found.abstract_type.parameter_types[0])
        return _kind(found.list_type.elem_type if kind == declarations.LIST else found.map_type.key_type)

    def library_type(self, node: Tree) -> str:
        """The name of a type of one of the libraries, or nothing."""
        found = self._types.get(node.id)
        name = "" if found is None else str(found.message_type)
        return name if name in types.LIBRARY_TYPES else ""


def _kind(found: Tree | None) -> str:
    if found is None:
        return types.DYN
    if found.primitive:
        return _PRIMITIVES.get(found.primitive, types.DYN)
    if found.well_known:
        return _WELL_KNOWN.get(found.well_known, types.DYN)
    if found.HasField("list_type"):
        return declarations.LIST
    if found.HasField("map_type"):
        return declarations.MAP
    if found.HasField("abstract_type"):
        return str(found.abstract_type.name)
    if found.HasField("type_param"):
        return "type_param"
    return STRUCT if found.message_type else types.DYN
