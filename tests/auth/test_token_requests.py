"""Tokens on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.auth import x509
from kcp.auth.service_account_tokens import ServiceAccountTokens
from kcp.auth.signing import KeyRing, read_unverified
from kcp.auth.token_requests import TokenRequests
from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from tests.auth.cluster_objects import FakeReader, secret, service_account

if TYPE_CHECKING:
    from kcp.meta.codec import Object

ISSUER = "https://kcp.default.svc"
KEYS = KeyRing(x509.make_key())


@pytest.fixture
def requests() -> TokenRequests:
    reader, clock = FakeReader(), FakeClock()
    reader.add("c1", "", "serviceaccounts", service_account())
    reader.add("c1", "", "secrets", secret())
    return TokenRequests(ServiceAccountTokens(KEYS, reader, clock, [ISSUER]), reader, clock)


def ask(requests: TokenRequests, request: Object, name: str = "bot") -> Object:
    return requests.issue("c1", requests.prepare("c1", "ns", name, request))


def refusal(requests: TokenRequests, request: Object, name: str = "bot") -> errors.StatusError:
    with pytest.raises(errors.StatusError) as caught:
        ask(requests, request, name)
    return caught.value


def test_an_empty_request_gets_a_token_of_an_hour_for_the_server(requests: TokenRequests) -> None:
    answer = ask(requests, {"spec": {}})
    token = answer["status"].pop("token")
    assert answer == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": "bot", "namespace": "ns", "uid": "uid-1", "creationTimestamp": "2025-01-01T00:00:00Z"},
        "spec": {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None},
        "status": {"expirationTimestamp": "2025-01-01T01:00:00Z"},
    }
    claimed = read_unverified(token)
    assert claimed is not None
    assert claimed.claims["exp"] - claimed.claims["iat"] == 3600


def test_a_request_says_what_it_wants(requests: TokenRequests) -> None:
    ref = {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "uid-s"}
    spec = {"audiences": ["conf"], "expirationSeconds": 1200, "boundObjectRef": ref}
    metadata = {"name": "bot", "namespace": "ns", "uid": "uid-1"}
    answer = ask(requests, {"metadata": metadata, "spec": spec})
    claimed = read_unverified(answer["status"]["token"])
    assert claimed is not None
    assert claimed.claims["aud"] == ["conf"]
    assert claimed.claims["kubernetes.io"]["secret"] == {"name": "s", "uid": "uid-s"}
    assert answer["spec"] == spec


@pytest.mark.parametrize(
    ("request_body", "code", "message"),
    [
        pytest.param(
            {"spec": {"expirationSeconds": 599}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not '
            "specify a duration less than 10 minutes",
            id="too short",
        ),
        pytest.param(
            {"spec": {"expirationSeconds": 1 << 33}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 8589934592: may '
            "not specify a duration larger than 2^32 seconds",
            id="too long",
        ),
        pytest.param(
            {"metadata": {"name": "other"}, "spec": {}},
            422,
            'TokenRequest.authentication.k8s.io "bot" is invalid: metadata.name: Invalid value: "other": must match '
            "the service account name if specified",
            id="another name",
        ),
        pytest.param(
            {"metadata": {"namespace": "other"}, "spec": {}},
            422,
            'TokenRequest.authentication.k8s.io "bot" is invalid: metadata.namespace: Invalid value: "other": must '
            "match the service account namespace if specified",
            id="another namespace",
        ),
        pytest.param(
            {"metadata": {"uid": "other"}, "spec": {}},
            409,
            'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "bot": the UID in the token request '
            "(other) does not match the UID of the service account (uid-1)",
            id="another uid",
        ),
        pytest.param(
            {"spec": {"boundObjectRef": {"kind": "ConfigMap", "name": "x"}}},
            400,
            "cannot bind token to object of type /, Kind=ConfigMap",
            id="bound to a kind that cannot be",
        ),
        pytest.param(
            {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "a/v1", "name": "x"}}},
            400,
            "cannot bind token to object of type a/v1, Kind=Secret",
            id="bound to a kind of another group",
        ),
        pytest.param(
            {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "a/b/c", "name": "none"}}},
            404,
            'secrets "none" not found',
            id="bound to nothing, with an odd version",
        ),
        pytest.param(
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}},
            404,
            'pods "p" not found',
            id="bound to a pod",
        ),
        pytest.param(
            {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "other"}}},
            409,
            'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (other) does not match '
            "the UID in record. The object might have been deleted and then recreated",
            id="bound to another of the name",
        ),
    ],
)
def test_bad_requests_are_refused(requests: TokenRequests, request_body: Object, code: int, message: str) -> None:
    error = refusal(requests, request_body)
    assert (error.code, error.message) == (code, message)


def test_there_must_be_a_service_account(requests: TokenRequests) -> None:
    assert refusal(requests, {"spec": {}}, "none").message == 'serviceaccounts "none" not found'
