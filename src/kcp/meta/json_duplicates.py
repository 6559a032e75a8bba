"""Repeated keys in JSON, which fast parsers pass over in silence and strict field validation reports.

Must not be asked about text that `codec.loads` has not accepted: it relies on the limits checked there.
"""

import json
from typing import Any, Final

# sigs.k8s.io/json stops collecting here.
_MOST_REPORTED: Final = 100


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with nothing lost."""


class _Found(Exception):
    """Ends the search for any repeated key."""


def has_duplicate_fields(text: bytes | str) -> bool:
    """Whether any object in the text repeats a key."""
    try:
        _read(text, _refuse_duplicates)
    except _Found:
        return True
    return False


def find_duplicate_fields(text: bytes | str) -> list[str]:
    """The paths of repeated keys, such as `data.k` or `spec.ports[0].name`: each once, in the order of the text."""
    found: dict[str, None] = {}
    if has_duplicate_fields(text):
        _walk("", _read(text, _Pairs), found)
    return list(found)[:_MOST_REPORTED]


def _read(text: bytes | str, hook: Any) -> Any:  # noqa: ANN401
    # Numbers stay text: they do not matter here, and Python refuses to read very long ones.
    return json.loads(text, object_pairs_hook=hook, parse_int=str, parse_float=str)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _Found


def _walk(path: str, value: Any, found: dict[str, None]) -> None:  # noqa: ANN401
    if isinstance(value, _Pairs):
        seen = set()
        for key, child in value:
            child_path = f"{path}.{key}" if path else key
            if key in seen:
                found[child_path] = None
            seen.add(key)
            _walk(child_path, child, found)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _walk(f"{path}[{index}]", child, found)
