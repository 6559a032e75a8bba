"""Sets of fields, in the very form in which managed fields store them.

A set is a tree of path elements (`field_path`). In the tree a node is a dict, and it says by itself whether its own
path is a member of the set. The set of .data, .data.k and .metadata.labels.l is

    {"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}

    {}                       member, nothing below
    {".": {}, "f:k": {}}     member, and so is .k below
    {"f:l": {}}              no member, but .l below is

Nodes are never changed once they are in a set, so sets share them freely, with each other and with the objects they
were read from. Must not know objects; `comparison` and `apply` make sets from those.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kcp.meta.codec import Object
from kcp.patch.field_path import canonical, describe, sort_key
from kcp.patch.merge_schema import MergeSchema

Node = Object
SELF: Final = "."
LEAF: Final[Node] = {}


class FieldSet:
    """An immutable set of fields. `fields` is the tree; its root is no member of itself."""

    __slots__ = ("fields",)

    def __init__(self, fields: Node | None = None) -> None:
        self.fields: Node = {} if fields is None else fields

    @classmethod
    def of(cls, *paths: Iterable[str]) -> "FieldSet":
        """The set of these paths, each a sequence of elements or plain field names: `FieldSet.of(["status"])`."""
        result: Node = {}
        for path in paths:
            node = LEAF
            for name in reversed([*path]):
                node = {name if name[1:2] == ":" else f"f:{name}": node}
            result = union(result, node)
        return cls(result)

    @classmethod
    def parse(cls, fields: Any) -> "FieldSet":  # noqa: ANN401 - whatever a client sent as fieldsV1
        """Read fieldsV1. Raises ValueError."""
        if fields is None:
            return cls()
        node = normalize(fields)
        return cls({key: child for key, child in node.items() if key != SELF})

    def __bool__(self) -> bool:
        return bool(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.fields == other.fields

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FieldSet({' '.join(self.describe())})"

    def __contains__(self, path: Iterable[str]) -> bool:
        node: Node | None = self.fields
        elements = [*path]
        for element in elements:
            node = node.get(element) if node is not None else None
        return bool(elements) and node is not None and (not node or SELF in node)

    def union(self, other: "FieldSet") -> "FieldSet":
        return FieldSet(union(self.fields, other.fields))

    def intersection(self, other: "FieldSet") -> "FieldSet":
        return FieldSet(intersection(self.fields, other.fields))

    def difference(self, other: "FieldSet") -> "FieldSet":
        return FieldSet(difference(self.fields, other.fields))

    def recursive_difference(self, other: "FieldSet") -> "FieldSet":
        """Without the other's fields and without all that is below them."""
        return FieldSet(recursive_difference(self.fields, other.fields))

    def leaves(self) -> "FieldSet":
        """Only those fields below which there is no other."""
        return FieldSet({key: _leaves(child) for key, child in self.fields.items()})

    def ensure_named_fields(self, schema: MergeSchema) -> "FieldSet":
        """With every declared field on the way to a member."""
        return FieldSet(ensure_named_fields(self.fields, schema))

    def sorted(self) -> Node:
        """The tree with its elements in canonical order, as it is stored."""
        return sort_node(self.fields)

    def describe(self) -> list[str]:
        """The fields in messages, such as `.spec.ports[port=80]`, in canonical order."""
        return [*_describe(sort_node(self.fields), "")]


def normalize(fields: Any) -> Node:  # noqa: ANN401
    """A node in its one form: canonical elements, known kinds of elements only. Raises ValueError."""
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise ValueError(f"ReadMapCB: expect {{ or n, but found {type(fields).__name__}")
    result: Node = {}
    is_normal = True
    for text, value in fields.items():
        if text == SELF:
            result[SELF] = LEAF
            is_normal = is_normal and value == LEAF
            continue
        element = text if text[:2] == "f:" else canonical(text)
        if element is not None:
            node = result[element] = normalize(value) if value or value.__class__ is not dict else value
            is_normal = is_normal and node is value and element is text
        else:
            is_normal = False
    if len(result) == 1 and SELF in result:
        return LEAF
    return fields if is_normal else result


def union(left: Node, right: Node) -> Node:
    """The members of both. For roots, as are the functions below: whether the root is a member is not looked at."""
    if not left or not right:
        return left or right
    result = {**left, **right}
    if len(result) != len(left) + len(right):
        for key in left.keys() & right.keys():
            ours, theirs = left[key], right[key]
            if ours and theirs:
                result[key] = union(ours, theirs)
            elif ours or theirs:
                result[key] = as_member(ours or theirs)
    return result


def intersection(left: Node, right: Node) -> Node:
    """The members that both have."""
    result: Node = {}
    for key in left.keys() & right.keys():
        if key == SELF:
            continue
        ours, theirs = left[key], right[key]
        both = is_member(ours) and is_member(theirs)
        below = intersection(ours, theirs) if ours and theirs else LEAF
        if below:
            result[key] = as_member(below) if both else below
        elif both:
            result[key] = LEAF
    return result


def difference(left: Node, right: Node) -> Node:
    """The members of the first that the second has not."""
    if not (left.keys() & right.keys()):
        return left
    result: Node = {}
    for key, ours in left.items():
        theirs = right.get(key)
        if theirs is None or key == SELF:
            result[key] = ours
            continue
        member = is_member(ours) and not is_member(theirs)
        below = difference(_below(ours), _below(theirs)) if ours and theirs else _below(ours)
        if below:
            result[key] = as_member(below) if member else below
        elif member:
            result[key] = LEAF
    return result


def recursive_difference(left: Node, right: Node) -> Node:
    if not (left.keys() & right.keys()):
        return left
    result: Node = {}
    for key, ours in left.items():
        theirs = right.get(key)
        if theirs is None or key == SELF:
            result[key] = ours
        elif not is_member(theirs):
            below = recursive_difference(_below(ours), theirs)
            member = is_member(ours)
            if below:
                result[key] = as_member(below) if member else below
            elif member:
                result[key] = LEAF
    return result


def ensure_named_fields(node: Node, schema: MergeSchema | None) -> Node:
    if schema is None:
        return node
    result: Node = {}
    for key, child in node.items():
        if not child:
            result[key] = child
        elif key[:2] == "f:":
            name = key[2:]
            below = ensure_named_fields(child, schema.child(name) if schema.is_map else None)
            result[key] = as_member(below) if schema.is_map and name in schema.fields else below
        else:
            result[key] = ensure_named_fields(child, schema.item if schema.is_list and key[0] == "k" else None)
    return result


def sort_node(node: Node) -> Node:
    if not node:
        return node
    keys = sorted(node)
    if keys[-1][0] not in "f.":  # as text, all other kinds of elements come behind fields
        keys = sorted((key for key in node if key != SELF), key=sort_key)
        if SELF in node:
            keys.insert(0, SELF)
    return {key: sort_node(child) if (child := node[key]) else child for key in keys}


def is_member(node: Node) -> bool:
    return not node or SELF in node


def as_member(node: Node) -> Node:
    """The node of a path with these fields below it, the path being a member itself."""
    return node if not node or SELF in node else {SELF: LEAF, **node}


def _below(node: Node) -> Node:
    if SELF not in node:
        return node
    return {key: child for key, child in node.items() if key != SELF}


def _leaves(node: Node) -> Node:
    return {key: _leaves(child) for key, child in node.items() if key != SELF}


def _describe(node: Node, prefix: str) -> Iterator[str]:
    children = [(prefix + describe(key), child) for key, child in node.items() if key != SELF]
    yield from (path for path, child in children if is_member(child))
    for path, child in children:
        if child:
            yield from _describe(child, path)
