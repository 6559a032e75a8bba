"""What a checked syntax tree tells about an expression, and the few changes it needs before it can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.schema.cel import bounded, descriptors, literals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # Gets a tree and all nodes in it; tells whether it changed anything.
    Rewrite = Callable[[Any, list[Any]], bool]

# Functions in Python cannot make optional values, so these run under another name that gives a value or a zero, and the
# engine's own function makes the optional: overload -> name at run time.
MAYBE: Final = {"format-validate": "@validate", "format-named": "@format.named"}
_WRAP: Final = "optional.ofNonZeroValue"
_WRAP_OVERLOAD: Final = "optional_ofNonZeroValue"
# A variable with an optional value is a list of one or none at run time, and this makes an optional of it.
_FIRST: Final = "_[?_]"
_FIRST_OVERLOAD: Final = "list_optindex_optional_int"

# Takes a list of values of any types.
_MIXED: Final = "format"
# Functions of the engine that mean something else here, or fail in other words: overload -> name at run time.
MILLISECONDS: Final = "@milliseconds"
SUM_OF_DURATIONS: Final = "@sumOfDurations"
SUBSTRING: Final = "@substring"
CHARACTER: Final = "@charAt"
_REPLACED: Final = {
    "duration_to_milliseconds": MILLISECONDS,
    "list_duration_sum_duration": SUM_OF_DURATIONS,
    "string_substring_int": SUBSTRING,
    "string_substring_int_int": SUBSTRING,
    "string_char_at_int": CHARACTER,
}

Tree = Any  # messages of cel.expr, whose classes are made at run time


class Prepared(NamedTuple):
    serialized: bytes
    complaints: list[str]
    is_bounded: bool  # whether it calls functions with a budget
    selected: frozenset[tuple[str, str]]  # (variable, field) of every selection of a field of a variable
    identifiers: frozenset[str]
    unusable: str  # why no program can be made of it
    whole: frozenset[str]  # variables of which more is used than the fields that are selected


def prepare(
    serialized: bytes, expression: str, optional: frozenset[str] = frozenset(), rewrite: Rewrite | None = None
) -> Prepared:
    """The tree as it can run, what is wrong with its literals, and what it mentions.

    `optional` names the variables whose values are optional; `rewrite` changes the tree before everybody else.
    """
    tree = descriptors.read_tree(serialized)
    references = {entry.key: entry.value for entry in tree.reference_map}
    nodes = list(walk(tree.expr))
    exempt = {inner.id for node in nodes if node.call_expr.function == _MIXED for inner in walk(node)}
    complaints = literals.check(tree, nodes, expression, frozenset(exempt))
    unusable = literals.check_patterns(nodes)
    has_changed = rewrite is not None and rewrite(tree, nodes)
    if has_changed:
        nodes = list(walk(tree.expr))
    wrapped = [node for node in nodes if _maybe_of(node, references)]
    renamed = [node for node in nodes if node.call_expr.function in bounded.RENAMED]
    for node in renamed:
        node.call_expr.function = bounded.RENAMED[node.call_expr.function]
    replaced = [node for node in nodes if _replacement_of(node, references)]
    for node in replaced:
        node.call_expr.function = _replacement_of(node, references)
    next_id = max(node.id for node in nodes) + 1
    for node in reversed(wrapped):  # inner ones first: an outer one is copied with what it holds
        _wrap(tree, node, references[node.id], next_id)
        next_id += 1
    selected = {
        (node.select_expr.operand.ident_expr.name, node.select_expr.field)
        for node in nodes
        if node.HasField("select_expr") and node.select_expr.operand.HasField("ident_expr")
    }
    identifiers = {node.ident_expr.name for node in nodes if node.HasField("ident_expr")}
    operands = {node.select_expr.operand.id for node in nodes if node.HasField("select_expr")}
    whole = {node.ident_expr.name for node in nodes if node.HasField("ident_expr") and node.id not in operands}
    identifiers |= {reference.name for reference in references.values() if reference.name}
    maybe = [node for node in nodes if node.HasField("ident_expr") and node.ident_expr.name in optional]
    for node in maybe:
        _take_first(tree, node, next_id)
        next_id += 2
    runnable = descriptors.write_tree(tree) if has_changed or wrapped or renamed or replaced or maybe else serialized
    return Prepared(
        serialized=runnable,
        complaints=complaints,
        is_bounded=bool(renamed),
        selected=frozenset(selected),
        identifiers=frozenset(identifiers),
        unusable=unusable,
        whole=frozenset(whole),
    )


def position_of(serialized: bytes) -> int:
    """The offset at which the engine places a whole expression."""
    tree = descriptors.read_tree(serialized)
    positions = {entry.key: entry.value for entry in tree.source_info.positions}
    return int(positions.get(tree.expr.id, 0))


def walk(root: Tree) -> Iterator[Tree]:
    """Every expression in the tree, outer ones first."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += _children(node)


def _children(node: Tree) -> list[Tree]:
    if node.HasField("call_expr"):
        call = node.call_expr
        return [*([call.target] if call.HasField("target") else ()), *call.args]
    if node.HasField("select_expr"):
        return [node.select_expr.operand]
    if node.HasField("list_expr"):
        return list(node.list_expr.elements)
    if node.HasField("struct_expr"):
        entries = node.struct_expr.entries
        return [child for entry in entries for child in (entry.map_key, entry.value)]
    if node.HasField("comprehension_expr"):
        loop = node.comprehension_expr
        return [loop.iter_range, loop.accu_init, loop.loop_condition, loop.loop_step, loop.result]
    return []


def _replacement_of(node: Tree, references: dict[int, Tree]) -> str | None:
    reference = references.get(node.id) if node.HasField("call_expr") else None
    if reference is None or len(reference.overload_id) != 1:
        return None
    return _REPLACED.get(reference.overload_id[0])


def _maybe_of(node: Tree, references: dict[int, Tree]) -> str | None:
    if not node.HasField("call_expr") or node.id not in references:
        return None
    return next((MAYBE[overload] for overload in references[node.id].overload_id if overload in MAYBE), None)


def _wrap(tree: Tree, node: Tree, reference: Tree, new_id: int) -> None:
    inner = type(node)()
    inner.CopyFrom(node)
    name = _maybe_of(node, {node.id: reference})
    inner.call_expr.function = name
    if name == MAYBE["format-named"]:
        inner.call_expr.ClearField("target")
    inner.id = new_id
    entry = tree.reference_map.add(key=new_id)
    entry.value.overload_id.append(name)
    del reference.overload_id[:]
    reference.overload_id.append(_WRAP_OVERLOAD)
    node.ClearField("call_expr")
    node.call_expr.function = _WRAP
    node.call_expr.args.add().CopyFrom(inner)


def _take_first(tree: Tree, node: Tree, new_id: int) -> None:
    variable = node.ident_expr.name
    node.ClearField("ident_expr")
    node.call_expr.function = _FIRST
    node.call_expr.args.add(id=new_id).ident_expr.name = variable
    node.call_expr.args.add(id=new_id + 1).const_expr.int64_value = 0
    for entry in tree.reference_map:
        if entry.key == node.id:
            entry.value.ClearField("name")
            entry.value.overload_id.append(_FIRST_OVERLOAD)
    tree.reference_map.add(key=new_id).value.name = variable
