"""Regular expressions as Go understands them: the door to RE2, with Go's words for what it refuses.

A tenant's pattern must not be able to stop the server, so no engine that backtracks may run it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import re2  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

    Search = Callable[[str], bool]

# What RE2 in C++ calls its errors, and what regexp/syntax calls them.
_GO_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
_TRAILING_BACKSLASH: Final = "trailing \\"
_LOOK_BEHIND: Final = ("(?<=", "(?<!")
# The one escape that RE2 knows and Go does not.
_ANY_BYTE_ESCAPE: Final = "\\C"
_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_CACHED_PATTERNS: Final = 4096
_UNANCHORED: Final = re2._re2.RE2.Anchor.UNANCHORED


class PatternError(ValueError):
    """The pattern is none; the text is what Go's regexp.Compile says."""


@lru_cache(maxsize=_CACHED_PATTERNS)
def compile_pattern(pattern: str) -> Search:
    """A function that tells whether the pattern is somewhere in a text. Raises PatternError."""
    options = re2.Options()
    options.log_errors = False
    # Nobody asks for the groups, and finding them makes RE2 run two more automata.
    options.never_capture = True
    if _ANY_BYTE.search(pattern):
        raise PatternError(f"error parsing regexp: invalid escape sequence: `{_ANY_BYTE_ESCAPE}`")
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise PatternError(_explain(error, pattern)) from None
    # The public `search` builds a match object in Python, five times slower than the match itself.
    match = compiled._regexp.Match

    def search(text: str) -> bool:
        raw = text.encode(errors="replace")
        return bool(match(_UNANCHORED, raw, 0, len(raw))[0][0] >= 0)

    return search


def _explain(error: Exception, pattern: str) -> str:
    argument = error.args[0] if error.args else ""
    text = argument.decode(errors="replace") if isinstance(argument, bytes) else str(argument)
    code, _, part = text.partition(": ")
    if code == _TRAILING_BACKSLASH:
        code = "trailing backslash at end of expression"
    elif part in _LOOK_BEHIND:
        # Go takes it for the beginning of a name.
        code, rest = "invalid named capture", pattern[pattern.index(part) :]
        part = rest[: rest.find(">") + 1] or rest
    return f"error parsing regexp: {_GO_WORDS.get(code, code)}: `{part}`"
