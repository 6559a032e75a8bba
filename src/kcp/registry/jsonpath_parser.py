"""Reads JSONPath expressions into nodes, with the grammar and the oddities of client-go's util/jsonpath parser."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

_TERMINATORS: Final = frozenset(" \t\r\n.,[]$@{}")
_NUMBER: Final = re.compile(r"[+-]?[\d.]*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DICT_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)", re.DOTALL)
_UNESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}


class JSONPathError(ValueError):
    """The expression is wrong, or does not suit the value."""


class Field(NamedTuple):
    name: str


class Literal(NamedTuple):
    value: str | int | float | bool


class Identifier(NamedTuple):
    """A word where none is known: not an error before it is evaluated."""

    name: str


class Wildcard(NamedTuple):
    pass


class Recursive(NamedTuple):
    pass


class Union(NamedTuple):
    branches: list[list[Node]]


class Array(NamedTuple):
    start: int | None
    end: int | None
    step: int | None
    is_index: bool  # [2] rather than [2:3]


class Filter(NamedTuple):
    left: list[Node]
    operator: str
    right: list[Node]


Node: TypeAlias = Field | Literal | Identifier | Wildcard | Recursive | Union | Array | Filter


def parse(text: str) -> list[Node]:
    """The nodes of one expression without its braces. Raises JSONPathError.

    It recurses three times at most: a filter ends at the first parenthesis and a union at the first bracket, so neither
    can hold another of its kind.
    """
    return _Parser(text).parse()


class _Parser:
    """Where we are in the text, and what we have read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._nodes: list[Node] = []

    def parse(self) -> list[Node]:
        # A brace ends the expression; what follows would be another one, whose results nobody reads.
        while self._at < len(self._text) and self._text[self._at] != "}":
            self._parse_step()
        return self._nodes

    def _parse_step(self) -> None:
        char = self._text[self._at]
        if self._text.startswith("[?(", self._at):
            self._parse_filter()
        elif self._text.startswith("..", self._at):
            self._parse_recursive()
        elif char in " @$":
            self._at += 1
        elif char == "[":
            self._parse_array()
        elif char in "\"'":
            self._parse_quote(char)
        elif char == ".":
            self._at += 1
            self._parse_field()
        elif char in "+-" or char.isdigit():
            self._parse_number()
        elif char == "_" or char.isalpha():
            self._parse_identifier()
        elif char in "\r\n":
            raise JSONPathError("unclosed action")
        else:
            raise JSONPathError(f"unrecognized character in action: {char!r}")

    def _parse_recursive(self) -> None:
        if self._nodes and isinstance(self._nodes[-1], Recursive):
            raise JSONPathError("invalid multiple recursive descent")
        self._at += 2
        self._nodes.append(Recursive())
        if self._text[self._at : self._at + 1].replace("_", "a").isalnum():
            self._parse_field()

    def _parse_field(self) -> None:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _TERMINATORS:
            self._at += 2 if self._text[self._at] == "\\" else 1
        if self._at > len(self._text):  # the brace that would close the expression is escaped
            raise JSONPathError("unclosed action")
        name = self._text[start : self._at]
        self._nodes.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))

    def _parse_identifier(self) -> None:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _TERMINATORS:
            self._at += 1
        name = self._text[start : self._at]
        self._nodes.append(Literal(name == "true") if name in ("true", "false") else Identifier(name))

    def _parse_number(self) -> None:
        match = _NUMBER.match(self._text, self._at)
        assert match is not None, "a sign or a digit brought us here"
        self._at = match.end()
        try:
            value = int(match[0]) if _INTEGER.fullmatch(match[0]) else float(match[0])
        except ValueError:
            raise JSONPathError(f"cannot parse number {match[0]}") from None
        self._nodes.append(Literal(value))

    def _parse_quote(self, quote: str) -> None:
        end = self._find_unescaped(quote, self._at + 1)
        if end < 0 or "\n" in self._text[self._at : end]:
            raise JSONPathError("unterminated quoted string")
        self._nodes.append(Literal(_UNESCAPE.sub(_unescape, self._text[self._at + 1 : end])))
        self._at = end + 1

    def _find_unescaped(self, quote: str, start: int) -> int:
        end = self._text.find(quote, start)
        while end > 0 and self._text[end - 1] == "\\":
            end = self._text.find(quote, end + 1)
        return end

    def _parse_array(self) -> None:
        end = self._text.find("]", self._at)
        if end < 0 or "\n" in self._text[self._at : end]:
            raise JSONPathError("unterminated array")
        inside = self._text[self._at + 1 : end]
        self._at = end + 1
        branches = inside.split(",")
        key = _DICT_KEY.fullmatch(inside)
        if len(branches) > 1:
            self._nodes.append(Union([parse(f"[{branch.strip(' ')}]") for branch in branches]))
        elif key is not None:
            self._nodes += parse(f".{key[1]}")
        else:
            self._nodes.append(_parse_slice(":" if inside == "*" else inside))

    def _parse_filter(self) -> None:
        start = self._at + len("[?(")
        end = self._find_filter_end(start)
        if self._text[end + 1 : end + 2] != "]":
            raise JSONPathError("unclosed array expect ]")
        inside = self._text[start:end]
        self._at = end + 2
        match = _COMPARISON.fullmatch(inside)
        if match is None:
            self._nodes.append(Filter(parse(inside), "exists", []))
        else:
            left, right = (parse(side) for side in (match[1], match[3]))
            self._nodes.append(Filter(left, match[2], right))

    def _find_filter_end(self, start: int) -> int:
        """The closing parenthesis. Only the first pair of quotes can hide one, as in client-go."""
        quote, closed = "", False
        for at in range(start, len(self._text)):
            char = self._text[at]
            if char == "\n":
                break
            if char in "\"'":
                if not quote:
                    quote = char
                elif char == quote and self._text[at - 1] != "\\":
                    closed = True
            elif char == ")" and bool(quote) == closed:
                return at
        raise JSONPathError("unterminated filter")


def _parse_slice(inside: str) -> Array:
    match = _SLICE.fullmatch(inside)
    if match is None:
        raise JSONPathError(f"invalid array index {inside}")
    try:
        start, end, step = (
            int(part.removeprefix(":")) if part not in (None, "", ":") else None for part in match.groups()
        )
    except ValueError:
        raise JSONPathError(f"invalid array index {inside}") from None
    if match[2] is None:
        return Array(start, (start or 0) + 1, step, is_index=True)
    return Array(start, end, step, is_index=False)


def _unescape(match: re.Match[str]) -> str:
    if match[1] in "\"'":
        return match[1]
    if match[1] not in _ESCAPES:
        raise JSONPathError("unquote string error invalid syntax")
    return _ESCAPES[match[1]]
