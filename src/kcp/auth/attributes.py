"""What a request wants to do, in the words of authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kcp.auth.user import UserInfo


class Attributes(NamedTuple):
    """One question to the authorizer. `cluster` is `*` for a request over all logical clusters."""

    user: UserInfo
    verb: str  # get, list, watch, create, update, patch, delete, deletecollection; lower-case HTTP method for a path
    cluster: str
    group: str = ""
    version: str = ""
    resource: str = ""  # empty: a non-resource request for `path`
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""
