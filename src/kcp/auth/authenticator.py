"""Who is asking: the union of all ways to prove it, in Kubernetes' order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.auth.identity import Identity, InvalidToken, with_authenticated_group
from kcp.auth.rbac import join_errors
from kcp.auth.user import UserInfo
from kcp.meta import errors, wellknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.auth.certificates import ClientCertificates
    from kcp.auth.identity import RemoteTokenAuthenticator, TokenAuthenticator

ANONYMOUS: Final = UserInfo(wellknown.USER_ANONYMOUS, groups=(wellknown.GROUP_UNAUTHENTICATED,))

_INVALID_TOKEN: Final = "invalid bearer token"


class Credentials(NamedTuple):
    """What a request shows of its sender."""

    cluster: str  # where it is shown
    bearer_token: str = ""
    certificate_der: bytes = b""  # verified by TLS


class Authenticator:
    """Client certificate first, then bearer token, then nobody. Bad credentials are refused, not taken for nobody.

    `tokens` are asked in their order, then `remote_tokens`; both lists may grow.
    """

    def __init__(
        self,
        api_audiences: Sequence[str],
        *,
        certificates: ClientCertificates | None = None,
        tokens: Sequence[TokenAuthenticator] = (),
        remote_tokens: Sequence[RemoteTokenAuthenticator] = (),
        anonymous: bool = True,
    ) -> None:
        self.api_audiences = tuple(api_audiences)
        self.tokens = list(tokens)
        self.remote_tokens = list(remote_tokens)
        self._certificates = certificates
        self._anonymous = anonymous

    def authenticate_now(self, credentials: Credentials) -> UserInfo | None:
        """The user, where nobody else has to be asked; else None. Raises Unauthorized."""
        user, refused = self._by_certificate(credentials.certificate_der)
        if user is not None:
            return user
        token = credentials.bearer_token
        if token:
            identity, _ = self._by_token(token, credentials.cluster, self.api_audiences)
            if identity is not None:
                return identity.user
            if self.remote_tokens:
                return None
            raise errors.Unauthorized()
        if refused or not self._anonymous:
            raise errors.Unauthorized()
        return ANONYMOUS

    async def authenticate(self, credentials: Credentials) -> UserInfo:
        """The user; system:anonymous for no credentials, if that is allowed. Raises Unauthorized."""
        user = self.authenticate_now(credentials)
        if user is not None:
            return user
        identity, _ = await self._by_remote_token(credentials.bearer_token, credentials.cluster, self.api_audiences)
        if identity is None:
            raise errors.Unauthorized()
        return identity.user

    async def review(self, token: str, cluster: str, audiences: Sequence[str]) -> tuple[Identity | None, str]:
        """Whose token this is, or what is wrong with it, for TokenReview."""
        identity, complaints = self._by_token(token, cluster, audiences)
        if identity is None and self.remote_tokens:
            identity, more = await self._by_remote_token(token, cluster, audiences)
            complaints += more
        if identity is not None:
            return identity, ""
        # The first is what kube-apiserver's authenticator for its own loopback token says of all others.
        return None, join_errors([_INVALID_TOKEN, *(complaints or [_INVALID_TOKEN])])

    def _by_certificate(self, der: bytes) -> tuple[UserInfo | None, bool]:
        """The user, or whether the certificate was refused."""
        if not der or self._certificates is None:
            return None, False
        try:
            return self._certificates.find(der), False
        except ValueError:
            return None, True

    def _by_token(self, token: str, cluster: str, audiences: Sequence[str]) -> tuple[Identity | None, list[str]]:
        complaints: list[str] = []
        for authenticator in self.tokens:
            try:
                identity = authenticator.authenticate_token(token, cluster, audiences)
            except InvalidToken as error:
                complaints.append(str(error))
                continue
            if identity is not None:
                return identity, complaints
        return None, complaints

    async def _by_remote_token(
        self, token: str, cluster: str, audiences: Sequence[str]
    ) -> tuple[Identity | None, list[str]]:
        complaints: list[str] = []
        for authenticator in self.remote_tokens:
            try:
                identity = await authenticator.authenticate_token(token, cluster, audiences)
            except InvalidToken as error:
                complaints.append(str(error))
                continue
            if identity is not None:
                return identity._replace(user=with_authenticated_group(identity.user)), complaints
        return None, complaints
