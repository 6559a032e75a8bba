"""Who may act as whom."""

from __future__ import annotations

import pytest

from kcp.auth.authorizer import Authorizer
from kcp.auth.impersonation import Impersonation, impersonate, parse_impersonation
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.user import UserInfo
from kcp.meta import errors
from tests.auth.cluster_objects import FakeReader, allow, user

MASTER = UserInfo("root", groups=("system:masters", "system:authenticated"))
BOSS = UserInfo("boss", groups=("system:authenticated",))


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def authorizer(reader: FakeReader) -> Authorizer:
    return Authorizer(RBACAuthorizer(reader))


def let(reader: FakeReader, *rules: dict[str, list[str]]) -> None:
    reader.cluster_role("c1", "cr", *rules)
    reader.bind("c1", "", "crb", "ClusterRole/cr", user("boss"))


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        pytest.param([("accept", "x")], None, id="nothing"),
        pytest.param([("impersonate-user", "")], None, id="empty"),
        pytest.param([("impersonate-user", "jane"), ("impersonate-user", "joe")], Impersonation("jane"), id="first"),
        pytest.param(
            [("impersonate-group", "a"), ("impersonate-user", "jane"), ("impersonate-group", "b")],
            Impersonation("jane", ("a", "b")),
            id="groups",
        ),
        pytest.param(
            [
                ("impersonate-user", "jane"),
                ("impersonate-uid", "1"),
                ("impersonate-uid", "2"),
                ("impersonate-extra-conf.test%2fkey", "v"),
                ("impersonate-extra-bad%zz%2f", "w"),
                ("impersonate-other", "x"),
            ],
            Impersonation("jane", uid="1", extra=(("conf.test/key", "v"), ("bad%zz%2f", "w"))),
            id="uid and extra",
        ),
    ],
)
def test_headers_are_read(headers: list[tuple[str, str]], wanted: Impersonation | None) -> None:
    assert parse_impersonation(headers) == wanted


def test_without_a_user_nobody_is_impersonated() -> None:
    headers = [("impersonate-group", "g"), ("impersonate-extra-k", "v"), ("impersonate-uid", "u")]
    with pytest.raises(errors.BadRequest) as caught:
        parse_impersonation(headers)
    assert caught.value.message == (
        "requested [{Group  g    } {UserExtra  v  authentication.k8s.io/v1  k} {UID  u  authentication.k8s.io/v1  }] "
        "without impersonating a user"
    )


@pytest.mark.parametrize(
    ("wanted", "groups"),
    [
        pytest.param(Impersonation("jane"), ("system:authenticated",), id="user"),
        pytest.param(Impersonation("jane", ("a", "b")), ("a", "b", "system:authenticated"), id="groups"),
        pytest.param(
            Impersonation("jane", ("system:authenticated", "a")), ("system:authenticated", "a"), id="authenticated"
        ),
        pytest.param(Impersonation("jane", ("system:unauthenticated",)), ("system:unauthenticated",), id="not so"),
        pytest.param(Impersonation("system:anonymous"), ("system:unauthenticated",), id="nobody"),
        pytest.param(
            Impersonation("system:anonymous", ("system:unauthenticated",)),
            ("system:unauthenticated",),
            id="nobody twice",
        ),
        pytest.param(
            Impersonation("system:serviceaccount:ns1:bot"),
            ("system:serviceaccounts", "system:serviceaccounts:ns1", "system:authenticated"),
            id="service account",
        ),
        pytest.param(
            Impersonation("system:serviceaccount:ns1:bot", ("a",)), ("a", "system:authenticated"), id="with groups"
        ),
    ],
)
def test_the_new_identity_has_its_groups(
    authorizer: Authorizer, wanted: Impersonation, groups: tuple[str, ...]
) -> None:
    assert impersonate(MASTER, "c1", wanted, authorizer) == UserInfo(wanted.user, groups=groups)


def test_the_new_identity_has_uid_and_extra(authorizer: Authorizer) -> None:
    wanted = Impersonation("jane", uid="1", extra=(("k", "a"), ("l", "b"), ("k", "c")))
    found = impersonate(MASTER, "c1", wanted, authorizer)
    assert found == UserInfo("jane", "1", ("system:authenticated",), {"k": ("a", "c"), "l": ("b",)})


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param(
            Impersonation("jane"),
            'users "jane" is forbidden: User "boss" cannot impersonate resource "users" in API group "" at the '
            "cluster scope",
            id="user",
        ),
        pytest.param(
            Impersonation("system:serviceaccount:ns:bot"),
            'serviceaccounts "bot" is forbidden: User "boss" cannot impersonate resource "serviceaccounts" in API '
            'group "" in the namespace "ns"',
            id="service account",
        ),
        pytest.param(
            Impersonation("joe", ("g",)),
            'groups "g" is forbidden: User "boss" cannot impersonate resource "groups" in API group "" at the '
            "cluster scope",
            id="group",
        ),
        pytest.param(
            Impersonation("joe", extra=(("k", "v"),)),
            'userextras.authentication.k8s.io "v" is forbidden: User "boss" cannot impersonate resource '
            '"userextras/k" in API group "authentication.k8s.io" at the cluster scope',
            id="extra",
        ),
        pytest.param(
            Impersonation("joe", uid="1"),
            'uids.authentication.k8s.io "1" is forbidden: User "boss" cannot impersonate resource "uids" in API '
            'group "authentication.k8s.io" at the cluster scope',
            id="uid",
        ),
    ],
)
def test_each_part_takes_a_permission(
    reader: FakeReader, authorizer: Authorizer, wanted: Impersonation, message: str
) -> None:
    let(reader, allow("impersonate", "users", names="joe"))
    with pytest.raises(errors.Forbidden) as caught:
        impersonate(BOSS, "c1", wanted, authorizer)
    assert caught.value.message == message


def test_permissions_are_those_of_the_cluster(reader: FakeReader, authorizer: Authorizer) -> None:
    let(reader, allow("impersonate", "users"))
    assert impersonate(BOSS, "c1", Impersonation("jane"), authorizer).name == "jane"
    with pytest.raises(errors.Forbidden):
        impersonate(BOSS, "c2", Impersonation("jane"), authorizer)


@pytest.mark.parametrize("group", ["system:masters", "system:kcp:admin", "system:kcp:initializer:root:x"])
def test_the_admin_of_a_workspace_does_not_become_more(reader: FakeReader, authorizer: Authorizer, group: str) -> None:
    let(reader, allow("*", "*", groups="*"))
    with pytest.raises(errors.Forbidden, match=r"^forbidden: impersonation is not allowed for the requestor$"):
        impersonate(BOSS, "c1", Impersonation("x", ("a", group)), authorizer)
    assert group in impersonate(MASTER, "c1", Impersonation("x", (group,)), authorizer).groups


def test_groups_that_one_has_may_be_kept(reader: FakeReader, authorizer: Authorizer) -> None:
    let(reader, allow("*", "*", groups="*"))
    found = impersonate(BOSS, "c1", Impersonation("x", ("system:authenticated",)), authorizer)
    assert found.groups == ("system:authenticated",)
