"""Addresses in strings, as Go's net and net/mail packages read them."""

from __future__ import annotations

import ipaddress
import re
from functools import cache
from typing import Final

_MAX_OCTET: Final = 255
_SMALL_DIGITS: Final = 4  # more of them cannot be an octet or a mask
_DIGITS: Final = re.compile("[0-9]+")
_MAC: Final = re.compile(
    "|".join(
        f"[0-9a-fA-F]{{{digits}}}(?:{separator}[0-9a-fA-F]{{{digits}}}){{{count - 1}}}"
        for digits, separator in ((2, ":"), (2, "-"), (4, r"\."))
        for count in (6 * 2 // digits, 8 * 2 // digits, 20 * 2 // digits)
    )
)

# Of RFC 5322, with letters of all scripts as RFC 6532 allows and net/mail does.
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-\u0080-\U0010ffff]+"
_DOT_ATOM: Final = rf"{_ATOM}(?:\.{_ATOM})*"
_QUOTED: Final = r'"(?:[^"\\\x00-\x1f\x7f]|\\[\x20-\x7e\u0080-\U0010ffff])*"'
_DOMAIN: Final = rf"(?:{_DOT_ATOM}|\[([0-9A-Fa-f:.]*)\])"
_SPACE: Final = r"[ \t]*"
_ADDRESS: Final = rf"(?:{_DOT_ATOM}|{_QUOTED})@{_SPACE}{_DOMAIN}"
_PHRASE: Final = rf"(?:(?:{_ATOM}|{_QUOTED}|\.)[ \t]*)*"
_EMAIL: Final = rf"{_SPACE}(?:{_ADDRESS}|{_PHRASE}<{_SPACE}{_ADDRESS}>){_SPACE}(?:\([^()\\]*\){_SPACE})*"


@cache
def _email_pattern() -> re.Pattern[str]:
    """Compiled by its first user: with all those characters it takes as long as loading a room."""
    return re.compile(_EMAIL)


def is_ipv4(text: str) -> bool:
    """An address with a dot in it: leading zeros are fine, and so is an IPv6 address that ends in an IPv4 one."""
    return "." in text and (_is_dotted(text) or _is_sloppy_ipv6(text))


def is_ipv6(text: str) -> bool:
    if "%" in text:
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def is_cidr(text: str) -> bool:
    address, slash, mask = text.partition("/")
    if not slash:
        return False
    if _is_dotted(address):
        return _is_at_most(mask, ipaddress.IPV4LENGTH)
    return _is_sloppy_ipv6(address) and _is_at_most(mask, ipaddress.IPV6LENGTH)


def is_mac(text: str) -> bool:
    return _MAC.fullmatch(text) is not None


def is_email(text: str) -> bool:
    """An address as in a mail's header, with or without a name; comments may follow it."""
    match = _email_pattern().fullmatch(text)
    if match is None:
        return False
    literal = match[1] if match[1] is not None else match[2]
    return literal is None or _is_dotted(literal) or is_ipv6(literal)


def _is_dotted(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(_is_at_most(part, _MAX_OCTET) for part in parts)


def _is_at_most(digits: str, limit: int) -> bool:
    return bool(_DIGITS.fullmatch(digits)) and len(digits.lstrip("0")) <= _SMALL_DIGITS and int(digits[-4:]) <= limit


def _is_sloppy_ipv6(text: str) -> bool:
    """IPv6, whose last part may be an IPv4 address with leading zeros."""
    head, colon, tail = text.rpartition(":")
    if "." not in tail:
        return is_ipv6(text)
    return _is_dotted(tail) and is_ipv6(f"{head}{colon}{'.'.join(str(int(part)) for part in tail.split('.'))}")
