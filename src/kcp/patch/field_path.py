"""Path elements: the steps from an object to a field in it, as managed fields write them.

    f:name              a field of a map
    k:{"name":"web"}    the item of a list with these keys
    v:"a"               the item of a set with this value
    i:0                 the item at this index, which nobody writes any more

An element is kept as the text of its one canonical form, so that equal elements are equal strings. The functions here
remember what they made of the few hundred texts that are in use. Must not know field sets.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from kcp.meta.codec import DecodeError, loads
from kcp.meta.gotext import format_float, marshal_json, quote

_REMEMBERED: Final = 8192
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")
_PLAIN: Final = re.compile(r"[ !#-%'-;=?-\[\]-~]*")  # what JSON, as Go writes it, does not escape
_FIELD, _KEY, _VALUE, _AT = range(4)

SortKey = tuple[Any, ...]


def key_element(keys: Iterable[tuple[str, Any]]) -> str:
    """The element for the item of a list that has these keys, which come sorted by name."""
    return "k:{" + ",".join([f"{_json(name)}:{_json(value)}" for name, value in keys]) + "}"


def value_element(value: Any) -> str:  # noqa: ANN401 - any scalar
    """The element for an item of a set."""
    return f"v:{_json(value)}"


@lru_cache(_REMEMBERED)
def canonical(text: str) -> str | None:
    """The canonical form of an element; None for a kind of element that is not known. Raises ValueError."""
    if len(text) < 2:
        raise ValueError("key must be 2 characters long:")
    if text[1] != ":":
        raise ValueError(f"missing colon: {text}")
    kind, content = text[0], text[2:]
    if kind == "f":
        return text
    if kind == "i":
        if _INDEX.fullmatch(content) is None:
            raise ValueError(f"strconv.Atoi: parsing {quote(content)}: invalid syntax")
        return f"i:{int(content)}"
    if kind == "v":
        return value_element(_read(content))
    if kind == "k":
        keys = _read(content)
        if not isinstance(keys, dict):
            raise ValueError("ReadObjectCB: expect { or n")
        return key_element(sorted(keys.items()))
    return None


@lru_cache(_REMEMBERED)
def sort_key(element: str) -> SortKey:
    """What sorts elements as Kubernetes does: fields, then keys, values and indices, numbers by size."""
    kind, content = element[0], element[2:]
    if kind == "f":
        return _FIELD, content
    if kind == "k":
        return _KEY, *((name, _value_order(value)) for name, value in sorted(_read(content).items()))
    if kind == "v":
        return _VALUE, _value_order(_read(content))
    return _AT, int(content)


@lru_cache(_REMEMBERED)
def describe(element: str) -> str:
    """The element in messages: `.spec`, `[name="web"]`, `[="a"]`."""
    kind, content = element[0], element[2:]
    if kind == "f":
        return f".{content}"
    if kind == "k":
        return "[" + ",".join(f"{name}={show_value(value)}" for name, value in sorted(_read(content).items())) + "]"
    return f"[={show_value(_read(content))}]" if kind == "v" else f"[{content}]"


def show_value(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return "[" + ",".join(map(show_value, value)) + "]"
    if isinstance(value, dict):
        return "".join(f"{name}={show_value(item)}" for name, item in value.items())
    return format_float(float(value))


def _json(value: Any) -> str:  # noqa: ANN401
    """JSON in which a number is written in one way only, whether it is 80 or 80.0."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) is not None:
        return f'"{value}"'
    return marshal_json(value)


def _read(content: str) -> Any:  # noqa: ANN401
    try:
        return loads(content)
    except DecodeError as error:
        raise ValueError(str(error)) from None


def _value_order(value: Any) -> SortKey:  # noqa: ANN401
    """Numbers, texts, booleans, lists, maps, null: the order of structured-merge-diff."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    if isinstance(value, list):
        return 3, [_value_order(item) for item in value]
    if isinstance(value, dict):
        return 4, [(name, _value_order(item)) for name, item in sorted(value.items())]
    return (5,)
