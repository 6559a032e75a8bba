"""What is wrong with a text that is not JSON, in the words of Go's encoding/json.

Must not decode: it runs only after a fast parser has refused, to name the character where Go would have stopped.
"""

import re
from typing import Final, NoReturn

from kcp.meta.gotext import quote_byte

_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_STRING_BODY: Final = re.compile(rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_HEX: Final = b"0123456789abcdefABCDEF"
_DIGITS: Final = b"0123456789"
_END: Final = "unexpected end of JSON input"

# A walk in Python takes a tenth of a second for this much; whoever sends more must do with the fast parser's words.
_MAX_BYTES: Final = 64 * 1024


class _SyntaxFault(Exception):
    """Carries the sentence out of the scanner."""


def explain(text: bytes) -> str:
    """The sentence for the first syntax error.

    It is "" when by Go's rules there is none (bad UTF-8, numbers out of range), and for texts too long to walk.
    """
    if len(text) > _MAX_BYTES:
        return ""
    try:
        _Scanner(text).scan()
    except _SyntaxFault as fault:
        return str(fault)
    return ""


class _Scanner:
    """Walks the text once. `_open` is the stack of enclosing brackets, so that depth costs no recursion."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0
        self._open: list[int] = []

    def scan(self) -> None:
        self._value()
        while self._open:
            self._after_value()
        if self._peek() is not None:
            self._fail("after top-level value")

    def _after_value(self) -> None:
        """Inside a list or object, just behind one of its values."""
        in_object = self._open[-1] == ord("{")
        char = self._peek()
        if char == ord("}" if in_object else "]"):
            self._at += 1
            self._open.pop()
        elif char == ord(","):
            self._at += 1
            if in_object:
                self._key()
            self._value()
        else:
            self._fail("after object key:value pair" if in_object else "after array element")

    def _value(self) -> None:
        """One scalar, or the opening brackets up to and including the first scalar or closed pair."""
        while True:
            char = self._peek()
            if char == ord("{"):
                self._at += 1
                if self._peek() == ord("}"):
                    self._at += 1
                    return
                self._open.append(char)
                self._key()
            elif char == ord("["):
                self._at += 1
                if self._peek() == ord("]"):
                    self._at += 1
                    return
                self._open.append(char)
            else:
                self._scalar(char)
                return

    def _key(self) -> None:
        if self._peek() != ord('"'):
            self._fail("looking for beginning of object key string")
        self._string()
        if self._peek() != ord(":"):
            self._fail("after object key")
        self._at += 1

    def _scalar(self, char: int | None) -> None:
        if char == ord('"'):
            self._string()
        elif char is not None and char in b"-0123456789":
            self._number()
        elif char is not None and char in b"tfn":
            self._literal({ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}[char])
        else:
            self._fail("looking for beginning of value")

    def _string(self) -> None:
        self._at += 1
        self._at = _end_of(_STRING_BODY, self._text, self._at)
        char = self._here()
        if char == ord('"'):
            self._at += 1
            return
        if char != ord("\\"):
            self._fail("in string literal")
        self._at += 1
        if self._here() != ord("u"):
            self._fail_in_token("in string escape code")
        self._at += 1
        while (char := self._here()) is not None and char in _HEX:
            self._at += 1
        self._fail_in_token("in \\u hexadecimal character escape")

    def _literal(self, word: bytes) -> None:
        for expected in word:
            if self._here() != expected:
                self._fail_in_token(f"in literal {word.decode()} (expecting '{chr(expected)}')")
            self._at += 1

    def _number(self) -> None:
        if self._here() == ord("-"):
            self._at += 1
        if self._here() == ord("0"):
            self._at += 1
        else:
            self._digits("in numeric literal")
        if self._here() == ord("."):
            self._at += 1
            self._digits("after decimal point in numeric literal")
        if self._here() in (ord("e"), ord("E")):
            self._at += 1
            if self._here() in (ord("+"), ord("-")):
                self._at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, context: str) -> None:
        char = self._here()
        if char is None or char not in _DIGITS:
            self._fail_in_token(context)
        while (char := self._here()) is not None and char in _DIGITS:
            self._at += 1

    def _here(self) -> int | None:
        return self._text[self._at] if self._at < len(self._text) else None

    def _peek(self) -> int | None:
        self._at = _end_of(_SPACE, self._text, self._at)
        return self._here()

    def _fail(self, context: str) -> NoReturn:
        """Complain about the character here, between tokens or in a string, where a space would have been welcome."""
        if self._here() is None:
            raise _SyntaxFault(_END)
        self._fail_in_token(context)

    def _fail_in_token(self, context: str) -> NoReturn:
        # Go ends every text with a space of its own, and complains about that one when a token is cut short.
        char = self._here()
        raise _SyntaxFault(f"invalid character {quote_byte(ord(' ') if char is None else char)} {context}")


def _end_of(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    match = pattern.match(text, start)
    return start if match is None else match.end()
