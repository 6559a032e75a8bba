"""Paths to fields, `.spec.a` or `.spec['a']`, checked against a schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.meta.field import FieldPath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kcp.schema.structural.nodes import Node

_TOKEN: Final = re.compile(r"'(?:.*?(?<!\\))'|[.\[\]]|'[^\x00]*|[^.\[\]]+", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}


class FieldPathError(ValueError):
    """The path is none, or leads nowhere."""


class FoundField(NamedTuple):
    path: FieldPath
    node: Node | None  # None: the schema does not say what is there


def find_field(json_path: str, node: Node | None, *, allow_brackets: bool = True) -> FoundField:
    """Follow a path through a schema. Raises FieldPathError."""
    tokens: Iterator[str] = iter(_TOKEN.findall(json_path))
    here = node
    path = FieldPath()
    for token in tokens:
        if token == "[":
            if not allow_brackets:
                raise FieldPathError("array notation is not allowed")
            path, here = _step(path, here, _unquote(_next(tokens)))
            if (end := _next(tokens)) != "]":
                raise FieldPathError(f"expected ] but got {end}")
        elif token == ".":
            path, here = _step(path, here, _next(tokens))
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return FoundField(path, here)


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    return token


def _step(path: FieldPath, node: Node | None, name: str) -> tuple[FieldPath, Node | None]:
    if node is not None and node.properties:
        if name not in node.properties:
            raise FieldPathError("does not refer to a valid field")
        return path.child(name), node.properties[name]
    if node is not None and node.has_additional:
        return path.key(name), node.additional
    raise FieldPathError("does not refer to a valid field")


def _unquote(token: str) -> str:
    if len(token) < 2 or not token.startswith("'") or not token.endswith("'"):
        raise FieldPathError(f"expected single quoted string but got {token}")
    return _ESCAPED.sub(_unescape, token[1:-1])


def _unescape(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPES:
        raise FieldPathError(f"invalid string literal: invalid escape char {match[0]}")
    return _ESCAPES[match[1]]
