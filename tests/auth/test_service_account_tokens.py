"""Tokens of service accounts: issued, shown, refused."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth import service_account_tokens, x509
from kcp.auth.identity import Identity, InvalidToken
from kcp.auth.service_account_tokens import LEGACY_ISSUER, Bound, ServiceAccountTokens, cluster_of_token
from kcp.auth.signing import KeyRing
from kcp.auth.user import UserInfo
from kcp.meta import wellknown
from kcp.meta.clock import format_time
from kcp.meta.fake_clock import FakeClock
from tests.auth.cluster_objects import FakeReader, secret, service_account

if TYPE_CHECKING:
    from kcp.meta.codec import Object

ISSUER = "https://kcp.default.svc"
KEYS = KeyRing(x509.make_key())
# The header {"alg":"ES256"} and the claims {"iss":["x"]}.
UNSIGNED = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOlsieCJdfQ.eA"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def reader() -> FakeReader:
    reader = FakeReader()
    reader.add("c1", "", "serviceaccounts", service_account())
    reader.add("c1", "", "secrets", secret())
    return reader


@pytest.fixture
def tokens(reader: FakeReader, clock: FakeClock) -> ServiceAccountTokens:
    return ServiceAccountTokens(KEYS, reader, clock, [ISSUER, "https://old"])


def claims_of(token: str) -> dict[str, Any]:
    text = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def issue(tokens: ServiceAccountTokens, seconds: int = 3600, bound: Bound | None = None) -> str:
    return tokens.issue("c1", service_account(), [ISSUER], seconds, bound)


def refusal(tokens: ServiceAccountTokens, token: str) -> str:
    with pytest.raises(InvalidToken) as caught:
        tokens.authenticate_token(token, "c1", [ISSUER])
    return str(caught.value)


def test_claims_are_those_of_kubernetes(tokens: ServiceAccountTokens, clock: FakeClock) -> None:
    claims = claims_of(issue(tokens, 1200, Bound("secret", "s", "uid-s")))
    now = int(clock.now().timestamp())
    assert claims.pop("jti")
    assert claims == {
        "aud": [ISSUER],
        "exp": now + 1200,
        "iat": now,
        "iss": ISSUER,
        "kubernetes.io": {
            "namespace": "ns",
            "secret": {"name": "s", "uid": "uid-s"},
            "serviceaccount": {"name": "bot", "uid": "uid-1"},
        },
        "nbf": now,
        "sub": "system:serviceaccount:ns:bot",
    }


def test_a_token_is_its_service_account(tokens: ServiceAccountTokens) -> None:
    token = issue(tokens)
    extra = {
        wellknown.EXTRA_CLUSTER_NAME: ("c1",),
        wellknown.EXTRA_CREDENTIAL_ID: (f"JTI={claims_of(token)['jti']}",),
    }
    expected = UserInfo("system:serviceaccount:ns:bot", "uid-1", GROUPS, extra)
    for _ in range(2):
        assert tokens.authenticate_token(token, "c1", [ISSUER]) == Identity(expected, (ISSUER,))
    assert cluster_of_token(token) == "c1"


def test_in_another_cluster_a_token_tells_where_it_comes_from(tokens: ServiceAccountTokens) -> None:
    identity = tokens.authenticate_token(issue(tokens), "c2", [ISSUER])
    assert identity is not None
    assert identity.user.groups == (*GROUPS, "system:cluster:c1")
    assert identity.user.extra[wellknown.EXTRA_CLUSTER_NAME] == ("c1",)


def test_a_namesake_in_another_cluster_has_nothing_to_do_with_it(
    tokens: ServiceAccountTokens, reader: FakeReader
) -> None:
    token = issue(tokens)
    reader.add("c2", "", "serviceaccounts", service_account())
    reader.remove("c1", "", "serviceaccounts", "ns", "bot")
    with pytest.raises(InvalidToken, match="not found"):
        tokens.authenticate_token(token, "c2", [ISSUER])


@pytest.mark.parametrize(
    "token",
    ["", "admin", "a.b.c", KEYS.sign({"iss": "https://elsewhere"}), UNSIGNED, KEYS.sign({})],
    ids=["empty", "word", "dots", "another issuer", "odd issuer", "no issuer"],
)
def test_tokens_of_other_kinds_are_not_judged(tokens: ServiceAccountTokens, token: str) -> None:
    assert tokens.authenticate_token(token, "c1", [ISSUER]) is None


def test_a_token_signed_by_others_is_refused(
    tokens: ServiceAccountTokens, reader: FakeReader, clock: FakeClock
) -> None:
    others = ServiceAccountTokens(KeyRing(x509.make_key()), reader, clock, [ISSUER])
    assert refusal(tokens, issue(others)) == "invalid signature, no keys found"


def test_older_issuers_are_accepted(tokens: ServiceAccountTokens, reader: FakeReader, clock: FakeClock) -> None:
    old = ServiceAccountTokens(KEYS, reader, clock, ["https://old"])
    token = old.issue("c1", service_account(), [ISSUER], 600)
    assert tokens.authenticate_token(token, "c1", [ISSUER]) is not None


@pytest.mark.parametrize(
    ("audiences", "asked", "good_for"),
    [
        pytest.param([ISSUER, "conf"], ["conf", "none"], ("conf",), id="one of two"),
        pytest.param(["b", "a"], ["a", "b"], ("a", "b"), id="in the order asked"),
        pytest.param([], [ISSUER], (ISSUER,), id="none means the server"),
        pytest.param("conf", ["conf"], ("conf",), id="a single text"),
    ],
)
def test_audiences_are_matched(
    tokens: ServiceAccountTokens, audiences: object, asked: list[str], good_for: tuple[str, ...]
) -> None:
    claims = claims_of(issue(tokens)) | {"aud": audiences}
    identity = tokens.authenticate_token(KEYS.sign(claims, {"cluster": "c1"}), "c1", asked)
    assert identity is not None
    assert identity.audiences == good_for


def test_a_token_for_others_is_refused(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue("c1", service_account(), ["a", "b"], 600)
    with pytest.raises(InvalidToken) as caught:
        tokens.authenticate_token(token, "c1", ["none"])
    assert str(caught.value) == 'token audiences ["a" "b"] is invalid for the target audiences ["none"]'


def test_a_token_ends_with_its_time(tokens: ServiceAccountTokens, clock: FakeClock) -> None:
    token = issue(tokens, 600)
    clock.advance(660)
    assert tokens.authenticate_token(token, "c1", [ISSUER]) is not None
    clock.advance(1)
    assert refusal(tokens, token) == "service account token has expired"


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        pytest.param("nbf", "service account token is not valid yet", id="not before"),
        pytest.param("iat", "service account token is issued in the future", id="issued at"),
    ],
)
def test_a_token_from_the_future_is_refused(tokens: ServiceAccountTokens, claim: str, message: str) -> None:
    claims = claims_of(issue(tokens))
    claims[claim] += 120
    assert refusal(tokens, KEYS.sign(claims, {"cluster": "c1"})) == message


def test_a_token_ends_with_its_service_account(tokens: ServiceAccountTokens, reader: FakeReader) -> None:
    token = issue(tokens)
    assert tokens.authenticate_token(token, "c1", [ISSUER])
    reader.add("c1", "", "serviceaccounts", service_account(uid="uid-2"))
    assert refusal(tokens, token) == "service account UID (uid-2) does not match claim (uid-1)"
    reader.remove("c1", "", "serviceaccounts", "ns", "bot")
    assert refusal(tokens, token) == 'serviceaccounts "bot" not found'


def deleted(obj: Object, clock: FakeClock) -> Object:
    return {"metadata": {**obj["metadata"], "deletionTimestamp": format_time(clock.now())}}


def test_a_token_ends_a_minute_after_its_service_account_is_deleted(
    tokens: ServiceAccountTokens, reader: FakeReader, clock: FakeClock
) -> None:
    token = issue(tokens)
    reader.add("c1", "", "serviceaccounts", deleted(service_account(), clock))
    assert tokens.authenticate_token(token, "c1", [ISSUER])
    clock.advance(61)
    assert refusal(tokens, token) == "service account ns/bot has been deleted"


def test_a_token_ends_with_the_secret_it_is_bound_to(
    tokens: ServiceAccountTokens, reader: FakeReader, clock: FakeClock
) -> None:
    token = issue(tokens, bound=Bound("secret", "s", "uid-s"))
    assert tokens.authenticate_token(token, "c1", [ISSUER])
    reader.add("c1", "", "secrets", secret(uid="uid-t"))
    assert refusal(tokens, token) == "secret UID (uid-t) does not match service account secret ref claim (uid-s)"
    reader.add("c1", "", "secrets", deleted(secret(), clock))
    assert tokens.authenticate_token(token, "c1", [ISSUER])
    clock.advance(61)
    assert refusal(tokens, token) == "service account token has been invalidated"
    reader.remove("c1", "", "secrets", "ns", "s")
    assert refusal(tokens, token) == "service account token has been invalidated"


@pytest.mark.parametrize("kind", ["pod", "node"])
def test_a_token_bound_to_what_does_not_exist_here_is_refused(tokens: ServiceAccountTokens, kind: str) -> None:
    assert refusal(tokens, issue(tokens, bound=Bound(kind, "p", "u"))) == "service account token has been invalidated"


def test_kcps_claim_names_the_cluster_too(tokens: ServiceAccountTokens) -> None:
    claims = claims_of(issue(tokens))
    assert refusal(tokens, KEYS.sign(claims)) == "cluster is missing"
    claims["kubernetes.io"]["clusterName"] = "c1"
    token = KEYS.sign(claims)
    assert tokens.authenticate_token(token, "c1", [ISSUER])
    assert cluster_of_token(token) == "c1"


@pytest.mark.parametrize("token", ["x", KEYS.sign({"kubernetes.io": "x"})], ids=["word", "without"])
def test_other_tokens_name_no_cluster(token: str) -> None:
    assert cluster_of_token(token) is None


@pytest.mark.parametrize("private", ["x", {"serviceaccount": 1}], ids=["text", "number"])
def test_odd_claims_are_refused(tokens: ServiceAccountTokens, private: object) -> None:
    claims = claims_of(issue(tokens)) | {"kubernetes.io": private}
    assert refusal(tokens, KEYS.sign(claims, {"cluster": "c1"})) == 'serviceaccounts "" not found'


def test_few_tokens_are_remembered(tokens: ServiceAccountTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_account_tokens, "_MAX_KNOWN", 2)
    for _ in range(3):
        for token in [issue(tokens) for _ in range(3)]:
            assert tokens.authenticate_token(token, "c1", [ISSUER])
    assert len(tokens._known) == 2


def test_relying_parties_find_what_they_need(tokens: ServiceAccountTokens) -> None:
    assert tokens.openid_configuration("https://host/openid/v1/jwks") == {
        "issuer": ISSUER,
        "jwks_uri": "https://host/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    assert tokens.jwks() == KEYS.jwks()


def legacy(tokens: ServiceAccountTokens, reader: FakeReader, **metadata: object) -> str:
    token = tokens.issue_legacy("c1", service_account(), secret())
    stored = {"token": base64.b64encode(token.encode()).decode()}
    reader.add("c1", "", "secrets", {"metadata": {**secret()["metadata"], **metadata}, "data": stored})
    return token


def test_a_token_from_a_secret_is_its_service_account(tokens: ServiceAccountTokens, reader: FakeReader) -> None:
    token = legacy(tokens, reader)
    assert claims_of(token) == {
        "iss": LEGACY_ISSUER,
        "kubernetes.io/serviceaccount/namespace": "ns",
        "kubernetes.io/serviceaccount/secret.name": "s",
        "kubernetes.io/serviceaccount/service-account.name": "bot",
        "kubernetes.io/serviceaccount/service-account.uid": "uid-1",
        "sub": "system:serviceaccount:ns:bot",
    }
    user = UserInfo("system:serviceaccount:ns:bot", "uid-1", GROUPS, {wellknown.EXTRA_CLUSTER_NAME: ("c1",)})
    assert tokens.authenticate_token(token, "c1", [ISSUER]) == Identity(user, (ISSUER,))


def test_a_token_from_a_secret_ends_with_it(tokens: ServiceAccountTokens, reader: FakeReader, clock: FakeClock) -> None:
    token = legacy(tokens, reader, deletionTimestamp=format_time(clock.now()))
    assert refusal(tokens, token) == "Token has been invalidated"
    reader.add("c1", "", "secrets", secret())
    assert refusal(tokens, token) == "Token does not match server's copy"
    reader.remove("c1", "", "secrets", "ns", "s")
    assert refusal(tokens, token) == "Token has been invalidated"


def test_a_token_from_a_secret_may_be_marked_invalid(tokens: ServiceAccountTokens, reader: FakeReader) -> None:
    token = legacy(tokens, reader, labels={"kubernetes.io/legacy-token-invalid-since": "2024-01-01"})
    assert "the token in secret ns/s for service account ns/bot has been marked invalid" in refusal(tokens, token)


def test_a_token_from_a_secret_ends_with_its_service_account(
    tokens: ServiceAccountTokens, reader: FakeReader, clock: FakeClock
) -> None:
    token = legacy(tokens, reader)
    reader.add("c1", "", "serviceaccounts", service_account(uid="uid-2"))
    assert refusal(tokens, token) == "ServiceAccount UID (uid-2) does not match claim (uid-1)"
    reader.add("c1", "", "serviceaccounts", deleted(service_account(), clock))
    assert refusal(tokens, token) == "ServiceAccount ns/bot has been deleted"


@pytest.mark.parametrize(
    ("claim", "value", "message"),
    [
        ("sub", None, "sub claim is missing"),
        ("sub", "system:serviceaccount:ns:other", "sub claim is invalid"),
        ("kubernetes.io/serviceaccount/namespace", "", "namespace claim is missing"),
        ("kubernetes.io/serviceaccount/secret.name", 1, "secretName claim is missing"),
        ("kubernetes.io/serviceaccount/service-account.name", None, "serviceAccountName claim is missing"),
        ("kubernetes.io/serviceaccount/service-account.uid", None, "serviceAccountUID claim is missing"),
    ],
)
def test_a_token_from_a_secret_has_all_its_claims(
    tokens: ServiceAccountTokens, reader: FakeReader, claim: str, value: object, message: str
) -> None:
    claims = claims_of(legacy(tokens, reader)) | {claim: value}
    assert refusal(tokens, KEYS.sign(claims, {"cluster": "c1"})) == message
