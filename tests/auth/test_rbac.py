"""Which bindings apply, what they allow, and when that is forgotten."""

from __future__ import annotations

import pytest

from kcp.auth.attributes import Attributes
from kcp.auth.rbac import RBACAuthorizer, join_errors
from kcp.auth.user import UserInfo
from kcp.meta import wellknown
from tests.auth.cluster_objects import FakeReader, account, allow, allow_urls, group, user

JANE = UserInfo("jane", groups=("team", "system:authenticated"))
READ = allow("get list", "configmaps")


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def rbac(reader: FakeReader) -> RBACAuthorizer:
    return RBACAuthorizer(reader)


def ask(who: UserInfo = JANE, verb: str = "get", cluster: str = "c1", **fields: str) -> Attributes:
    return Attributes(who, verb, cluster, **{"resource": "configmaps", "namespace": "ns", **fields})


def ask_path(path: str, who: UserInfo = JANE, verb: str = "get") -> Attributes:
    return Attributes(who, verb, "c1", path=path)


@pytest.mark.parametrize(
    ("subject", "shown"),
    [
        pytest.param(user("jane"), 'User "jane"', id="user"),
        pytest.param(group("team"), 'Group "team"', id="group"),
    ],
)
def test_a_role_binding_allows_in_its_namespace(
    reader: FakeReader, rbac: RBACAuthorizer, subject: dict[str, str], shown: str
) -> None:
    reader.role("c1", "ns", "r", READ)
    reader.bind("c1", "ns", "b", "Role/r", subject)
    assert rbac.authorize(ask()) == (True, f'RBAC: allowed by RoleBinding "b/ns" of Role "r" to {shown}')
    assert rbac.authorize(ask(verb="delete")) == (False, "")
    assert rbac.authorize(ask(namespace="other")) == (False, "")
    assert rbac.authorize(ask(namespace="")) == (False, "")


def test_a_cluster_role_binding_allows_everywhere_in_its_cluster_only(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.cluster_role("c1", "cr", READ)
    reader.bind("c1", "", "crb", "ClusterRole/cr", group("team"))
    reason = 'RBAC: allowed by ClusterRoleBinding "crb" of ClusterRole "cr" to Group "team"'
    assert rbac.authorize(ask()) == (True, reason)
    assert rbac.authorize(ask(namespace="")) == (True, reason)
    assert rbac.authorize(ask(cluster="c2")) == (False, "")


def test_a_role_binding_of_a_cluster_role_allows_in_its_namespace(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.cluster_role("c1", "cr", READ)
    reader.bind("c1", "ns", "b", "ClusterRole/cr", user("jane"))
    assert rbac.authorize(ask()).allowed
    assert not rbac.authorize(ask(namespace="other")).allowed


@pytest.mark.parametrize(
    ("subject", "namespace", "allowed"),
    [
        pytest.param(account("bot", "ns"), "ns", True, id="named namespace"),
        pytest.param(account("bot"), "ns", True, id="the binding's namespace"),
        pytest.param(account("bot", "other"), "ns", False, id="another namespace"),
        pytest.param(account("bot"), "", False, id="no namespace to take"),
    ],
)
def test_service_accounts_are_subjects(
    reader: FakeReader, rbac: RBACAuthorizer, subject: dict[str, str], namespace: str, allowed: bool
) -> None:
    reader.cluster_role("c1", "cr", READ)
    reader.bind("c1", namespace, "b", "ClusterRole/cr", subject)
    decision = rbac.authorize(ask(UserInfo("system:serviceaccount:ns:bot")))
    assert decision.allowed is allowed
    if allowed:
        assert decision.reason.endswith('to ServiceAccount "bot/ns"')


def test_a_service_account_is_a_stranger_in_other_clusters(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    bot = UserInfo(
        "system:serviceaccount:ns:bot",
        groups=("system:serviceaccounts", "system:authenticated"),
        extra={wellknown.EXTRA_CLUSTER_NAME: ("c1",)},
    )
    for cluster in ("c1", "c2"):
        reader.cluster_role(cluster, "cr", READ)
        reader.bind(cluster, "ns", "b", "ClusterRole/cr", account("bot"), group("system:serviceaccounts"))
    assert rbac.authorize(ask(bot)).allowed
    assert not rbac.authorize(ask(bot, cluster="c2")).allowed
    reader.bind("c2", "ns", "welcome", "ClusterRole/cr", user("system:kcp:serviceaccount:c1:ns:bot"))
    rbac.forget("c2")
    assert rbac.authorize(ask(bot, cluster="c2")).allowed
    assert not rbac.authorize(ask(bot, cluster="c3")).allowed


def test_the_first_subject_of_a_binding_that_applies_is_named(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.role("c1", "ns", "r", READ)
    reader.bind("c1", "ns", "b", "Role/r", {"kind": "Martian", "name": "jane"}, group("team"), user("jane"))
    assert rbac.authorize(ask()).reason.endswith('to Group "team"')


def test_resource_names_limit_a_rule(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.role("c1", "ns", "r", allow("get", "configmaps", names="a b"), allow("get", "secrets", names="a"))
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    assert rbac.authorize(ask(name="a")).allowed
    assert rbac.authorize(ask(name="b")).allowed
    assert not rbac.authorize(ask(name="c")).allowed
    assert not rbac.authorize(ask()).allowed
    reader.role("c1", "ns", "r", allow("get", "configmaps", names="a b"), READ)
    rbac.forget("c1")
    assert rbac.authorize(ask(name="c")).allowed


def test_subresources_have_rules_of_their_own(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.role("c1", "ns", "r", allow("create", "serviceaccounts/token"))
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    assert rbac.authorize(ask(verb="create", resource="serviceaccounts", subresource="token", name="x")).allowed
    assert not rbac.authorize(ask(verb="create", resource="serviceaccounts")).allowed


def test_paths_are_allowed_by_cluster_role_bindings(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.cluster_role("c1", "cr", allow_urls("get", "/conf/* /metrics"))
    reader.bind("c1", "", "crb", "ClusterRole/cr", user("jane"))
    assert rbac.authorize(ask_path("/conf/x")).allowed
    assert not rbac.authorize(ask_path("/conf")).allowed
    assert not rbac.authorize(ask_path("/conf/x", verb="post")).allowed


def test_a_question_without_resource_and_path_is_about_a_resource(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.cluster_role("c1", "cr", allow("get", "*"))
    reader.bind("c1", "", "crb", "ClusterRole/cr", user("jane"))
    assert rbac.authorize(Attributes(JANE, "get", "c1")).allowed


def test_missing_roles_are_named_in_the_denial(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.bind("c1", "ns", "b1", "Role/none", user("jane"))
    assert rbac.authorize(ask()) == (False, 'RBAC: role.rbac.authorization.k8s.io "none" not found')
    reader.bind("c1", "", "b2", "ClusterRole/none", user("jane"))
    reader.bind("c1", "", "b3", "ClusterRole/none", user("jane"))
    reader.bind("c1", "", "b4", "Martian/x", user("jane"))
    rbac.forget("c1")
    assert rbac.authorize(ask()).reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "none" not found, unsupported role reference kind: "Martian", '
        'role.rbac.authorization.k8s.io "none" not found]'
    )


def test_bootstrap_roles_can_be_bound_in_any_cluster(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.bind("c1", "ns", "b", "ClusterRole/view", user("jane"))
    assert rbac.authorize(ask(verb="list")).allowed
    assert not rbac.authorize(ask(verb="list", resource="secrets")).allowed
    reader.cluster_role("c1", "view", allow("list", "secrets"))
    rbac.forget("c1")
    assert rbac.authorize(ask(verb="list", resource="secrets")).allowed
    assert not rbac.authorize(ask(verb="list")).allowed


def test_a_local_role_does_not_change_what_bootstrap_bindings_give(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.cluster_role("c1", "system:discovery", allow("*", "*", groups="*"))
    assert rbac.authorize(ask_path("/api")).allowed
    assert not rbac.authorize(ask(verb="delete")).allowed


def test_what_is_stored_in_the_admin_cluster_holds_everywhere(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    assert not rbac.authorize(ask()).allowed
    reader.cluster_role(wellknown.ADMIN_CLUSTER, "cr", READ)
    reader.bind(wellknown.ADMIN_CLUSTER, "", "crb", "ClusterRole/cr", user("jane"))
    assert not rbac.authorize(ask()).allowed
    rbac.forget(wellknown.ADMIN_CLUSTER)
    assert rbac.authorize(ask()).allowed
    assert rbac.authorize(ask(cluster=wellknown.ADMIN_CLUSTER)).allowed


def test_a_stored_role_of_the_admin_cluster_replaces_the_built_in_one(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.cluster_role(wellknown.ADMIN_CLUSTER, "system:discovery", allow_urls("get", "/other"))
    assert rbac.authorize(ask_path("/other")).allowed
    assert not rbac.authorize(ask_path("/apis")).allowed


def test_a_repeated_question_reads_nothing(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.role("c1", "ns", "r", READ)
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    rbac.authorize(ask())
    before = reader.reads
    assert rbac.authorize(ask(name="another")).allowed
    assert reader.reads == before


def test_a_change_is_seen_after_forgetting(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.role("c1", "ns", "r", READ)
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    assert rbac.authorize(ask()).allowed
    reader.remove("c1", "rbac.authorization.k8s.io", "rolebindings", "ns", "b")
    rbac.forget("c1")
    rbac.forget("never heard of")
    assert not rbac.authorize(ask()).allowed


def test_policies_of_few_clusters_are_kept(reader: FakeReader) -> None:
    rbac = RBACAuthorizer(reader, max_clusters=2)
    first = rbac.policy("c1")
    rbac.policy("c2")
    assert rbac.policy("c1") is first
    rbac.policy("c3")
    assert rbac.policy("c1") is first
    second = rbac.policy("c2")
    assert rbac.policy("c2") is second
    assert rbac.policy("c3") is not None
    assert rbac.policy("c1") is not first


def test_verdicts_are_limited_in_number(reader: FakeReader) -> None:
    rbac = RBACAuthorizer(reader, max_verdicts=10)
    reader.role("c1", "ns", "r", READ)
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    for number in range(100):
        assert not rbac.authorize(ask_path(f"/{number}")).allowed
        assert rbac.authorize(ask()).allowed
        assert sum(map(len, rbac.policy("c1").verdicts.values())) <= 11


def test_rules_of_a_user_are_listed(reader: FakeReader, rbac: RBACAuthorizer) -> None:
    reader.role("c1", "ns", "r", READ)
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    reader.bind("c1", "ns", "c", "Role/none", user("jane"))
    found = rbac.rules_for(UserInfo("jane"), "c1", "ns")
    assert found.rules == [READ]
    assert [(ref.kind, ref.name) for ref in found.missing] == [("Role", "none")]
    assert rbac.rules_for(UserInfo("jane"), "c1", "").rules == []


def test_errors_are_joined_once_each() -> None:
    assert join_errors(["a", "a"]) == "a"
    assert join_errors(["a", "b", "a"]) == "[a, b]"
