"""Addresses as Go's net/url reads them, as far as it matters whether it would."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
# What may stand in a host besides letters and digits: net/url's shouldEscape for encodeHost.
_HOST: Final = re.compile("[A-Za-z0-9\\-_.~!$&'()*+,;=:\\]<>\"%\u0080-\U0010ffff]*")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile(r"(?::[0-9]*)?")


class UrlParts(NamedTuple):
    scheme: str
    user: str | None
    host: str
    path: str


def parse_request_uri(text: str) -> UrlParts | None:
    """url.ParseRequestURI: an absolute address or an absolute path; None if it is neither."""
    if not text or any(char < " " or char == "\x7f" for char in text):
        return None
    if text == "*":
        return UrlParts("", None, "", "*")
    split = _split_scheme(text)
    if split is None:
        return None
    scheme, rest = split
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        # An opaque address such as `mailto:x` is fine, a relative one is not.
        return UrlParts(scheme, None, "", rest) if scheme else None
    user, host = None, ""
    if rest.startswith("//") and scheme:
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        parsed = _parse_authority(authority)
        if parsed is None:
            return None
        user, host = parsed
    return None if _BAD_ESCAPE.search(rest) else UrlParts(scheme, user, host, rest)


def _split_scheme(text: str) -> tuple[str, str] | None:
    """net/url's getScheme: a colon in front means a missing scheme; other signs mean there is none."""
    if text.startswith(":"):
        return None
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("", text)


def _parse_authority(authority: str) -> tuple[str | None, str] | None:
    user, at, host = authority.rpartition("@")
    if at and (not _USER.fullmatch(user) or _BAD_ESCAPE.search(user)):
        return None
    return (user if at else None, host) if _is_host(host) else None


def _is_host(host: str) -> bool:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0 or not _PORT.fullmatch(host[end + 1 :]):
            return False
        return _is_bracketed(host[1:end])
    _, colon, port = host.rpartition(":")
    if colon and not _PORT.fullmatch(":" + port):
        return False
    return bool(_HOST.fullmatch(host)) and not _BAD_ESCAPE.search(host) and not _escapes_ascii(host)


def _is_bracketed(address: str) -> bool:
    address, _, _zone = address.partition("%25")
    if "%" in address:
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


def _escapes_ascii(host: str) -> bool:
    """In a host only bytes beyond ASCII may be escaped."""
    return any(int(match, 16) < 0x80 for match in re.findall(r"%([0-9A-Fa-f]{2})", host))
