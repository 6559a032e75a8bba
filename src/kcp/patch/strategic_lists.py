"""Lists in strategic merge patches: merging them by key or by value, and the order of the result.

The result keeps the order of the patch for what is in the patch, and the order of the live list for what is not; how
the two interleave follows the live list. Must not look into the items beyond their merge key.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from kcp.meta.codec import Object
from kcp.patch.go_values import identity, show, show_as_string, type_name_as_string
from kcp.patch.merge_schema import MergeSchema

DIRECTIVE: Final = "$patch"
REPLACE: Final = "replace"
DELETE: Final = "delete"
MERGE: Final = "merge"


class MergeError(ValueError):
    """The patch cannot be merged; the message is that of Kubernetes."""

    LIST_OF_LISTS: ClassVar = "lists of lists are not supported"

    @classmethod
    def no_merge_key(cls, item: Object, merge_key: str) -> "MergeError":
        return cls(f"map: {show(item)} does not contain declared merge key: {merge_key}")

    @classmethod
    def bad_type(cls, expected: Any, actual: Any) -> "MergeError":  # noqa: ANN401 - any JSON value, here and below
        return cls(f"expected a {type_name_as_string(expected)}, but received a {type_name_as_string(actual)}")

    @classmethod
    def unknown_directive(cls, directive: Any, item: Object) -> "MergeError":  # noqa: ANN401
        return cls(f"unknown patch type: {show_as_string(directive)} in map: {show(item)}")


@dataclass(frozen=True, slots=True)
class ListMerge:
    """How one list is merged: `merge_map` merges two items, `merge_key` is empty for scalars."""

    schema: MergeSchema
    merge_key: str
    merge_map: Callable[[Object, Object, MergeSchema], Object]
    is_delete_list: bool

    def put_in_order(self, merged: list[Any], order: list[Any], live: list[Any]) -> list[Any]:
        """The merged items, those in `order` as it says and the others as they were in the live list."""
        named = {self._key_of(item) for item in order}
        patched = [item for item in merged if self._key_of(item) in named]
        others = [item for item in merged if self._key_of(item) not in named]
        places = _places(live, self._key_of)
        patched = self._sort(patched, _places(order, self._key_of))
        return _interleave(self._sort(others, places), patched, lambda item: places.get(self._key_of(item)))

    def _key_of(self, item: Any) -> Hashable:  # noqa: ANN401
        if not self.merge_key:
            return identity(item)
        if not isinstance(item, dict):
            raise MergeError.bad_type({}, item)
        if self.merge_key not in item:
            raise MergeError.no_merge_key(item, self.merge_key)
        return identity(item[self.merge_key])

    def _sort(self, items: list[Any], places: dict[Hashable, int]) -> list[Any]:
        """By place; items to delete, if any are left, go last."""
        doomed = [item for item in items if isinstance(item, dict) and item.get(DIRECTIVE) == DELETE]
        kept = [item for item in items if not (isinstance(item, dict) and item.get(DIRECTIVE) == DELETE)]
        if all(self._key_of(item) in places for item in kept):
            kept.sort(key=lambda item: places[self._key_of(item)])
        else:
            kept.reverse()  # what Go's insertion sort makes of a comparison that always says "less"
        return kept + doomed


def merge_lists(original: list[Any], patch: list[Any], how: ListMerge) -> list[Any]:
    """The merged list. Raises MergeError."""
    if not original and not patch:
        return original
    if element_type(original, patch) is not dict:
        if how.is_delete_list:
            doomed = {identity(item) for item in patch}
            return [item for item in original if identity(item) not in doomed]
        unique = {identity(item): item for item in [*original, *patch]}
        return how.put_in_order([*unique.values()], patch, original)
    if not how.merge_key:
        kind = "struct" if how.schema.go_name else "string" if how.schema.scalar else "map"
        raise MergeError(f"cannot merge lists without merge key for {kind}")
    original, patch = _obey_directives(original, patch, how)
    merged = _merge_items(original, patch, how)
    return how.put_in_order(merged, patch, original)


def check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """See that the patch names nothing that the order does not, and in the same order. Raises MergeError."""
    if not order or not patch:
        return
    items = patch
    if merge_key:
        for item in patch:
            if not isinstance(item, dict):
                raise MergeError.bad_type({}, item)
        items = [item for item in patch if item.get(DIRECTIVE) != DELETE]
    position = 0
    for wanted in order:
        while position < len(items) and isinstance(items[position], dict) and DIRECTIVE in items[position]:
            position += 1
        if position == len(items):
            return
        if _same_key(items[position], wanted, merge_key):
            position += 1
    if position < len(items):
        raise MergeError(
            f"The order in patch list:\n{show(patch)}\n doesn't match $setElementOrder list:\n{show(order)}\n"
        )


def element_type(*lists: list[Any]) -> type:
    """The type that all items have. Raises MergeError if they have several, or none, or are lists themselves."""
    types = {type(item) for items in lists for item in items}
    if not types:
        raise MergeError("no elements in any of the given slices")
    if next((type(item) for items in lists for item in items), None) is list:
        raise MergeError(MergeError.LIST_OF_LISTS)
    if len(types) > 1:
        raise MergeError(f"list element types are not identical: {show([*lists])}")
    return types.pop()


def _obey_directives(original: list[Any], patch: list[Any], how: ListMerge) -> tuple[list[Any], list[Any]]:
    """The live items that survive the directives in the patch, and the items of the patch without them."""
    plain = [item for item in patch if DIRECTIVE not in item]
    doomed: set[Hashable] = set()
    is_replaced = False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            continue
        if directive == DELETE:
            if how.merge_key not in item:
                raise MergeError.no_merge_key(item, how.merge_key)
            doomed.add(identity(item[how.merge_key]))
        elif directive == REPLACE:
            is_replaced = True
        elif directive == MERGE:
            raise MergeError("merging lists cannot yet be specified in the patch")
        else:
            raise MergeError.unknown_directive(directive, item)
    if is_replaced:
        return plain, []
    if not doomed:
        return original, plain
    survivors = [item for item in original if how.merge_key not in item or identity(item[how.merge_key]) not in doomed]
    return survivors, plain


def _merge_items(original: list[Any], patch: list[Any], how: ListMerge) -> list[Any]:
    merge_key = how.merge_key
    merged = [*original]
    places: dict[Hashable, int] = {}
    for place, item in enumerate(merged):
        if merge_key in item:
            places.setdefault(identity(item[merge_key]), place)
    for item in patch:
        if merge_key not in item:
            raise MergeError.no_merge_key(item, merge_key)
        key = identity(item[merge_key])
        if key in places:
            merged[places[key]] = how.merge_map(merged[places[key]], item, how.schema)
        else:
            places[key] = len(merged)
            merged.append(item)
    return merged


def _same_key(left: Any, right: Any, merge_key: str) -> bool:  # noqa: ANN401
    if not merge_key:
        return type(left) is type(right) and identity(left) == identity(right)
    for item in (left, right):
        if not isinstance(item, dict):
            raise MergeError.bad_type({}, item)
    for item in (left, right):
        if merge_key not in item:
            raise MergeError.no_merge_key(item, merge_key)
    return identity(left[merge_key]) == identity(right[merge_key])


def _places(items: list[Any], key_of: Callable[[Any], Hashable]) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        places.setdefault(key_of(item), place)
    return places


def _interleave(left: list[Any], right: list[Any], place_of: Callable[[Any], int | None]) -> list[Any]:
    """Both lists in one, an item of the left one going before the first of the right one that was behind it."""
    merged: list[Any] = []
    places = [place_of(item) for item in left]
    at = 0
    for item in right:
        limit = place_of(item)
        while at < len(left) and _is_before(places[at], limit):
            merged.append(left[at])
            at += 1
        merged.append(item)
    return merged + left[at:]


def _is_before(place: int | None, limit: int | None) -> bool:
    return place is not None and limit is not None and place < limit
