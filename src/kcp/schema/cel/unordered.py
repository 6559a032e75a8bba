"""Lists whose order does not matter: those that a schema calls sets, or maps by some keys of their items.

Two of them are equal in whatever order their items are, and adding one to another merges the two. The engine knows
lists only, so where an expression compares or adds values that hold such lists, it is made to call functions from here
(apiserver/pkg/cel/common/valuesunstructured.go). These get what they need to know of the values as JSON:

    {"set": true}    {"keys": ["name"], "element": ...}    {"fields": {"ports": ...}}    {"element": ...}
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kcp.meta import codec
from kcp.schema.cel.cost import find_declarations
from kcp.schema.cel.declarations import LIST
from kcp.schema.cel.functions import Overload, function
from kcp.schema.cel.types import BOOL, DYN, STRING, ListType

if TYPE_CHECKING:
    from kcp.schema.cel.declarations import Declaration
    from kcp.schema.cel.functions import Function

Tree = Any  # messages of cel.expr, whose classes are made at run time
Shape = dict[str, Any]

_EQUAL: Final = "@equal"
_MERGE: Final = "@merge"
_SET: Final = "set"
_KEYS: Final = "keys"
_FIELDS: Final = "fields"
_ELEMENT: Final = "element"
_CACHED_SHAPES: Final = 1024


def shape_of(declaration: Declaration) -> Shape | None:
    """Where in a value there are lists without order; None if there are none."""
    shape: Shape = {}
    if declaration.list_type == "set":
        shape[_SET] = True
    elif declaration.list_type == "map":
        shape[_KEYS] = list(declaration.list_map_keys)
    element = None if declaration.element is None else shape_of(declaration.element)
    if element is not None:
        shape[_ELEMENT] = element
    fields = {name: inner for name, child in declaration.fields.items() if (inner := shape_of(child)) is not None}
    if fields:
        shape[_FIELDS] = fields
    return shape or None


def rewrite(tree: Tree, nodes: list[Tree], declaration: Declaration) -> bool:
    """Let a tree call the functions below. `declaration` is that of `self`; tells whether anything changed."""
    if shape_of(declaration) is None:
        return False
    declared = find_declarations(tree, declaration)
    next_id = max(node.id for node in nodes) + 1
    has_changed = False
    for node in nodes:
        call = node.call_expr
        if call.function not in ("_==_", "_!=_", "_+_"):
            continue
        left = declared.get(call.args[0].id)
        shape = None if left is None else shape_of(left)
        if left is None or shape is None or (call.function == "_+_" and left.kind != LIST):
            continue
        _replace(tree, node, shape, next_id)
        next_id += 2
        has_changed = True
    return has_changed


def _replace(tree: Tree, node: Tree, shape: Shape, new_id: int) -> None:
    call = node.call_expr
    is_negated = call.function == "_!=_"
    call.function = _MERGE if call.function == "_+_" else _EQUAL
    call.args.add(id=new_id).const_expr.string_value = codec.dumps(shape).decode()
    for entry in tree.reference_map:
        if entry.key == node.id:
            entry.value.overload_id[:] = [call.function]
    if not is_negated:
        return
    inner = type(node)()
    inner.CopyFrom(node)
    inner.id = new_id + 1
    node.ClearField("call_expr")
    node.call_expr.function = "!_"
    node.call_expr.args.add().CopyFrom(inner)


@lru_cache(maxsize=_CACHED_SHAPES)
def _read(shape: str) -> Shape:
    found: Shape = codec.loads(shape.encode())
    return found


def is_equal(left: Any, right: Any, shape: str) -> bool:  # noqa: ANN401 - any JSON value
    return _is_equal(left, right, _read(shape))


def merge(left: list[Any], right: list[Any], shape: str) -> list[Any]:
    """What is in either. Of two items with the same keys the one on the right, at the place of the one on the left."""
    found = _read(shape)
    if _KEYS in found:
        merged = {_key_of(item, found[_KEYS]): item for item in left}
        merged.update((_key_of(item, found[_KEYS]), item) for item in right)
        return list(merged.values())
    if _SET in found:
        return left + [item for item in dict.fromkeys(right) if item not in left]
    return left + right


def _is_equal(left: Any, right: Any, shape: Shape | None) -> bool:  # noqa: ANN401
    if not shape or left.__class__ is not right.__class__:
        return bool(left == right)
    if left.__class__ is list:
        return len(left) == len(right) and _has_equal_items(left, right, shape)
    if left.__class__ is not dict:
        return bool(left == right)
    fields, element = shape.get(_FIELDS) or {}, shape.get(_ELEMENT)
    return left.keys() == right.keys() and all(
        _is_equal(left[name], right[name], fields.get(name, element)) for name in left
    )


def _has_equal_items(left: list[Any], right: list[Any], shape: Shape) -> bool:
    element = shape.get(_ELEMENT)
    if _SET in shape:
        return all(item in left for item in right)
    if _KEYS not in shape:
        return all(_is_equal(one, other, element) for one, other in zip(left, right, strict=True))
    known = {_key_of(item, shape[_KEYS]): item for item in left}
    return all((key := _key_of(item, shape[_KEYS])) in known and _is_equal(known[key], item, element) for item in right)


def _key_of(item: Any, keys: list[str]) -> tuple[Any, ...]:  # noqa: ANN401
    return tuple(item.get(key) for key in keys)


RUNTIME_FUNCTIONS: Final[tuple[Function, ...]] = (
    function(_EQUAL, Overload("@equal", (DYN, DYN, STRING), BOOL, is_equal)),
    function(_MERGE, Overload("@merge", (ListType(DYN), ListType(DYN), STRING), ListType(DYN), merge)),
)
