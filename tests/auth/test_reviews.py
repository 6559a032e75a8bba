"""Answers to reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.auth import reviews, x509
from kcp.auth.authenticator import Authenticator
from kcp.auth.authorizer import Authorizer
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.service_account_tokens import ServiceAccountTokens
from kcp.auth.signing import KeyRing
from kcp.auth.user import UserInfo
from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from tests.auth.cluster_objects import FakeReader, allow, allow_urls, service_account, user

if TYPE_CHECKING:
    from kcp.meta.codec import Object

ISSUER = "https://kcp.default.svc"
JANE = UserInfo("jane", groups=("only-group", "system:authenticated"))
KEYS = KeyRing(x509.make_key())


@pytest.fixture
def reader() -> FakeReader:
    reader = FakeReader()
    reader.role("c1", "ns", "r", allow("get list", "configmaps"), allow("get", "secrets", names="one"))
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    return reader


@pytest.fixture
def authorizer(reader: FakeReader) -> Authorizer:
    return Authorizer(RBACAuthorizer(reader))


def review(kind: str = "SelfSubjectAccessReview", **spec: object) -> Object:
    return {"kind": kind, "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": spec}


def resource(verb: str = "get", name: str = "configmaps", **more: object) -> Object:
    return {"resourceAttributes": {"verb": verb, "resource": name, "namespace": "ns", **more}}


REASON = 'RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "jane"'


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param(resource(), {"allowed": True, "reason": REASON}, id="allowed"),
        pytest.param(resource("delete"), {"allowed": False}, id="another verb"),
        pytest.param(resource(name="secrets"), {"allowed": False}, id="any secret"),
        pytest.param(
            {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "ns", "name": "one"}},
            {"allowed": True, "reason": REASON},
            id="one secret",
        ),
        pytest.param(resource(subresource="status"), {"allowed": False}, id="subresource"),
        pytest.param(
            {"nonResourceAttributes": {"verb": "get", "path": "/api"}},
            {"allowed": False},
            id="path of a cluster she cannot enter",
        ),
        pytest.param({"nonResourceAttributes": {"verb": "get", "path": "/x"}}, {"allowed": False}, id="another path"),
    ],
)
def test_what_may_i_do(authorizer: Authorizer, spec: Object, status: Object) -> None:
    asked = review(**spec)
    assert reviews.review_self_subject_access(authorizer, "c1", JANE, asked) == {**asked, "status": status}
    assert "status" not in asked


def test_the_root_shows_to_all_who_are_known_what_it_serves(authorizer: Authorizer) -> None:
    asked = review(nonResourceAttributes={"verb": "get", "path": "/api"})
    reason = (
        'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" '
        'to Group "system:authenticated"'
    )
    answer = reviews.review_self_subject_access(authorizer, "root", JANE, asked)
    assert answer["status"] == {"allowed": True, "reason": reason}


def test_a_missing_role_is_the_reason(reader: FakeReader, authorizer: Authorizer) -> None:
    reader.bind("c1", "ns", "c", "Role/none", user("joe"))
    answer = reviews.review_self_subject_access(authorizer, "c1", UserInfo("joe"), review(**resource()))
    assert answer["status"] == {"allowed": False, "reason": 'RBAC: role.rbac.authorization.k8s.io "none" not found'}


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        pytest.param({"user": "jane"}, True, id="the user"),
        pytest.param({"groups": ["g"]}, False, id="a group"),
        pytest.param({"groups": ["system:masters"]}, True, id="masters"),
        pytest.param({"user": "jane", "uid": "1", "extra": {"k": ["v"]}}, True, id="with more"),
    ],
)
def test_what_may_they_do(authorizer: Authorizer, subject: Object, allowed: bool) -> None:
    asked = review("SubjectAccessReview", **subject, **resource())
    assert reviews.review_subject_access(authorizer, "c1", asked)["status"]["allowed"] is allowed
    local = {**asked, "metadata": {"namespace": "ns"}}
    assert reviews.review_local_subject_access(authorizer, "c1", "ns", local)["status"]["allowed"] is allowed


def test_a_local_review_is_about_its_namespace(authorizer: Authorizer) -> None:
    with pytest.raises(errors.BadRequest, match="must match namespace: other"):
        reviews.review_local_subject_access(authorizer, "c1", "other", review(user="jane", **resource()))


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        pytest.param({"fieldSelector": {"rawSelector": "a=b"}, "labelSelector": {"rawSelector": "a"}}, None, id="good"),
        pytest.param(
            {"fieldSelector": {"rawSelector": "a"}, "labelSelector": {"rawSelector": "a in"}},
            "spec.resourceAttributes.fieldSelector ignored due to parse error; "
            "spec.resourceAttributes.labelSelector ignored due to parse error",
            id="unreadable texts",
        ),
        pytest.param(
            {
                "fieldSelector": {
                    "requirements": [
                        {"key": "a", "operator": "In", "values": ["b"]},
                        {"key": "a", "operator": "Exists"},
                    ]
                },
                "labelSelector": {
                    "requirements": [
                        {"key": "a", "operator": "In", "values": ["b"]},
                        {"key": "a", "operator": "Like", "values": ["b"]},
                    ]
                },
            },
            "spec.resourceAttributes.fieldSelector partially ignored due to parse error; "
            "spec.resourceAttributes.labelSelector partially ignored due to parse error",
            id="some requirements",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}]}}, None, id="good requirements"
        ),
    ],
)
def test_unreadable_selectors_are_mentioned(authorizer: Authorizer, selectors: Object, message: str | None) -> None:
    answer = reviews.review_self_subject_access(authorizer, "c1", JANE, review(**resource(**selectors)))
    assert answer["status"].get("evaluationError") == message
    assert answer["status"]["allowed"]


def test_all_that_i_may_do(reader: FakeReader, authorizer: Authorizer) -> None:
    reader.bind("c1", "ns", "c", "Role/none", user("jane"))
    asked = review("SelfSubjectRulesReview", namespace="ns")
    answer = reviews.review_self_subject_rules(authorizer, "c1", JANE, asked)
    status = answer["status"]
    assert answer["spec"] == {}
    assert {tuple(rule["resources"]) for rule in status["resourceRules"]} == {
        ("selfsubjectreviews",),
        ("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        ("configmaps",),
        ("secrets",),
    }
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"]} in status[
        "resourceRules"
    ]
    urls = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
    assert allow_urls("get", " ".join(urls)) in status["nonResourceRules"]
    assert len(status["nonResourceRules"]) == 2
    assert status["incomplete"] is False
    assert status["evaluationError"] == 'role.rbac.authorization.k8s.io "none" not found'


def test_rules_are_those_of_a_namespace(authorizer: Authorizer) -> None:
    with pytest.raises(errors.BadRequest, match="no namespace on request"):
        reviews.review_self_subject_rules(authorizer, "c1", JANE, review())
    answer = reviews.review_self_subject_rules(authorizer, "c1", UserInfo("x"), review(namespace="ns"))
    assert answer["status"] == {"resourceRules": [], "nonResourceRules": [], "incomplete": False}


@pytest.mark.parametrize(
    ("who", "info"),
    [
        pytest.param(UserInfo("jane"), {"username": "jane"}, id="name only"),
        pytest.param(
            UserInfo("jane", "1", ("a",), {"k": ("v",)}),
            {"username": "jane", "uid": "1", "groups": ["a"], "extra": {"k": ["v"]}},
            id="all",
        ),
    ],
)
def test_who_am_i(who: UserInfo, info: Object) -> None:
    assert reviews.review_self_subject(who, FakeClock().now()) == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"},
        "status": {"userInfo": info},
    }


@pytest.fixture
def tokens(reader: FakeReader) -> ServiceAccountTokens:
    reader.add("c1", "", "serviceaccounts", service_account())
    return ServiceAccountTokens(KEYS, reader, FakeClock(), [ISSUER])


async def test_whose_token_is_this(tokens: ServiceAccountTokens) -> None:
    authenticator = Authenticator(tokens.api_audiences, tokens=[tokens])
    token = tokens.issue("c1", service_account(), [ISSUER, "conf"], 600)
    asked = review("TokenReview", token=token, audiences=["conf", "none"])
    status = (await reviews.review_token(authenticator, "c1", asked))["status"]
    assert status["authenticated"]
    assert status["audiences"] == ["conf"]
    assert status["user"]["username"] == "system:serviceaccount:ns:bot"
    assert list(status["user"]["extra"]) == ["authentication.kubernetes.io/credential-id"]
    abroad = (await reviews.review_token(authenticator, "c2", review("TokenReview", token=token)))["status"]
    assert abroad["audiences"] == [ISSUER]
    assert sorted(abroad["user"]["extra"]) == [
        "authentication.kcp.io/cluster-name",
        "authentication.kubernetes.io/credential-id",
    ]


async def test_a_token_for_others_is_nobodys(tokens: ServiceAccountTokens) -> None:
    authenticator = Authenticator(tokens.api_audiences, tokens=[tokens])
    token = tokens.issue("c1", service_account(), [ISSUER, "conf"], 600)
    answer = await reviews.review_token(authenticator, "c1", review("TokenReview", token=token, audiences=["none"]))
    assert answer["status"] == {
        "error": f'[invalid bearer token, token audiences ["{ISSUER}" "conf"] is invalid for the target audiences '
        '["none"]]',
        "user": {},
    }


async def test_there_must_be_a_token() -> None:
    with pytest.raises(errors.BadRequest, match="token is required"):
        await reviews.review_token(Authenticator([ISSUER]), "c1", review("TokenReview"))
