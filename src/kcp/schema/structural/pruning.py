"""Dropping what a schema does not specify, and nulls where there may be none.

Go prunes in place and removes nulls in a second walk (apiextensions-apiserver's pruning and defaulting packages); here
one walk makes a new object of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kcp.schema.structural.nodes import META_FIELDS, Node

if TYPE_CHECKING:
    from collections.abc import Callable

    # (value, where it is, where to report the paths of what is dropped) -> what is left
    Prune = Callable[[Any, "Place", list[str]], Any]

# `(((), "spec"), 0)` is `spec[0]`: a path is written out only if there is something to say about it.
Place: TypeAlias = "tuple[()] | tuple[Place, str | int]"

_CONTAINERS: Final[frozenset[type]] = frozenset({dict, list})


class _Child(NamedTuple):
    prune: Prune  # called for objects and arrays only; there is nothing to drop in a scalar
    drops_null: bool


def compile_pruner(node: Node | None, *, is_root: bool = False, keeps_unknown: bool = False) -> Prune:
    """The function that prunes values of this node. None is a place the schema does not know: everything goes.

    `keeps_unknown` extends x-kubernetes-preserve-unknown-fields to the items of an array that has it.
    """
    if node is None:
        return _keep if keeps_unknown else _prune_all
    keeps_unknown = keeps_unknown or node.preserve
    children, other = _compile_children(node, is_root=is_root, keeps_unknown=keeps_unknown)
    find_child = children.get
    prune_item = compile_pruner(node.items, keeps_unknown=keeps_unknown)

    def prune(value: Any, place: Place, unknown: list[str]) -> Any:  # noqa: ANN401 - any JSON value
        if value.__class__ is list:
            return [
                prune_item(item, (place, index), unknown) if item.__class__ in _CONTAINERS else item
                for index, item in enumerate(value)
            ]
        kept: dict[str, Any] = {}
        for name, item in value.items():
            child = find_child(name, other)
            if child is None:
                unknown.append(_write_path((place, name)))
            elif item.__class__ in _CONTAINERS:
                kept[name] = child.prune(item, (place, name), unknown)
            elif item is not None or not child.drops_null:
                kept[name] = item
        return kept

    return prune


def _compile_children(
    node: Node, *, is_root: bool, keeps_unknown: bool
) -> tuple[dict[str, _Child | None], _Child | None]:
    """What prunes the fields of an object by their names, and those of any other name (None: they are dropped)."""
    children: dict[str, _Child | None] = {name: _make_child(child) for name, child in node.properties.items()}
    other = _make_child(node.additional) if node.has_additional else None
    if other is None and keeps_unknown:
        other = _Child(_keep, drops_null=False)
    if node.embedded or is_root:
        # Type and metadata of a resource are always known; whoever decodes metadata cleans it.
        for name in META_FIELDS:
            child = node.properties.get(name)
            children[name] = _Child(_keep, child is not None and _drops_null(child))
    return children, other


def _make_child(node: Node | None) -> _Child:
    return _Child(compile_pruner(node), node is not None and _drops_null(node))


def _drops_null(node: Node) -> bool:
    """A null that is not allowed is no value; if there is a default, defaulting puts it there."""
    return not node.nullable and node.default is None


def _keep(value: Any, place: Place, unknown: list[str]) -> Any:  # noqa: ANN401
    return value


def _prune_all(value: Any, place: Place, unknown: list[str]) -> Any:  # noqa: ANN401
    if value.__class__ is list:
        return [
            _prune_all(item, (place, index), unknown) if item.__class__ in _CONTAINERS else item
            for index, item in enumerate(value)
        ]
    unknown.extend(_write_path((place, name)) for name in value)
    return {}


def _write_path(place: Place) -> str:
    if not place:
        return ""
    parent, step = place
    before = _write_path(parent)
    if isinstance(step, int):
        return f"{before}[{step}]"
    return f"{before}.{step}" if before else step
