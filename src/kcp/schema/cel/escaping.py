"""Names of properties as expressions spell them: `a-b` is `a__dash__b` there (apiserver/pkg/cel/escaping.go)."""

from __future__ import annotations

import re
from typing import Final

_RESERVED: Final = frozenset(
    {
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
    }
    | {"loop", "package", "namespace", "return", "var", "void", "while"}
)
# Those that are no words of the language itself can be selected as they are, too: `self.namespace`.
_TOKENS: Final = frozenset({"true", "false", "null", "in"})
_SUPPORTED: Final = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_SPECIAL: Final = re.compile(r"__|[-./]")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escape(name: str) -> str | None:
    """The identifier for a property, or None if expressions cannot name it."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _SUPPORTED.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda special: _ESCAPES[special[0]], name)


def reserved_in(identifier: str) -> str:
    """The reserved word that an identifier stands for and that can be used in its place; nothing if there is none."""
    word = identifier[2:-2] if identifier.startswith("__") and identifier.endswith("__") else ""
    return word if word in _RESERVED - _TOKENS else ""
