"""Go's standard base64: line breaks are skipped, and an error names the byte it stumbled over."""

from __future__ import annotations

import binascii
from typing import Final

_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS: Final = b"\r\n"
_PAD: Final = ord("=")


def recode(text: str) -> str:
    """The canonical form of a base64 text. Raises ValueError, without a message for users."""
    try:
        decoded = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        text = text.replace("\n", "").replace("\r", "")
        decoded = binascii.a2b_base64(text, strict_mode=True)
    canonical = binascii.b2a_base64(decoded, newline=False)
    # Python's strict mode lets padding pass behind a text that needs none.
    if len(canonical) != len(text):
        raise ValueError("too much padding")
    return canonical.decode()


def find_corrupt_byte(text: str) -> int | None:
    """The position that Go reports in `illegal base64 data at input byte N`; None if there is nothing to report."""
    raw = text.encode("utf-8", "surrogatepass")
    at = 0
    while at < len(raw):
        corrupt, at = _read_quantum(raw, at)
        if corrupt is not None:
            return corrupt
    return None


def _read_quantum(raw: bytes, at: int) -> tuple[int | None, int]:
    """Read up to four characters that make three bytes; the second item is where to go on."""
    read = 0
    while read < 4:
        if at == len(raw):
            return (None if read == 0 else at - read), at
        byte = raw[at]
        at += 1
        if byte in _ALPHABET:
            read += 1
        elif byte in _BREAKS:
            continue
        elif byte != _PAD or read < 2:
            return at - 1, at
        else:
            return _read_padding(raw, at, read)
    return None, at


def _read_padding(raw: bytes, at: int, read: int) -> tuple[int | None, int]:
    if read == 2:
        at = _skip_breaks(raw, at)
        if at == len(raw):
            return at, at
        if raw[at] != _PAD:
            return at - 1, at
        at += 1
    at = _skip_breaks(raw, at)
    return (at if at < len(raw) else None), at


def _skip_breaks(raw: bytes, at: int) -> int:
    while at < len(raw) and raw[at] in _BREAKS:
        at += 1
    return at
