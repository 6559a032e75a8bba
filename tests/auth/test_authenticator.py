"""The union of all ways to say who one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.auth import x509
from kcp.auth.authenticator import ANONYMOUS, Authenticator, Credentials
from kcp.auth.certificates import ClientCertificates
from kcp.auth.identity import Identity, InvalidToken
from kcp.auth.tokens import StaticTokens, digest_of
from kcp.auth.user import UserInfo
from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

API = ["api"]
ADMIN = UserInfo("admin", groups=("system:authenticated",))
STATIC = StaticTokens({digest_of("good"): ADMIN}, API)


class PickyTokens:
    """Refuses tokens that begin with `bad` and knows nothing of others."""

    def authenticate_token(self, token: str, cluster: str, audiences: Sequence[str]) -> Identity | None:
        if token.startswith("bad"):
            raise InvalidToken(f"{token} in {cluster}")
        return None


class RemoteTokens:
    async def authenticate_token(self, token: str, cluster: str, audiences: Sequence[str]) -> Identity | None:
        if token == "bad remote":
            raise InvalidToken("remote says no")
        return Identity(UserInfo("far"), tuple(audiences)) if token == "remote" else None


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def certificate(clock: FakeClock, common_name: str = "jane") -> bytes:
    key = x509.make_key()
    return x509.certificate_to_der(x509.make_ca(common_name, key, 1, clock.now()))


async def test_nobody_is_anonymous() -> None:
    assert await Authenticator(API).authenticate(Credentials("c1")) is ANONYMOUS


async def test_nobody_may_be_unwanted() -> None:
    with pytest.raises(errors.Unauthorized, match=r"^Unauthorized$"):
        await Authenticator(API, anonymous=False).authenticate(Credentials("c1"))


async def test_a_token_is_its_user() -> None:
    authenticator = Authenticator(API, tokens=[PickyTokens(), STATIC])
    assert await authenticator.authenticate(Credentials("c1", "good")) == ADMIN


@pytest.mark.parametrize("token", ["wrong", "bad"])
async def test_a_bad_token_is_not_taken_for_nobody(token: str) -> None:
    with pytest.raises(errors.Unauthorized):
        await Authenticator(API, tokens=[PickyTokens(), STATIC]).authenticate(Credentials("c1", token))


async def test_a_certificate_goes_before_a_token(clock: FakeClock) -> None:
    authenticator = Authenticator(API, certificates=ClientCertificates(clock), tokens=[STATIC])
    found = await authenticator.authenticate(Credentials("c1", "good", certificate(clock)))
    assert (found.name, found.groups) == ("jane", ("system:authenticated",))


async def test_an_expired_certificate_leaves_the_token(clock: FakeClock) -> None:
    authenticator = Authenticator(API, certificates=ClientCertificates(clock), tokens=[STATIC])
    der = certificate(clock)
    clock.advance(10 * 24 * 3600)
    assert await authenticator.authenticate(Credentials("c1", "good", der)) == ADMIN
    with pytest.raises(errors.Unauthorized):
        await authenticator.authenticate(Credentials("c1", "", der))


async def test_certificates_may_not_count(clock: FakeClock) -> None:
    assert await Authenticator(API).authenticate(Credentials("c1", "", certificate(clock))) is ANONYMOUS


async def test_others_are_asked_last() -> None:
    authenticator = Authenticator(API, tokens=[PickyTokens(), STATIC], remote_tokens=[RemoteTokens()])
    assert authenticator.authenticate_now(Credentials("c1", "good")) == ADMIN
    assert authenticator.authenticate_now(Credentials("c1", "remote")) is None
    found = await authenticator.authenticate(Credentials("c1", "remote"))
    assert found == UserInfo("far", groups=("system:authenticated",))
    for token in ("bad", "bad remote", "wrong"):
        with pytest.raises(errors.Unauthorized):
            await authenticator.authenticate(Credentials("c1", token))


@pytest.mark.parametrize(
    ("token", "complaint"),
    [
        pytest.param("wrong", "invalid bearer token", id="unknown"),
        pytest.param("bad", "[invalid bearer token, bad in c1]", id="refused"),
        pytest.param("bad remote", "[invalid bearer token, bad remote in c1, remote says no]", id="refused twice"),
    ],
)
async def test_a_review_says_what_is_wrong(token: str, complaint: str) -> None:
    authenticator = Authenticator(API, tokens=[PickyTokens(), STATIC], remote_tokens=[RemoteTokens()])
    assert await authenticator.review(token, "c1", API) == (None, complaint)


async def test_a_review_says_whose_it_is() -> None:
    authenticator = Authenticator(API, tokens=[STATIC], remote_tokens=[RemoteTokens()])
    assert await authenticator.review("good", "c1", API) == (Identity(ADMIN, ("api",)), "")
    found, _ = await authenticator.review("remote", "c1", ["x"])
    assert found == Identity(UserInfo("far", groups=("system:authenticated",)), ("x",))


@pytest.mark.parametrize(
    "user", [UserInfo("system:anonymous"), UserInfo("x", groups=("system:unauthenticated",))], ids=["nobody", "marked"]
)
async def test_some_do_not_become_authenticated(user: UserInfo) -> None:
    authenticator = Authenticator(API, tokens=[StaticTokens({digest_of("t"): user}, API)])
    assert await authenticator.authenticate(Credentials("c1", "t")) == user
