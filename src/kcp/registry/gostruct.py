"""How Go prints a struct inside a field error: fields in the order of the type, not of the alphabet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from kcp.meta.gotext import marshal_json, quote

# (name in the object, name that Go prints, value that Go prints where the object has none, how to print what it has)
FieldSpec: TypeAlias = "tuple[str, str, Any] | tuple[str, str, Any, Sequence[FieldSpec]]"


class GoStruct:
    """A bad value that is shown as this text. Field errors print what is no JSON value with `str`.

    Internal types have no JSON tags, so the names are Go's and nothing is left out:

        GoStruct.of({"name": "r"}, (("kind", "Kind", ""), ("name", "Name", "")))    {"Kind":"","Name":"r"}
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def of(cls, value: Mapping[str, Any], fields: Sequence[FieldSpec]) -> GoStruct:
        return cls(_render(value, fields))

    @classmethod
    def tagged(cls, value: Mapping[str, Any], names: Sequence[str]) -> GoStruct:
        """A struct of a version: JSON names in the order given, absent ones left out."""
        shown = (f"{marshal_json(name)}:{marshal_json(value[name])}" for name in names if name in value)
        return cls("{" + ",".join(shown) + "}")

    @classmethod
    def list_of(cls, structs: Sequence[GoStruct]) -> GoStruct:
        return cls("[" + ",".join(map(str, structs)) + "]")

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GoStruct) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def named(text: str) -> str | GoStruct:
    """A text of a named type, such as an enumeration: Go prints these as JSON, and only plain strings with %q.

    The two differ where JSON protects HTML: `"<"` becomes `"\\u003c"`.
    """
    shown = marshal_json(text)
    return text if shown == quote(text) else GoStruct(shown)


def _render(value: Mapping[str, Any], fields: Sequence[FieldSpec]) -> str:
    shown = []
    for name, go_name, absent, *nested in fields:
        item = value.get(name, absent)
        if nested and isinstance(item, list):
            text = "[" + ",".join(_render(member, nested[0]) for member in item) + "]"
        elif nested and isinstance(item, Mapping):
            text = _render(item, nested[0])
        else:
            text = marshal_json(item)
        shown.append(f'"{go_name}":{text}')
    return "{" + ",".join(shown) + "}"
