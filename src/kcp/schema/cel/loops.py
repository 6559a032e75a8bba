"""Long loops in pieces.

The engine gives up after 10,000 steps of loops, where Kubernetes' limit lies at some hundred thousand: comparing each
of 100 items with all others is too much already. So an expression of the form `list.all(x, condition)` that was stopped
is evaluated once more, its list and then its condition for one item after the other, each with a budget of its own.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kcp.schema.cel import descriptors, tree

# About as much as Kubernetes' limit, a cost of a million, allows if each item is compared with all others; and about
# half a second for the simplest condition.
_MAX_NESTED_ITEMS: Final = 400
_MAX_ITEMS: Final = 50_000

Tree = Any  # messages of cel.expr, whose classes are made at run time


class Pieces(NamedTuple):
    items: bytes
    condition: bytes
    variable: str
    max_items: int


def split_loop(serialized: bytes) -> Pieces | None:
    """The pieces of a checked expression; None if it is of another form."""
    checked = descriptors.read_tree(serialized)
    loop = checked.expr.comprehension_expr
    step = loop.loop_step.call_expr
    is_all = (
        checked.expr.HasField("comprehension_expr")
        and not loop.iter_var2
        and loop.accu_init.const_expr.bool_value
        and step.function == "_&&_"
        and step.args[0].ident_expr.name == loop.accu_var
        and loop.result.ident_expr.name == loop.accu_var
    )
    if not is_all:
        return None
    is_nested = any(node.HasField("comprehension_expr") for node in tree.walk(step.args[1]))
    return Pieces(
        _with_root(checked, loop.iter_range),
        _with_root(checked, step.args[1]),
        loop.iter_var,
        _MAX_NESTED_ITEMS if is_nested else _MAX_ITEMS,
    )


def _with_root(checked: Tree, root: Tree) -> bytes:
    piece = type(checked)()
    piece.CopyFrom(checked)
    piece.expr.CopyFrom(root)
    return descriptors.write_tree(piece)
