"""Filling in a schema's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcp.schema.structural.nodes import Node, copy_json

if TYPE_CHECKING:
    from collections.abc import Callable

    Default = Callable[[Any], None]


def compile_defaulter(node: Node) -> Default | None:
    """The function that puts defaults into a value of this node; None if there are none to put anywhere below."""
    defaults = [(name, child.default, child.nullable) for name, child in node.properties.items()]
    defaults = [entry for entry in defaults if entry[1] is not None]
    inner = {name: compile_defaulter(child) for name, child in node.properties.items()}
    deep = {name: default for name, default in inner.items() if default is not None}
    default_other = _compile_elements(node.additional)
    default_items = _compile_elements(node.items)
    if not defaults and not deep and default_other is None and default_items is None:
        return None

    def default(value: Any) -> None:  # noqa: ANN401 - any JSON value
        if value.__class__ is dict:
            for name, preset, nullable in defaults:
                if name not in value or (value[name] is None and not nullable):
                    value[name] = copy_json(preset)
            for name, default_child in deep.items():
                if name in value:
                    default_child(value[name])
            if default_other is not None:
                default_other(value, [name for name in value if name not in inner])
        elif value.__class__ is list and default_items is not None:
            default_items(value, range(len(value)))

    return default


def _compile_elements(node: Node | None) -> Callable[[Any, Any], None] | None:
    """For the values of a map and the items of a list, at the given keys."""
    if node is None:
        return None
    default_inner = compile_defaulter(node)
    preset = None if node.nullable else node.default
    if default_inner is None and preset is None:
        return None

    def default(container: Any, keys: Any) -> None:  # noqa: ANN401
        for key in keys:
            if container[key] is None:
                container[key] = copy_json(preset)
            if default_inner is not None:
                default_inner(container[key])

    return default
