"""How much work an expression can be at most, judged by its syntax tree and the bounds in a schema.

An estimate must be that of Kubernetes, which refuses definitions by it, with all its oddities: what it thinks of the
size of a loop's variable over a list that is no field, say, is the size of `self` (cel-go/checker/cost.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.schema.cel import declarations, descriptors, types
from kcp.schema.cel.call_costs import (
    LIST_COST,
    MAP_COST,
    STRUCT_COST,
    Call,
    Estimate,
    Operand,
    estimate_call,
)
from kcp.schema.cel.estimates import MAX_UINT64, NOTHING, ONE, UNKNOWN, Range, exactly
from kcp.schema.cel.syntax_types import STRUCT, Kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.schema.cel.declarations import Declaration

Tree = Any  # messages of cel.expr, whose classes are made at run time
Path = tuple[str, ...]

_ACCUMULATORS: Final = ("@result", "__result__")
_ITEMS: Final = "@items"
_VALUES: Final = "@values"
_KEYS: Final = "@keys"
_INDICES: Final = "@indices"
_SCALARS: Final = (types.BOOL, types.DOUBLE, types.DURATION, types.INT, types.TIMESTAMP, types.UINT)
_BINARY: Final = 2
_NO_ITEMS: Final = Range(MAX_UINT64, 0)  # joined with any other range it is that one


class _Entries(NamedTuple):
    """What is known of the items of a list or the pairs of a map."""

    container: str
    key: Range
    value: Range


class _Variable(NamedTuple):
    path: Path
    size: Range | None = None
    entries: _Entries | None = None


def estimate_cost(checked: bytes, declaration: Declaration) -> int:
    """The most that one evaluation of a checked expression can cost. `declaration` is that of `self`."""
    tree = descriptors.read_tree(checked)
    return _Coster(tree, declaration).cost(tree.expr).max


def find_declarations(tree: Tree, declaration: Declaration) -> dict[int, Declaration]:
    """What the schema declares for the expressions in a tree, by their ids; for many it declares nothing."""
    coster = _Coster(tree, declaration)
    coster.cost(tree.expr)
    return coster.declared


class _Coster:
    def __init__(self, tree: Tree, declaration: Declaration) -> None:
        self._kinds = Kinds(tree)
        self._overloads = {entry.key: entry.value.overload_id for entry in tree.reference_map}
        self._root = declaration
        self._paths: dict[int, Path] = {}
        self._variables: dict[str, list[_Variable]] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}
        self.declared: dict[int, Declaration] = {}

    def cost(self, node: Tree) -> Range:
        total = self._cost(node)
        declared = self._declared(self._path(node))
        if declared is not None:
            self.declared[node.id] = declared
        elif node.call_expr.function == "_+_" and node.call_expr.args[0].id in self.declared:
            self.declared[node.id] = self.declared[node.call_expr.args[0].id]
        return total

    def _cost(self, node: Tree) -> Range:
        if node.HasField("ident_expr"):
            variable = self._variable(node)
            self._paths[node.id] = (node.ident_expr.name,) if variable is None else variable.path
            return ONE
        if node.HasField("select_expr"):
            return self._cost_select(node)
        if node.HasField("call_expr"):
            return self._cost_call(node)
        if node.HasField("list_expr"):
            return self._cost_list(node)
        if node.HasField("struct_expr"):
            return self._cost_struct(node)
        if node.HasField("comprehension_expr"):
            return self._cost_bind(node) if _is_bind(node.comprehension_expr) else self._cost_loop(node)
        return NOTHING

    def _cost_select(self, node: Tree) -> Range:
        select = node.select_expr
        total = self.cost(select.operand)
        if select.test_only:
            return total
        if self._kind(select.operand) in (declarations.MAP, STRUCT, "type_param"):
            total = total.plus(ONE)
        self._paths[node.id] = (*self._path(select.operand), select.field)
        return total

    def _cost_call(self, node: Tree) -> Range:
        call = node.call_expr
        if call.function == "dyn":
            total = ONE.plus(self.cost(call.args[0]))
            self._copy_sizes(node, call.args[0])
            return total
        costs: list[Range] = []
        arguments: list[Operand] = []
        for argument in call.args:
            costs.append(self.cost(argument))
            arguments.append(self._operand(argument))
        overloads = _possible(self._overloads.get(node.id) or (), arguments)
        if not overloads:
            return NOTHING
        total, operands = NOTHING, arguments
        if call.HasField("target"):
            total = self.cost(call.target)
            operands = [self._operand(call.target), *arguments]
        calls, size = _NO_ITEMS, None
        for overload in overloads:
            estimate = self._estimate(node, Call(overload, operands), costs)
            calls = calls.union(estimate.cost)
            if estimate.size is not None:
                size = estimate.size if size is None else size.union(estimate.size)
            if overload in ("index_list", "index_map"):
                entries = self._entries_of(call.args[0])
                size = None if entries is None else entries.value
                step = _ITEMS if overload == "index_list" else _VALUES
                self._paths[node.id] = (*self._path(call.args[0]), step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[node.id] = size
        return total.plus(calls)

    def _estimate(self, node: Tree, call: Call, costs: list[Range]) -> Estimate:
        if call.overload in ("logical_and", "logical_or"):
            return Estimate(Range(costs[0].min, costs[0].plus(costs[1]).max))
        nodes = node.call_expr.args
        if call.overload == "conditional":
            self._join_entries(node, nodes[1], nodes[2])
            size = call.operands[1].known_size.union(call.operands[2].known_size)
            return Estimate(costs[0].plus(costs[1].union(costs[2])), size)
        if call.overload in ("add_string", "add_bytes", "add_list"):
            self._join_entries(node, nodes[0], nodes[1])
        estimate = estimate_call(node.call_expr.function, call) or Estimate(ONE)
        total = estimate.cost
        for cost in costs:
            total = total.plus(cost)
        return Estimate(total, estimate.size)

    def _join_entries(self, node: Tree, left: Tree, right: Tree) -> None:
        first, second = self._entries_of(left), self._entries_of(right)
        if first is not None and second is not None:
            self._entries[node.id] = _Entries(
                first.container, first.key.union(second.key), first.value.union(second.value)
            )

    def _cost_list(self, node: Tree) -> Range:
        total, size = NOTHING, _NO_ITEMS if node.list_expr.elements else NOTHING
        for element in node.list_expr.elements:
            total = total.plus(self.cost(element))
            size = size.union(self._known_size(element))
        self._entries[node.id] = _Entries(declarations.LIST, ONE, size)
        return total.plus(exactly(LIST_COST))

    def _cost_struct(self, node: Tree) -> Range:
        struct = node.struct_expr
        total = NOTHING
        keys = values = _NO_ITEMS if struct.entries else NOTHING
        for entry in struct.entries:
            if not struct.message_name:
                total = total.plus(self.cost(entry.map_key))
                keys = keys.union(self._known_size(entry.map_key))
            total = total.plus(self.cost(entry.value))
            values = values.union(self._known_size(entry.value))
        if struct.message_name:
            return total.plus(exactly(STRUCT_COST))
        self._entries[node.id] = _Entries(declarations.MAP, keys, values)
        return total.plus(exactly(MAP_COST))

    def _cost_loop(self, node: Tree) -> Range:
        loop = node.comprehension_expr
        total = self.cost(loop.iter_range).plus(self.cost(loop.accu_init))
        self._push(loop.accu_var, self._bound_to(loop.accu_init))
        if loop.iter_var2:
            self._push(loop.iter_var, self._iterated(loop.iter_range, (_INDICES, _KEYS)))
            self._push(loop.iter_var2, self._iterated(loop.iter_range, (_ITEMS, _VALUES)))
        else:
            self._push(loop.iter_var, self._iterated(loop.iter_range, (_ITEMS, _KEYS)))
        condition, step = self.cost(loop.loop_condition), self.cost(loop.loop_step)
        self._variables[loop.iter_var].pop()
        if loop.iter_var2:
            self._variables[loop.iter_var2].pop()
        total = total.plus(self.cost(loop.result))
        self._variables[loop.accu_var].pop()
        count = self._known_size(loop.iter_range)
        if loop.accu_init.HasField("const_expr"):
            self._sizes[node.id] = self._known_size(loop.accu_init)
        elif loop.accu_init.HasField("list_expr") or loop.accu_init.HasField("struct_expr"):
            self._sizes[node.id] = count
            entries = self._entries_of(loop.loop_step)
            if entries is not None:
                self._entries[node.id] = entries
        return total.plus(count.times(step.plus(condition)))

    def _cost_bind(self, node: Tree) -> Range:
        loop = node.comprehension_expr
        total = self.cost(loop.iter_range).plus(self.cost(loop.accu_init))
        self._push(loop.accu_var, self._bound_to(loop.accu_init))
        total = total.plus(self.cost(loop.result))
        self._variables[loop.accu_var].pop()
        self._copy_sizes(node, loop.result)
        return total

    def _push(self, name: str, variable: _Variable) -> None:
        self._variables.setdefault(name, []).append(variable)

    def _bound_to(self, node: Tree) -> _Variable:
        return _Variable(self._path(node), self._size(node), self._entries_of(node))

    def _iterated(self, container: Tree, steps: tuple[str, str]) -> _Variable:
        """A loop's variable. `steps` lead from a list and from a map to what it stands for."""
        entries = self._entries_of(container)
        kind = self._kind(container) if entries is None else entries.container
        step = steps[0] if kind == declarations.LIST else steps[1]
        size = None
        if entries is not None:
            size = entries.value if step in (_ITEMS, _VALUES) else entries.key
        return _Variable((*self._path(container), step), size)

    def _variable(self, node: Tree) -> _Variable | None:
        stack = self._variables.get(node.ident_expr.name) if node.HasField("ident_expr") else None
        return stack[-1] if stack else None

    def _path(self, node: Tree) -> Path:
        variable = self._variable(node)
        return self._paths.get(node.id, ()) if variable is None else variable.path

    def _kind(self, node: Tree) -> str:
        """What the checker made of it; of lists in lists it knows less than the schema."""
        kind = self._kinds.kind(node)
        declared = self._declared(self._path(node)) if kind == types.DYN else None
        if declared is None:
            return kind
        return STRUCT if declared.kind == declarations.OBJECT else declared.kind

    def _operand(self, node: Tree) -> Operand:
        path = self._path(node)
        if path and path[0] in _ACCUMULATORS:
            path = ()
        element_kind = self._kinds.element_kind(node)
        declared = self._declared(path)
        if element_kind == types.DYN and declared is not None and declared.element is not None:
            element_kind = declared.element.kind
        literal = node.const_expr.int64_value if node.const_expr.HasField("int64_value") else None
        return Operand(
            kind=self._kind(node),
            type_name=self._kinds.library_type(node),
            size=self._size(node),
            literal=literal,
            element_kind=element_kind,
            element_size=self._size_at((*path, _ITEMS) if path else ()) or UNKNOWN,
        )

    def _declared(self, path: Path) -> Declaration | None:
        """What the schema declares at a path, of which the first step, a variable, does not count."""
        here: Declaration | None = self._root if path else None
        for step in path[1:]:
            if here is None:
                return None
            if step in (_ITEMS, _VALUES):
                here = here.element
            elif step == _KEYS:
                here = here.key
            else:
                here = here.fields.get(step)
        return here

    def _size_at(self, path: Path) -> Range | None:
        declared = self._declared(path)
        return None if declared is None else Range(0, declared.max_elements)

    def _size(self, node: Tree) -> Range | None:
        known = self._sizes.get(node.id)
        if known is not None:
            return known
        size = _literal_size(node)
        if size is not None:
            return size
        size = self._size_at(self._path(node))
        if size is not None:
            self._sizes[node.id] = size
            return size
        if self._kinds.value_kind(node) in _SCALARS:
            return ONE
        variable = self._variable(node)
        return None if variable is None else variable.size

    def _known_size(self, node: Tree) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _entries_of(self, node: Tree) -> _Entries | None:
        known = self._entries.get(node.id)
        variable = self._variable(node)
        return variable.entries if known is None and variable is not None else known

    def _copy_sizes(self, node: Tree, source: Tree) -> None:
        size, entries = self._size(source), self._entries_of(source)
        if size is not None:
            self._sizes[node.id] = size
        if entries is not None:
            self._entries[node.id] = entries


def _possible(overloads: Sequence[str], arguments: Sequence[Operand]) -> Sequence[str]:
    """The checker leaves open what it does not know the types for, but the schema may know them."""
    if len(overloads) == 1 or len(arguments) != _BINARY:
        return overloads
    kinds = {arguments[0].kind, arguments[1].kind} & {declarations.LIST, declarations.MAP, types.STRING, types.BYTES}
    chosen = [overload for overload in overloads if any(overload.endswith(f"_{kind}") for kind in kinds)]
    return chosen or overloads


def _literal_size(node: Tree) -> Range | None:
    """The size of what is written in the expression itself."""
    if node.HasField("list_expr"):
        return exactly(len(node.list_expr.elements))
    if node.HasField("struct_expr") and not node.struct_expr.message_name:
        return exactly(len(node.struct_expr.entries))
    if not node.HasField("const_expr"):
        return None
    constant = node.const_expr
    if constant.HasField("string_value"):
        return exactly(len(constant.string_value))
    return exactly(len(constant.bytes_value)) if constant.HasField("bytes_value") else ONE


def _is_bind(loop: Tree) -> bool:
    """Whether it is no loop at all, but a name for a value."""
    never = loop.loop_condition.const_expr.HasField("bool_value") and not loop.loop_condition.const_expr.bool_value
    is_empty = loop.iter_range.HasField("list_expr") and not loop.iter_range.list_expr.elements
    return bool(is_empty and never and loop.accu_var != "__result__")
