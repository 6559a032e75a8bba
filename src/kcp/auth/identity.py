"""What authenticators find out, and the two things that all of them do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from kcp.auth.user import UserInfo
from kcp.meta import wellknown

if TYPE_CHECKING:
    from collections.abc import Sequence


class Identity(NamedTuple):
    """A user, and for which of the audiences that were asked about the credential is good."""

    user: UserInfo
    audiences: tuple[str, ...] = ()


class InvalidToken(Exception):
    """A token of a kind that the authenticator knows, but not a good one. The text is for TokenReview only."""


class TokenAuthenticator(Protocol):
    """Knows one kind of bearer token, without waiting for anybody."""

    def authenticate_token(self, token: str, cluster: str, audiences: Sequence[str]) -> Identity | None:
        """Whose token this is; None if it is of another kind. Raises InvalidToken.

        `cluster` is where it is shown; `audiences` are those of whom one must be meant.
        """
        ...


class RemoteTokenAuthenticator(Protocol):
    """Knows one kind of bearer token, but may have to ask somebody else first."""

    async def authenticate_token(self, token: str, cluster: str, audiences: Sequence[str]) -> Identity | None:
        """As for TokenAuthenticator."""
        ...


def with_authenticated_group(user: UserInfo) -> UserInfo:
    """The user with system:authenticated, unless anonymous or marked already."""
    marks = {wellknown.GROUP_AUTHENTICATED, wellknown.GROUP_UNAUTHENTICATED}
    if user.name == wellknown.USER_ANONYMOUS or not marks.isdisjoint(user.groups):
        return user
    return UserInfo(user.name, user.uid, (*user.groups, wellknown.GROUP_AUTHENTICATED), user.extra)


def intersect(found: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """The audiences in both, in the order of the wanted."""
    return tuple(audience for audience in wanted if audience in found)
