"""Lists that are sets or maps: no item twice (apiextensions-apiserver's schema/listtype)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcp.meta import field
from kcp.meta.gotext import marshal_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath
    from kcp.schema.structural.nodes import Node

    Validate = Callable[[Any, FieldPath], list[FieldError]]


def compile_list_types(node: Node) -> Validate | None:
    """What checks the lists in a value of this node; None if no list below is a set or a map."""
    children = {name: compile_list_types(child) for name, child in node.properties.items()}
    deep = {name: validate for name, validate in children.items() if validate is not None}
    validate_other = compile_list_types(node.additional) if node.additional is not None else None
    validate_item = compile_list_types(node.items) if node.items is not None else None
    checks_list = node.list_type in ("set", "map")
    if not deep and validate_other is None and validate_item is None and not checks_list:
        return None

    def validate(value: Any, path: FieldPath) -> list[FieldError]:  # noqa: ANN401 - any JSON value
        errors: list[FieldError] = []
        if value.__class__ is dict:
            if validate_other is not None:
                for name, item in value.items():
                    errors += validate_other(item, path.key(name))
            for name, validate_child in deep.items():
                if name in value:
                    errors += validate_child(value[name], path.child(name))
        elif value.__class__ is list:
            if checks_list:
                errors += _validate_list(node, value, path)
            if validate_item is not None:
                for index, item in enumerate(value):
                    errors += validate_item(item, path.index(index))
        return errors

    return validate


def compile_suspicion(node: Node) -> Callable[[Any], bool] | None:
    """What finds out quickly that nothing in a value is repeated; it may also suspect what turns out to be fine."""
    children = {name: compile_suspicion(child) for name, child in node.properties.items()}
    deep = {name: suspects for name, suspects in children.items() if suspects is not None}
    suspects_other = compile_suspicion(node.additional) if node.additional is not None else None
    suspects_item = compile_suspicion(node.items) if node.items is not None else None
    list_type, keys = node.list_type, node.list_map_keys
    if not deep and suspects_other is None and suspects_item is None and list_type not in ("set", "map"):
        return None

    def suspects(value: Any) -> bool:  # noqa: ANN401 - any JSON value
        if value.__class__ is dict:
            for name, suspects_child in deep.items():
                if name in value and suspects_child(value[name]):
                    return True
            return suspects_other is not None and any(map(suspects_other, value.values()))
        if value.__class__ is not list:
            return False
        if list_type == "set" and _seems_repeated(value):
            return True
        if list_type == "map" and _seems_repeated([_hashable_key(item, keys) for item in value]):
            return True
        return suspects_item is not None and any(map(suspects_item, value))

    return suspects


def _hashable_key(item: Any, names: list[str]) -> Any:  # noqa: ANN401
    if item.__class__ is not dict:
        return []  # which cannot be hashed
    return item.get(names[0]) if len(names) == 1 else tuple([item.get(name) for name in names])


def _seems_repeated(items: list[Any]) -> bool:
    try:
        return len(set(items)) < len(items)
    except TypeError:
        return True


def _validate_list(node: Node, items: list[Any], path: FieldPath) -> list[FieldError]:
    if node.list_type == "set":
        return [field.duplicate(path.index(index), items[index]) for index in _find_repeated(items)]
    for index, item in enumerate(items):
        if item is not None and item.__class__ is not dict:
            return [field.invalid(path.index(index), item, "must be an object for an array of list-type map")]
    keys = [_key_of(item, node.list_map_keys) for item in items]
    return [field.duplicate(path.index(index), keys[index]) for index in _find_repeated(keys)]


def _key_of(item: Object | None, names: list[str]) -> Object:
    return {name: item[name] for name in names if name in item} if item else {}


def _find_repeated(items: list[Any]) -> list[int]:
    """Where a value comes the second time. A third is not worth another error."""
    times: dict[Any, int] = {}
    repeated = []
    for index, item in enumerate(items):
        # The class keeps 1, 1.0 and true apart.
        key = marshal_json(item) if item.__class__ in (dict, list) else item
        times[item.__class__, key] = seen = times.get((item.__class__, key), 0) + 1
        if seen == 2:
            repeated.append(index)
    return repeated
