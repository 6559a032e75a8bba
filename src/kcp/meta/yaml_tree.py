"""Builds plain objects from what a YAML parser reports, one call per node, as sigs.k8s.io/yaml would.

Must not parse text, and must not trust it: nesting is kept on an explicit stack with a limit, every node is counted,
and an alias is paid for with the size of what it stands for before it is copied ("billion laughs").

An example: for `a: &x [1]` and `b: *x` the calls are

    start_document()
    open_mapping(line 0)
    scalar("a")             the key waits in the open mapping
    open_sequence("x")      from now on x is known, though not finished
    scalar("1")
    close()                 the list is stored under "a", and x is finished
    scalar("b")
    alias("x")              its 2 nodes are paid for, and a copy of the list is stored under "b"
    close()
    end_document()          {"a": [1], "b": [1]}
"""

from typing import Any, Final

from kcp.meta.gotext import format_float, quote
from kcp.meta.yaml_scalars import MERGE, Scalar, as_key, as_value, resolve

# How many characters aliases may add to one document; the YAML library counts nodes only, so that a thousand
# aliases of one huge string would pass.
_MAX_ALIAS_SIZE: Final = 8 * 1024 * 1024
# Up to the first number of nodes, 99 % may come from aliases; beyond the second, 10 % (yaml/v2, decode.go).
_ALIAS_RANGE: Final = (400_000, 4_000_000)

_WANT_MAP: Final = "yaml: map merge requires map or sequence of maps as the value"
_NOTHING: Final = object()
_MERGE_KEY: Final = object()


class TreeError(ValueError):
    """The document is well-formed YAML, but not a JSON value, or not one we are willing to build."""


class _Node:
    """A value and what it weighs: `nodes` in all, characters of text (`size`), and levels of nesting (`depth`)."""

    __slots__ = ("depth", "entries", "is_open", "line", "nodes", "size", "value")

    def __init__(self, value: Any, line: int, *, size: int = 0, depth: int = 0) -> None:  # noqa: ANN401
        self.value = value  # a list, a dict, or a scalar as YAML sees it
        self.line = line
        self.nodes = 1
        self.size = size
        self.depth = depth
        self.is_open = False
        # Of a mapping in strict mode: its keys, with their types because 1 and "1" are two, and each value's line.
        self.entries: dict[tuple[type, Scalar], int] | None = None

    def json_value(self) -> Any:  # noqa: ANN401
        return as_value(self.value) if isinstance(self.value, float) else self.value

    def copy(self, line: int) -> "_Node":
        """What an alias stands for: nothing is shared, as the two may go different ways later."""
        copied = _Node(_copy(self.value), line, size=self.size, depth=self.depth)
        copied.nodes = self.nodes + 1
        copied.entries = self.entries
        return copied


class _Frame:
    """A list or mapping that is still open. The list behind a `<<` collects nodes to merge."""

    __slots__ = ("collects_merges", "key", "node")

    def __init__(self, node: _Node, *, collects_merges: bool = False) -> None:
        self.node = node
        self.key: Any = _NOTHING  # of a mapping: what waits for its value
        self.collects_merges = collects_merges


class TreeBuilder:
    """Takes one document after the other; lines count from 0. Raises TreeError, and ScalarError where a value is."""

    def __init__(self, *, strict: bool, max_depth: int, max_nodes: int) -> None:
        self._strict = strict
        self._max_depth = max_depth
        self._max_nodes = max_nodes
        self.start_document()

    def start_document(self) -> None:
        self._root: Any = None
        self._open: list[_Frame] = []
        self._anchors: dict[str, _Node] = {}
        self._duplicates: list[str] = []
        self._nodes = 1
        self._alias_nodes = 0
        self._alias_size = 0

    def end_document(self) -> Any:  # noqa: ANN401
        """The document's value. In strict mode this is where all repeated keys are reported, at once."""
        if self._duplicates:
            raise TreeError("\n  ".join(("yaml: unmarshal errors:", *self._duplicates)))
        return self._root

    def scalar(self, text: str, tag: str | None, anchor: str | None, *, plain: bool, line: int) -> None:
        """`plain` means neither quoted nor tagged, so that the text decides what it is."""
        self._count(1)
        value = resolve(tag, text) if plain or tag is not None else text
        node = _Node(value, line, size=len(text))
        if anchor is not None:
            self._anchors[anchor] = node
        self._place(node, is_merge_key=text == "<<" and (plain or tag == MERGE))

    def open_mapping(self, anchor: str | None, line: int) -> None:
        self._push(_Frame(_Node({}, line, depth=1)), anchor)

    def open_sequence(self, anchor: str | None, line: int) -> None:
        parent = self._open[-1] if self._open else None
        behind_merge_key = parent is not None and parent.key is _MERGE_KEY
        if parent is not None and parent.collects_merges:
            raise TreeError(_WANT_MAP)
        self._push(_Frame(_Node([], line, depth=1), collects_merges=behind_merge_key), anchor)

    def close(self) -> None:
        """The mapping or sequence that was opened last is complete."""
        frame = self._open.pop()
        node = frame.node
        node.is_open = False
        if not frame.collects_merges:
            self._place(node)
            return
        parent = self._open[-1]
        for merged in reversed(node.value):  # earlier ones take precedence, so they come last
            self._merge(parent.node, merged)
        parent.key = _NOTHING
        node.value = [merged.value for merged in node.value]

    def alias(self, name: str, line: int) -> None:
        node = self._anchors.get(name)
        if node is None:
            raise TreeError(f"yaml: unknown anchor '{name}' referenced")
        if node.is_open:
            raise TreeError(f"yaml: anchor '{name}' value contains itself")
        self._count(1 + node.nodes)
        self._pay_for_alias(node)
        self._place(node.copy(line))

    def _push(self, frame: _Frame, anchor: str | None) -> None:
        self._count(1)
        if self._open and self._open[-1].key is _NOTHING and isinstance(self._open[-1].node.value, dict):
            raise _invalid_key(frame.node)
        if len(self._open) >= self._max_depth:
            raise TreeError(f"yaml: exceeded max depth of {self._max_depth}")
        if anchor is not None:
            self._anchors[anchor] = frame.node
        frame.node.is_open = True
        self._open.append(frame)

    def _place(self, node: _Node, *, is_merge_key: bool = False) -> None:
        """Put a finished node where it belongs in the innermost open list or mapping."""
        if not self._open:
            self._root = node.json_value()
            return
        frame = self._open[-1]
        parent = frame.node
        if frame.collects_merges or frame.key is _MERGE_KEY:
            self._place_merge(frame, node)
            return
        parent.nodes += node.nodes
        parent.size += node.size
        parent.depth = max(parent.depth, node.depth + 1)
        if isinstance(parent.value, list):
            parent.value.append(node.json_value())
        elif frame.key is _NOTHING:
            if node.depth:
                raise _invalid_key(node)
            frame.key = _MERGE_KEY if is_merge_key else node.value
        else:
            self._set(parent, frame.key, node.json_value(), node.line)
            frame.key = _NOTHING

    def _place_merge(self, frame: _Frame, node: _Node) -> None:
        if not isinstance(node.value, dict):
            raise TreeError(_WANT_MAP)
        if frame.collects_merges:
            frame.node.value.append(node)
        else:
            self._merge(frame.node, node)
            frame.key = _NOTHING

    def _merge(self, target: _Node, merged: _Node) -> None:
        """The library lets a merge win over keys written before it, and a key written after it win over the merge."""
        target.nodes += merged.nodes
        target.size += merged.size
        target.depth = max(target.depth, merged.depth)
        if self._strict:
            for (_, key), line in (merged.entries or {}).items():
                self._set(target, key, merged.value[as_key(key)], line)
        else:
            target.value.update(merged.value)

    def _set(self, target: _Node, key: Scalar, value: Any, line: int) -> None:  # noqa: ANN401
        if self._strict:
            entry = (type(key), key)
            if target.entries is None:
                target.entries = {}
            elif entry in target.entries:
                self._duplicates.append(f"line {line + 1}: key {_show(key)} already set in map")
                return
            target.entries[entry] = line
        target.value[as_key(key)] = value

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > self._max_nodes:
            raise TreeError(f"yaml: document has more than {self._max_nodes} nodes; split it")

    def _pay_for_alias(self, node: _Node) -> None:
        if len(self._open) + node.depth > self._max_depth:
            raise TreeError(f"yaml: exceeded max depth of {self._max_depth}")
        self._alias_nodes += node.nodes
        self._alias_size += node.size
        ratio = self._alias_nodes / self._nodes
        too_many = self._alias_nodes > 100 and self._nodes > 1000 and ratio > _allowed_alias_ratio(self._nodes)
        if too_many or self._alias_size > _MAX_ALIAS_SIZE:
            raise TreeError("yaml: document contains excessive aliasing")


def _invalid_key(node: _Node) -> TreeError:
    # The usual culprit is a template that was not rendered, such as {{ .Values.name }}.
    return TreeError(f"yaml: line {node.line + 1}: invalid map key: a list or mapping cannot be a key")


def _allowed_alias_ratio(nodes: int) -> float:
    low, high = _ALIAS_RANGE
    return 0.99 - 0.89 * (min(max(nodes, low), high) - low) / (high - low)


def _copy(value: Any) -> Any:  # noqa: ANN401
    """A deep copy without recursion."""
    if not isinstance(value, dict | list):
        return value
    top: Any = type(value)()
    todo: list[tuple[Any, Any]] = [(value, top)]
    while todo:
        source, target = todo.pop()
        for key, item in source.items() if isinstance(source, dict) else enumerate(source):
            fresh = item
            if isinstance(item, dict | list):
                fresh = type(item)()
                todo.append((item, fresh))
            if isinstance(target, dict):
                target[key] = fresh
            else:
                target.append(fresh)
    return top


def _show(key: Scalar) -> str:
    if isinstance(key, str):
        return quote(key)
    return format_float(key) if isinstance(key, float) else as_key(key)
