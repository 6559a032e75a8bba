"""Parts of strings, with cel-go's words for places that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.schema.cel import tree
from kcp.schema.cel.functions import Overload, method
from kcp.schema.cel.types import INT, STRING

if TYPE_CHECKING:
    from kcp.schema.cel.functions import Function


def character_at(text: str, index: int) -> str:
    """The place behind the last character exists and is empty."""
    _check_index(text, index)
    return text[index : index + 1]


def substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise ValueError(f"invalid substring range. start: {start}, end: {end}")
    _check_index(text, start)
    if end is not None:
        _check_index(text, end)
    return text[start:end]


def _check_index(text: str, index: int) -> None:
    if not 0 <= index <= len(text):
        raise ValueError(f"index out of range: {index}")


RUNTIME_FUNCTIONS: Final[tuple[Function, ...]] = (
    method(tree.CHARACTER, Overload("@char_at", (STRING, INT), STRING, character_at)),
    method(
        tree.SUBSTRING,
        Overload("@substring", (STRING, INT), STRING, substring),
        Overload("@substring_end", (STRING, INT, INT), STRING, substring),
    ),
)
