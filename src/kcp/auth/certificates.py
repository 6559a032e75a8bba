"""Client certificates as identities: the common name is the user, the organizations are the groups.

Whether the certificate was signed by an authority that we trust is for TLS to say, before it gets here.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from kcp.auth import x509
from kcp.auth.identity import with_authenticated_group
from kcp.auth.user import UserInfo
from kcp.meta import wellknown

if TYPE_CHECKING:
    from datetime import datetime

    from kcp.meta.clock import Clock

_MAX_KNOWN: Final = 1024  # certificates whose reading is remembered; reading one takes about 20 microseconds


class ClientCertificates:
    """Reads verified certificates. A connection may outlive its certificate, so each use looks at its end again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[bytes, tuple[UserInfo | None, datetime]] = {}

    def find(self, der: bytes) -> UserInfo | None:
        """The user; None without a common name. Raises ValueError for what is expired or cannot be read."""
        known = self._known.get(der)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[der] = _read(der)
        user, not_after = known
        if self._clock.now() > not_after:
            raise ValueError(f"the certificate expired at {not_after}")
        return user


def _read(der: bytes) -> tuple[UserInfo | None, datetime]:
    common_name, organizations, not_after = x509.subject_of(der)
    if not common_name:
        return None, not_after
    uids = x509.uids_of(der)
    if len(uids) > 1:
        raise ValueError(f"expected 1 UID, but found multiple: {uids}")
    if uids == ("",):
        raise ValueError("UID cannot be an empty string")
    extra = {wellknown.EXTRA_CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    user = UserInfo(common_name, uids[0] if uids else "", organizations, extra)
    return with_authenticated_group(user), not_after
