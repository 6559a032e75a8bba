"""Bearer tokens that are known beforehand: the admins' own, and those of a token file.

Only digests are kept. A look-up compares digests, so that how long it takes tells nothing about the tokens.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
from typing import TYPE_CHECKING, Final

from kcp.auth.identity import Identity, intersect, with_authenticated_group
from kcp.auth.user import UserInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kcp.meta.clock import Clock

_log: Final = logging.getLogger(__name__)
_CHECK_INTERVAL: Final = 5.0  # seconds between looks at the token file


def digest_of(token: str) -> bytes:
    # A token cannot hold half a surrogate pair, but a header decoded by somebody else might.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class StaticTokens:
    """Tokens given at the start, by their SHA-256 digests. They are good for the server's own audiences."""

    def __init__(self, users: Mapping[bytes, UserInfo], api_audiences: Sequence[str] = ()) -> None:
        self._api_audiences = tuple(api_audiences)
        self._users: dict[bytes, UserInfo] = {}
        self.replace(users)

    def replace(self, users: Mapping[bytes, UserInfo]) -> None:
        self._users = {digest: with_authenticated_group(user) for digest, user in users.items()}

    def find(self, token: str) -> UserInfo | None:
        """Whose token this is, for the server itself."""
        return self._users.get(hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest())

    def authenticate_token(self, token: str, cluster: str, audiences: Sequence[str]) -> Identity | None:
        user = self.find(token)
        if user is None:
            return None
        good_for = intersect(self._api_audiences, audiences)
        return Identity(user, good_for) if good_for or not self._api_audiences else None


class TokenFile:
    """The CSV file of `--token-auth-file`: token, user name, uid and, in quotes, groups. Read again when it changes."""

    def __init__(self, path: Path, clock: Clock, api_audiences: Sequence[str] = ()) -> None:
        """Raises ValueError if the file is not such a file, OSError if it cannot be read."""
        self._path = path
        self._clock = clock
        self._version = self._look()
        self._tokens = StaticTokens(parse_token_file(path.read_text(), str(path)), api_audiences)
        self._next_look = clock.monotonic() + _CHECK_INTERVAL

    def find(self, token: str) -> UserInfo | None:
        if self._clock.monotonic() >= self._next_look:
            self._refresh()
        return self._tokens.find(token)

    def authenticate_token(self, token: str, cluster: str, audiences: Sequence[str]) -> Identity | None:
        if self._clock.monotonic() >= self._next_look:
            self._refresh()
        return self._tokens.authenticate_token(token, cluster, audiences)

    def _refresh(self) -> None:
        """A file that cannot be used changes nothing: the tokens that were good stay so."""
        self._next_look = self._clock.monotonic() + _CHECK_INTERVAL
        try:
            version = self._look()
            if version == self._version:
                return
            self._tokens.replace(parse_token_file(self._path.read_text(), str(self._path)))
        except (OSError, ValueError) as error:
            _log.warning("the token file could not be read again, the old tokens stay valid: %s", error)
            return
        self._version = version

    def _look(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino


def parse_token_file(text: str, path: str) -> dict[bytes, UserInfo]:
    """The users of a token file by the digests of their tokens. The last of several lines for a token counts."""
    users = {}
    try:
        records = [record for record in csv.reader(io.StringIO(text), strict=True) if record]
    except csv.Error as error:
        raise ValueError(f"token file '{path}' is not a CSV file: {error}") from error
    for number, record in enumerate(records, start=1):
        if len(record) < 3:
            columns = "must have at least 3 columns (token, user name, user uid)"
            raise ValueError(f"token file '{path}' {columns}, found {len(record)}")
        token, name, uid = record[:3]
        if not token:
            _log.warning("empty token has been found in token file '%s', record number '%d'", path, number)
            continue
        digest = digest_of(token)
        if digest in users:
            _log.warning("duplicate token has been found in token file '%s', record number '%d'", path, number)
        users[digest] = UserInfo(name, uid, tuple(record[3].split(",")) if len(record) > 3 else ())
    return users
