"""Operands of `&&` and `||` that are no truth values.

cel-go complains about each such operand, at its place. The engine complains about the operator, and does not tell where
the operands are, so each is compiled again, alone but at the same place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    # The offset at which the engine finds an expression; None if it cannot be compiled alone.
    Locate = Callable[[str], int | None]

_COMPLAINT: Final = re.compile(r"^found no matching overload for '_(?:&&|\|\|)_' applied to '\((.*), (.*)\)'$")
_TOKEN: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|&&|\|\||.""", re.DOTALL)
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"
_ENDS: Final = ("&&", "||", "?", ":", ",")
_LENGTH: Final = 2


def find_operands(complaint: str, expression: str, offset: int, locate: Locate) -> list[tuple[int, str]]:
    """What cel-go says instead of a complaint about the operator at an offset, with the places; empty if it agrees."""
    match = _COMPLAINT.match(complaint)
    if match is None or expression[offset : offset + _LENGTH] not in ("&&", "||"):
        return []
    found = []
    for kind, (start, end) in zip(match.groups(), _operands(expression, offset), strict=True):
        if kind == "bool":
            continue
        place = locate(re.sub(r"[^\n]", " ", expression[:start]) + expression[start:end])
        if place is None:
            return []
        found.append((place, f"expected type 'bool' but found '{kind}'"))
    return found


def _operands(expression: str, offset: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the operands of an operator begin and end."""
    tokens = [(match.start(), match[0]) for match in _TOKEN.finditer(expression)]
    before = [token for token in tokens if token[0] < offset]
    after = [token for token in tokens if token[0] >= offset + _LENGTH]
    start, depth = 0, 0
    for position, token in reversed(before):
        depth += (token in _CLOSING) - (token in _OPENING)
        if depth < 0 or (not depth and token in _ENDS):
            start = position + len(token)
            break
    end, depth = len(expression), 0
    for position, token in after:
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth < 0 or (not depth and token in _ENDS):
            end = position
            break
    return (start, offset), (offset + _LENGTH, end)
