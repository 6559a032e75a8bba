"""Which old value a new one replaces, so that what was invalid before may stay as it is.

Items of a list correspond only where the schema says by which keys; all others stand and fall with their list
(apiserver/pkg/cel/common/equality.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.meta.gotext import quote
from kcp.schema.structural.nodes import is_same

if TYPE_CHECKING:
    from kcp.schema.structural.nodes import Node

_MISSING: Final = object()


class Correlation:
    """A value, and the one that was there before."""

    __slots__ = ("_items", "_old_by_key", "_same", "_values", "new", "node", "old")

    def __init__(self, new: Any, old: Any, node: Node) -> None:  # noqa: ANN401 - any JSON value
        self.new = new
        self.old = old
        self.node = node
        self._values: dict[str, Correlation] = {}
        self._items: dict[int, Correlation] = {}
        self._old_by_key: dict[Any, Any] | None = None
        self._same: bool | None = None

    def key(self, name: str) -> Correlation | None:
        """The value under a name, if it is there and was, and the schema specifies it."""
        if name in self._values:
            return self._values[name]
        if self.old.__class__ is not dict or self.new.__class__ is not dict:
            return None
        old, new = self.old.get(name, _MISSING), self.new.get(name, _MISSING)
        node = self.node.properties.get(name) or self.node.additional
        if old is _MISSING or new is _MISSING or node is None:
            return None
        child = self._values[name] = Correlation(new, old, node)
        return child

    def index(self, position: int) -> Correlation | None:
        """The item at a position, if the list is a map by keys and had this item before."""
        if position in self._items:
            return self._items[position]
        if self.old.__class__ is not list or self.new.__class__ is not list or self.node.list_type != "map":
            return None
        old = self._find_old(self.new[position])
        if old is None or self.node.items is None:
            return None
        child = self._items[position] = Correlation(self.new[position], old, self.node.items)
        return child

    def is_same(self) -> bool:
        """Whether nothing changed. A field that the schema does not specify counts as a change."""
        if self._same is None:
            self._same = self._compare()
        return self._same

    def _compare(self) -> bool:
        old, new = self.old, self.new
        if old is None or new is None:
            return old is new
        if old.__class__ is dict and new.__class__ is dict:
            return len(old) == len(new) and all((child := self.key(name)) and child.is_same() for name in new)
        if old.__class__ is list and new.__class__ is list:
            return len(old) == len(new) and self._compare_items()
        return is_same(old, new)

    def _compare_items(self) -> bool:
        for position in range(len(self.new)):
            child = self.index(position)
            if child is None:
                return self._old_by_key is None and is_same(self.old, self.new)
            if not child.is_same():
                return False
        return True

    def _find_old(self, item: Any) -> Any:  # noqa: ANN401
        keys = self.node.list_map_keys
        if self._old_by_key is None:
            self._old_by_key = {}
            for old in reversed(self.old if self.node.type == "array" else ()):  # the first of several wins
                if (key := _key_of(old, keys)) is not None:
                    self._old_by_key[key] = old
        key = _key_of(item, keys)
        return None if key is None else self._old_by_key.get(key)


def _key_of(item: Any, keys: list[str]) -> tuple[Any, ...] | None:  # noqa: ANN401
    if item.__class__ is not dict or not keys:
        return None
    values = [item.get(key) for key in keys]
    if any(value.__class__ not in (bool, float, int, str) for value in values):
        return None
    # The class keeps 1, 1.0 and true apart.
    return tuple((value.__class__, quote(value) if value.__class__ is str else value) for value in values)
