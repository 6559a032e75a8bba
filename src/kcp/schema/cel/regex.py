"""Finding regular expressions in text, with an engine that no pattern can stop."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import re2  # type: ignore[import-untyped]

from kcp.schema.cel.functions import Overload, method
from kcp.schema.cel.types import INT, STRING, ListType
from kcp.schema.structural.regexps import PatternError, compile_pattern

if TYPE_CHECKING:
    from kcp.schema.cel.functions import Function

_CACHED_PATTERNS: Final = 1024


def find(text: str, pattern: str) -> str:
    """The first match, or nothing."""
    match = _compile(pattern).search(text)
    return str(match.group()) if match else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches, or the first so many of them."""
    matches = _compile(pattern).finditer(text)
    if limit < 0:
        return [match.group() for match in matches]
    return [match.group() for _, match in zip(range(limit), matches, strict=False)]


@lru_cache(maxsize=_CACHED_PATTERNS)
def _compile(pattern: str) -> Any:  # noqa: ANN401 - the library has no types
    try:
        compile_pattern(pattern)  # for its words, if it is no pattern
    except PatternError as error:
        raise ValueError(f"Illegal regex: {error}") from None
    return re2.compile(pattern)


FUNCTIONS: Final[tuple[Function, ...]] = (
    method("find", Overload("string_find_string", (STRING, STRING), STRING, find)),
    method(
        "findAll",
        Overload("string_find_all_string", (STRING, STRING), ListType(STRING), find_all),
        Overload("string_find_all_string_int", (STRING, STRING, INT), ListType(STRING), find_all),
    ),
)
