"""Merging an applied configuration into an object, and taking fields out of an object.

Neither function changes its arguments; results share nothing with them but scalars. Must not know managers.
"""

from typing import Any, Final

from kcp.meta.codec import Object
from kcp.patch.comparison import INVALID_ATOM, LIST, MAP, SCALAR, SchemaError, has_element, item_element, kind_of
from kcp.patch.field_set import Node, is_member
from kcp.patch.merge_schema import MergeSchema

_ABSENT: Final = object()


def merge(schema: MergeSchema, live: Object, config: Object) -> Object:
    """The live object with the configuration laid over it. Raises SchemaError."""
    merged = _merge(schema, live, config)
    return merged if isinstance(merged, dict) else {}


def remove_items(schema: MergeSchema | None, value: Any, fields: Node) -> Any:  # noqa: ANN401 - any JSON value
    """The value without these fields and all that is below them; null if nothing is left.

    An atomic list or map goes as a whole if the set has anything below it.
    """
    if schema is None:
        return None
    kind = kind_of(schema, value)
    if kind == SCALAR:
        return value
    if kind == MAP:
        if not isinstance(value, dict) or schema.is_map_atomic:
            return None
        return _remove_from_map(schema, value, fields) or None
    if not isinstance(value, list) or schema.is_list_atomic:
        return None
    return _remove_from_list(schema, value, fields) or None


def copy_value(value: Any) -> Any:  # noqa: ANN401
    """A copy all the way down."""
    if isinstance(value, dict):
        return {key: item if item.__class__ is str else copy_value(item) for key, item in value.items()}
    return [copy_value(item) for item in value] if isinstance(value, list) else value


def _remove_from_map(schema: MergeSchema, value: Object, fields: Node) -> Object:
    kept: Object = {}
    for key, item in value.items():
        node = fields.get("f:" + key)
        if node is None:
            kept[key] = item
        elif not is_member(node):
            kept[key] = remove_items(schema.fields.get(key, schema.element), item, node)
    return kept


def _remove_from_list(schema: MergeSchema, value: list[Any], fields: Node) -> list[Any]:
    kept: list[Any] = []
    for item in value:
        node = fields.get(item_element(schema, item)) if has_element(schema, item) else None
        if node is None:
            kept.append(item)
        elif not is_member(node):
            kept.append(remove_items(schema.item, item, node))
    return kept


def _merge(schema: MergeSchema, left: Any, right: Any) -> Any:  # noqa: ANN401
    """Of two values that are both there. The kind of the right one decides, and null is of any kind."""
    kind = kind_of(schema, right)
    if kind == MAP and not schema.is_map_atomic:
        ours = left if isinstance(left, dict) else {}
        theirs = right if isinstance(right, dict) else {}
        if ours or theirs:
            return _merge_maps(schema, ours, theirs)
    elif kind == LIST and not schema.is_list_atomic:
        items = left if isinstance(left, list) else []
        others = right if isinstance(right, list) else []
        if items or others:
            return _ListMerge(schema, items, others).run()
    return copy_value(right)


def _merge_maps(schema: MergeSchema, left: Object, right: Object) -> Object:
    fields, element = schema.fields, schema.element
    merged: Object = {}
    for key, ours in left.items():
        theirs = right.get(key, _ABSENT)
        child = fields.get(key, element)
        if child is None:
            raise SchemaError(INVALID_ATOM)
        if theirs is _ABSENT:
            merged[key] = ours if ours.__class__ is str else copy_value(ours)
        else:
            merged[key] = theirs if theirs.__class__ is str else _merge(child, ours, theirs)
    for key, theirs in right.items():
        if key not in left:
            if key not in fields and element is None:
                raise SchemaError(INVALID_ATOM)
            merged[key] = copy_value(theirs)
    return merged


class _ListMerge:
    """Merges two sets or keyed lists, keeping both orders as far as they agree.

    Where the lists share items, those stand in the order of the right list; items of the left list alone stay between
    the neighbours they had.
    """

    def __init__(self, schema: MergeSchema, left: list[Any], right: list[Any]) -> None:
        self._schema = schema
        self._left = left
        self._lefts = [item_element(schema, item) for item in left]
        self._rights = [item_element(schema, item) for item in right]
        self._right_items = dict(zip(self._rights, right, strict=True))
        self._left_items: dict[str, Any] = {}
        for element, item in zip(self._lefts, left, strict=True):
            # Items that come twice are not merged with anything.
            self._left_items[element] = None if element in self._left_items else item
        shared = [element for element in self._rights if element in self._left_items]
        self._shared = iter(shared)
        self._next_shared = next(self._shared, None)
        self._taken: set[str] = set()
        self._out: list[Any] = []

    def run(self) -> list[Any]:
        lefts, rights = self._lefts, self._rights
        at = to = 0
        while at < len(lefts) or to < len(rights):
            if at < len(lefts):
                ours = lefts[at]
                both = to < len(rights)
                if both and ours == rights[to]:
                    self._take(ours)
                    self._next_shared = next(self._shared, None)
                    at, to = at + 1, to + 1
                    continue
                if both and ours in self._right_items and self._next_shared not in (None, ours):
                    at += 1  # shared, but it is another one's turn
                    continue
                if ours not in self._right_items:
                    self._out.append(copy_value(self._left[at]))
                    at += 1
                    continue
                at += ours in self._taken
            if to < len(rights):
                theirs = rights[to]
                self._take(theirs)
                if self._next_shared == theirs:
                    self._next_shared = next(self._shared, None)
                to += 1
        return self._out

    def _take(self, element: str) -> None:
        self._taken.add(element)
        item = self._right_items[element]
        if element in self._left_items:
            self._out.append(_merge(self._schema.item, self._left_items[element], item))
        else:
            self._out.append(copy_value(item))
