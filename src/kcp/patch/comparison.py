"""What a value owns and how two values differ, as sets of fields.

`owned_fields` is for a configuration that is applied: the leaves in it. `compare` is for two states of an object, and
counts every map and list that came or went as well. Both walk a value along its schema and raise SchemaError where the
two do not fit. Must not know managers.
"""

from typing import Any, Final, NamedTuple

from kcp.meta.codec import Object
from kcp.meta.gotext import quote
from kcp.patch.field_path import key_element, value_element
from kcp.patch.field_set import LEAF, SELF, Node, as_member, union
from kcp.patch.go_values import equal
from kcp.patch.merge_schema import MergeSchema


class SchemaError(ValueError):
    """A value is not of its type; the message is structured-merge-diff's."""


class Comparison(NamedTuple):
    """The fields that differ between two states. No field is in more than one of the sets."""

    removed: Node
    modified: Node
    added: Node


_Changes = tuple[Node | None, Node | None, Node | None]
_MODIFIED: Final[_Changes] = (None, LEAF, None)
MAP, LIST, SCALAR = "map", "list", "scalar"
INVALID_ATOM: Final = "schema error: invalid atom: inlined"


def compare(schema: MergeSchema, old: Object, new: Object) -> Comparison:
    """How the new state differs from the old one. Raises SchemaError."""
    changes = _compare_maps(schema, old, new)
    if changes is None:
        return Comparison(LEAF, LEAF, LEAF)
    removed, modified, added = changes
    return Comparison(removed or LEAF, modified or LEAF, added or LEAF)


def owned_fields(schema: MergeSchema, value: Object) -> Node:
    """The fields that a configuration sets. Raises SchemaError."""
    return _owned(schema, value) or LEAF


def item_element(schema: MergeSchema, item: Any) -> str:  # noqa: ANN401 - any JSON value, here and below
    """The path element of an item of a list that is a set or has keys. Raises SchemaError."""
    if not schema.keys:
        if isinstance(item, dict):
            raise SchemaError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise SchemaError("not supported: associative list with lists as elements")
        if item is None:
            raise SchemaError("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if not isinstance(item, dict):
        kind = "a null element" if item is None else "non-map elements"
        raise SchemaError(f"associative list with keys may not have {kind}")
    if len(schema.keys) == 1 and schema.keys[0] in item:
        return key_element(((schema.keys[0], item[schema.keys[0]]),))
    defaults = schema.key_defaults
    given = {name: defaults[name] for name in defaults if name not in item}
    given |= {name: item[name] for name in schema.keys if name in item}
    if not given:
        names = " ".join(map(quote, schema.keys))
        raise SchemaError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element([(name, given[name]) for name in sorted(given)])


def index_items(schema: MergeSchema, items: list[Any]) -> dict[str, list[Any]]:
    """The items by path element. An element that occurs again, as it should not, has several. Raises SchemaError."""
    index: dict[str, list[Any]] = {}
    for position, item in enumerate(items):
        try:
            element = item_element(schema, item)
        except SchemaError as error:
            raise SchemaError(f"element {position}: {error}") from None
        if element in index:
            index[element].append(item)
        else:
            index[element] = [item]
    return index


def _index_valid_items(schema: MergeSchema, items: list[Any]) -> dict[str, list[Any]]:
    """The same without items that have no path element, such as nulls that are left when all in an item was removed."""
    try:
        return index_items(schema, items)
    except SchemaError:
        return index_items(schema, [item for item in items if has_element(schema, item)])


def has_element(schema: MergeSchema, item: Any) -> bool:  # noqa: ANN401
    try:
        item_element(schema, item)
    except SchemaError:
        return False
    return True


def kind_of(schema: MergeSchema, value: Any) -> str:  # noqa: ANN401
    """As which of the kinds that its schema allows a value is taken. Null, and what fits none, goes with the first."""
    if isinstance(value, dict):
        if schema.is_map:
            return MAP
    elif isinstance(value, list):
        if schema.is_list:
            return LIST
    elif value is not None and schema.scalar:
        return SCALAR
    return MAP if schema.is_map else SCALAR if schema.scalar else LIST


def _compare(schema: MergeSchema, left: Any, right: Any) -> _Changes | None:  # noqa: ANN401
    """How two values differ that are both there; the sets are nodes of the values' own path."""
    if isinstance(left, dict) and isinstance(right, dict) and schema.is_map:
        return _compare_maps(schema, left, right)
    if isinstance(left, list) and isinstance(right, list) and schema.is_list:
        return _compare_lists(schema, left, right)
    if isinstance(left, dict | list) or isinstance(right, dict | list):
        return _compare_kinds(schema, left, right)
    return None if left == right and isinstance(left, bool) == isinstance(right, bool) else _MODIFIED


def _compare_kinds(schema: MergeSchema, left: Any, right: Any) -> _Changes | None:  # noqa: ANN401
    """Two values of different kinds: it is modified, unless all that happened is that fields below came or went."""
    removed = added = modified = None
    for kind in {kind_of(schema, left), kind_of(schema, right)}:
        container = dict if kind == MAP else list
        is_atomic = schema.is_map_atomic if kind == MAP else schema.is_list_atomic
        ours = left if isinstance(left, container) else None
        theirs = right if isinstance(right, container) else None
        if kind == SCALAR or is_atomic or not (ours or theirs):
            modified = LEAF
        elif ours:
            removed = _below_of(schema, ours)
        else:
            added = _below_of(schema, theirs)
    return removed, modified, added


def _below_of(schema: MergeSchema, value: Any) -> Node:  # noqa: ANN401
    node = whole(schema, value)
    return {key: child for key, child in node.items() if key != SELF}


def _compare_maps(schema: MergeSchema, left: Object, right: Object) -> _Changes | None:
    if schema.is_map_atomic or not (left or right):
        return None if equal(left, right) else _MODIFIED
    fields, element = schema.fields, schema.element
    removed: Node = {}
    modified: Node = {}
    added: Node = {}
    for key, old in left.items():
        child = fields.get(key, element)
        if child is None:
            raise SchemaError(INVALID_ATOM)
        if key not in right:
            removed["f:" + key] = whole(child, old)
            continue
        new = right[key]
        if old.__class__ is str and old == new:
            continue
        changes = _compare(child, old, new)
        if changes is not None:
            _record("f:" + key, changes, removed, modified, added)
    for key, new in right.items():
        if key not in left:
            child = fields.get(key, element)
            if child is None:
                raise SchemaError(INVALID_ATOM)
            added["f:" + key] = LEAF if new.__class__ is str else whole(child, new)
    if removed or modified or added:
        return removed or None, modified or None, added or None
    return None


def _compare_lists(schema: MergeSchema, left: list[Any], right: list[Any]) -> _Changes | None:
    if equal(left, right):
        return None
    if schema.is_list_atomic:
        return _MODIFIED
    removed: Node = {}
    modified: Node = {}
    added: Node = {}
    ours, theirs = index_items(schema, left), index_items(schema, right)
    for element in {**ours, **theirs}:
        olds, news = ours.get(element, ()), theirs.get(element, ())
        changes: _Changes | None
        if len(olds) == 1 and len(news) == 1:
            changes = _compare(schema.item, olds[0], news[0])
        elif len(olds) > 1 and len(news) > 1:
            changes = None if equal(olds, news) else _MODIFIED
        else:
            changes = _side(schema.item, olds), None, _side(schema.item, news)
        if changes is not None:
            _record(element, changes, removed, modified, added)
    return removed or None, modified or None, added or None


def _side(schema: MergeSchema, items: Any) -> Node | None:  # noqa: ANN401
    """The fields of one side of a list under one path element. Items that share it count as one leaf."""
    if not items:
        return None
    return whole(schema, items[0]) if len(items) == 1 else LEAF


def _record(element: str, changes: _Changes, removed: Node, modified: Node, added: Node) -> None:
    gone, changed, come = changes
    if gone is not None:
        removed[element] = gone
    if changed is not None:
        modified[element] = changed
    if come is not None:
        added[element] = come


def whole(schema: MergeSchema, value: Any) -> Node:  # noqa: ANN401
    """All fields of a value that came or went as a whole: the value's own path and every path below it."""
    if isinstance(value, dict):
        if not value or not schema.is_map or schema.is_map_atomic:
            return LEAF
        fields, element = schema.fields, schema.element
        node: Node = {SELF: LEAF}
        for key, item in value.items():
            child = fields.get(key, element)
            if child is None:
                raise SchemaError(INVALID_ATOM)
            node["f:" + key] = LEAF if item.__class__ is str else whole(child, item)
        return node
    if isinstance(value, list) and value and schema.is_list and not schema.is_list_atomic:
        node = {SELF: LEAF}
        for name, items in index_items(schema, value).items():
            node[name] = whole(schema.item, items[0]) if len(items) == 1 else LEAF
        return node
    return LEAF


def _owned(schema: MergeSchema, value: Any) -> Node | None:  # noqa: ANN401
    """The node of a value in the set of what a configuration owns; None if it is not in the set at all."""
    kind = kind_of(schema, value)
    if kind == SCALAR or (schema.is_map_atomic if kind == MAP else schema.is_list_atomic):
        return LEAF
    if isinstance(value, dict):
        return _owned_of_map(schema, value)
    if not isinstance(value, list):
        return None
    node: Node = {}
    for element, items in _index_valid_items(schema, value).items():
        child = _owned(schema.item, items[0]) if len(items) == 1 else None
        node[element] = as_member(child) if child else LEAF
    return node or None


def _owned_of_map(schema: MergeSchema, value: Object) -> Node | None:
    fields, element = schema.fields, schema.element
    node: Node = {}
    for key, item in value.items():
        field = fields.get(key, element)
        if field is None:
            raise SchemaError(INVALID_ATOM)
        child = LEAF if item.__class__ is str and field.scalar else _owned(field, item)
        if item is None or item == {} or key not in fields:
            node["f:" + key] = as_member(child) if child else LEAF
        elif child is not None:
            node["f:" + key] = child
    return node or None


def changed_fields(comparison: Comparison) -> Node:
    """What a writer of the new state has set."""
    return union(comparison.modified, comparison.added)
