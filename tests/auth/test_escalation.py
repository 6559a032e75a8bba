"""Nobody grants what they do not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.auth.authorizer import Authorizer
from kcp.auth.escalation import Write, check_binding_escalation, check_role_escalation
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.user import UserInfo
from kcp.meta import errors
from tests.auth.cluster_objects import RBAC, FakeReader, allow, binding, user

if TYPE_CHECKING:
    from kcp.meta.codec import Object

JANE = UserInfo("jane", groups=("system:authenticated",))
MASTER = UserInfo("root", groups=("system:masters",))
READ = allow("get list", "configmaps")
EVERYTHING = allow("*", "*", groups="*")


@pytest.fixture
def reader() -> FakeReader:
    reader = FakeReader()
    reader.role("c1", "ns", "r", READ)
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    return reader


@pytest.fixture
def authorizer(reader: FakeReader) -> Authorizer:
    return Authorizer(RBACAuthorizer(reader))


def role(*rules: Object, **fields: object) -> Object:
    return {"metadata": {"name": "new"}, "rules": list(rules), **fields}


def write(resource: str, who: UserInfo = JANE, namespace: str = "ns", name: str = "") -> Write:
    return Write(who, "c1", resource, namespace, name)


def grant(reader: FakeReader, *rules: Object) -> None:
    reader.cluster_role("c1", "more", *rules)
    reader.bind("c1", "", "more", "ClusterRole/more", user("jane"))


def test_a_role_with_what_the_writer_holds_is_accepted(authorizer: Authorizer) -> None:
    check_role_escalation(authorizer, write("roles"), role(allow("get", "configmaps", names="a")))
    check_role_escalation(authorizer, write("roles"), {"metadata": {}, "rules": None})


def test_a_role_with_more_is_refused(authorizer: Authorizer) -> None:
    with pytest.raises(errors.Forbidden) as caught:
        check_role_escalation(authorizer, write("roles"), role(allow("get list", "secrets")))
    assert caught.value.message == (
        'roles.rbac.authorization.k8s.io "new" is forbidden: user "jane" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )
    assert caught.value.details == {"name": "new", "group": RBAC, "kind": "roles"}


def test_missing_roles_of_the_writer_are_mentioned(reader: FakeReader, authorizer: Authorizer) -> None:
    reader.bind("c1", "ns", "c", "Role/none", user("jane"))
    with pytest.raises(errors.Forbidden, match=r'; resolution errors: \[roles\.rbac\S+ "none" not found\]$'):
        check_role_escalation(authorizer, write("roles"), role(EVERYTHING))


def test_masters_may_write_any_role(authorizer: Authorizer) -> None:
    check_role_escalation(authorizer, write("roles", MASTER), role(EVERYTHING))
    check_binding_escalation(authorizer, write("rolebindings", MASTER), binding("new", "Role/none"))


@pytest.mark.parametrize(
    ("name", "allowed"), [pytest.param("new", True, id="the role named"), pytest.param("", False, id="a new role")]
)
def test_escalate_on_a_role_allows_it(reader: FakeReader, authorizer: Authorizer, name: str, allowed: bool) -> None:
    grant(reader, allow("escalate", "roles", groups=RBAC, names="new"))
    if allowed:
        check_role_escalation(authorizer, write("roles", name=name), role(EVERYTHING))
    else:
        with pytest.raises(errors.Forbidden):
            check_role_escalation(authorizer, write("roles", name=name), role(EVERYTHING))


def test_the_garbage_collector_may_touch_any_role(authorizer: Authorizer) -> None:
    old = role(EVERYTHING)
    new = {**old, "metadata": {"name": "new", "finalizers": ["x"], "ownerReferences": [{"uid": "1"}], "labels": {}}}
    check_role_escalation(authorizer, write("roles", name="new"), new, old)
    with pytest.raises(errors.Forbidden):
        check_role_escalation(authorizer, write("roles", name="new"), {**new, "metadata": {"labels": {"a": "b"}}}, old)
    bound = binding("new", "Role/none")
    check_binding_escalation(authorizer, write("rolebindings", name="new"), bound, bound)


AGGREGATION = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}


def test_aggregation_takes_all_permissions(reader: FakeReader, authorizer: Authorizer) -> None:
    aggregated, plain = role(aggregationRule=AGGREGATION), role(aggregationRule={"clusterRoleSelectors": []})
    check_role_escalation(authorizer, write("clusterroles", namespace=""), plain)
    for new, old in ((aggregated, None), ({**plain, "x": "y"}, aggregated)):
        with pytest.raises(errors.Forbidden, match=r"must have cluster-admin privileges to use the aggregationRule$"):
            check_role_escalation(authorizer, write("clusterroles", namespace=""), new, old)
    reader.bind("c1", "", "admin", "ClusterRole/cluster-admin", user("jane"))
    authorizer.rbac.forget("c1")
    check_role_escalation(authorizer, write("clusterroles", namespace=""), aggregated)


def test_a_binding_to_a_held_role_is_accepted(authorizer: Authorizer) -> None:
    check_binding_escalation(authorizer, write("rolebindings"), binding("new", "Role/r"))


def test_a_binding_to_a_stronger_role_is_refused(reader: FakeReader, authorizer: Authorizer) -> None:
    reader.role("c1", "ns", "strong", allow("get", "secrets"))
    with pytest.raises(errors.Forbidden) as caught:
        check_binding_escalation(authorizer, write("rolebindings"), binding("bad", "Role/strong"))
    assert caught.value.message == (
        'rolebindings.rbac.authorization.k8s.io "bad" is forbidden: user "jane" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    )


@pytest.mark.parametrize(
    ("resource", "namespace"), [("rolebindings", "ns"), ("clusterrolebindings", "")], ids=["namespaced", "cluster"]
)
def test_a_binding_to_a_missing_role_is_not_found(authorizer: Authorizer, resource: str, namespace: str) -> None:
    with pytest.raises(errors.NotFound, match=rf'^{resource}\.rbac\.authorization\.k8s\.io "none" not found$'):
        check_binding_escalation(
            authorizer, write(resource, namespace=namespace), binding("new", "ClusterRole/none", namespace=namespace)
        )


def test_a_binding_to_a_bootstrap_role_is_checked(reader: FakeReader, authorizer: Authorizer) -> None:
    with pytest.raises(errors.Forbidden):
        check_binding_escalation(authorizer, write("rolebindings"), binding("new", "ClusterRole/view"))
    grant(reader, allow("bind", "clusterroles", groups=RBAC, names="view"))
    authorizer.rbac.forget("c1")
    check_binding_escalation(authorizer, write("rolebindings"), binding("new", "ClusterRole/view"))
    with pytest.raises(errors.Forbidden):
        check_binding_escalation(authorizer, write("rolebindings"), binding("new", "ClusterRole/edit"))


def test_a_binding_to_no_kind_of_role_is_an_error(authorizer: Authorizer) -> None:
    with pytest.raises(errors.InternalError, match='unsupported role reference kind: "Martian"'):
        check_binding_escalation(authorizer, write("rolebindings"), binding("new", "Martian/x"))
