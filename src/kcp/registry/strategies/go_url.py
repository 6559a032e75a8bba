"""URLs as Go's net/url reads them, as far as a webhook's address needs it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kcp.meta.gotext import quote

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
# In a host only bytes beyond ASCII may be escaped, and the percent sign itself.
_HOST_ESCAPE: Final = re.compile(r"%(?![89A-Fa-f][0-9A-Fa-f]|25).{0,2}", re.DOTALL)
_PORT: Final = re.compile(r":[0-9]*")
_HOST_CHARACTER: Final = re.compile(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")


class URLError(ValueError):
    """The text is no URL; the message is Go's."""


class URL(NamedTuple):
    scheme: str = ""
    user: str | None = None
    host: str = ""
    query: str = ""
    fragment: str = ""


def parse(text: str) -> URL:
    """Read a URL. Raises URLError."""
    try:
        return _parse(text)
    except URLError as error:
        raise URLError(f"parse {quote(text)}: {error}") from None


def _parse(text: str) -> URL:
    rest, _, fragment = text.partition("#")
    if any(character < " " or character == "\x7f" for character in rest):
        raise URLError("net/url: invalid control character in URL")
    if rest.startswith(":"):
        raise URLError("missing protocol scheme")
    found = _SCHEME.match(rest)
    scheme = found[0][:-1].lower() if found else ""
    rest = rest[found.end() :] if found else rest
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme, query=query, fragment=fragment)
        if ":" in rest.partition("/")[0]:
            raise URLError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith("//") and not rest.startswith("///"):
        authority, slash, path = rest[2:].partition("/")
        user, host = _parse_authority(authority)
        rest = slash + path
    for part in (rest, fragment):
        if wrong := _ESCAPE.search(part):
            raise URLError(f"invalid URL escape {quote(wrong[0])}")
    return URL(scheme, user, host, query, fragment)


def _parse_authority(authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise URLError("net/url: invalid userinfo")
    port = host[host.rfind("]") + 1 :] if host.startswith("[") else host[host.rfind(":") :] if ":" in host else ""
    if host.startswith("[") and "]" not in host:
        raise URLError("missing ']' in host")
    if port and not _PORT.fullmatch(port):
        raise URLError(f"invalid port {quote(port)} after host")
    if wrong := _ESCAPE.search(user) or _HOST_ESCAPE.search(host):
        raise URLError(f"invalid URL escape {quote(wrong[0])}")
    if wrong := _HOST_CHARACTER.search(host):
        raise URLError(f"invalid character {quote(wrong[0])} in host name")
    return (user.replace("@", "%40") if at else None), host
