"""The chain of authorization and its refusals."""

from __future__ import annotations

import pytest

from kcp.auth.attributes import Attributes
from kcp.auth.authorizer import Authorizer, forbidden, forbidden_message
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.user import UserInfo
from kcp.meta import wellknown
from tests.auth.cluster_objects import FakeReader, allow, user

MASTER = UserInfo("root", groups=("system:masters",))
KCP_ADMIN = UserInfo("admin", groups=("system:kcp:admin",))
JANE = UserInfo("jane", groups=("system:authenticated",))
NOBODY = UserInfo("system:anonymous", groups=("system:unauthenticated",))


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def authorizer(reader: FakeReader) -> Authorizer:
    return Authorizer(RBACAuthorizer(reader))


@pytest.mark.parametrize("cluster", ["root", "*", "system:admin"])
def test_masters_may_do_everything_everywhere(authorizer: Authorizer, cluster: str) -> None:
    assert authorizer.authorize(Attributes(MASTER, "delete", cluster, resource="secrets")) == (True, "")


@pytest.mark.parametrize(
    ("who", "cluster", "allowed"),
    [
        pytest.param(KCP_ADMIN, "root", True, id="admin in a workspace"),
        pytest.param(KCP_ADMIN, "*", True, id="admin over all"),
        pytest.param(KCP_ADMIN, "system:admin", False, id="admin in what is the server's own"),
        pytest.param(JANE, "root", False, id="user in a workspace"),
        pytest.param(JANE, "*", False, id="user over all"),
        pytest.param(NOBODY, "*", False, id="nobody over all"),
    ],
)
def test_where_others_may_list(authorizer: Authorizer, who: UserInfo, cluster: str, allowed: bool) -> None:
    assert authorizer.authorize(Attributes(who, "list", cluster, resource="secrets")).allowed is allowed


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/healthz", True),
        ("/livez", True),
        ("/readyz", True),
        ("/readyz/etcd", False),
        ("/version", True),
        ("/", False),
    ],
)
def test_health_is_open_to_all(authorizer: Authorizer, path: str, allowed: bool) -> None:
    assert authorizer.authorize(Attributes(NOBODY, "get", "root", path=path)).allowed is allowed


def test_open_paths_may_end_in_a_star(reader: FakeReader) -> None:
    authorizer = Authorizer(RBACAuthorizer(reader), always_allow_paths=["/open/*"])
    assert authorizer.authorize(Attributes(NOBODY, "post", "root", path="/open/x")).allowed
    assert not authorizer.authorize(Attributes(NOBODY, "get", "root", path="/healthz/x")).allowed
    assert not authorizer.authorize(Attributes(NOBODY, "get", "root")).allowed


def test_an_asker_speaks_for_its_user_in_its_cluster(reader: FakeReader, authorizer: Authorizer) -> None:
    reader.role("c1", "ns", "r", allow("get", "secrets", names="x"))
    reader.bind("c1", "ns", "b", "Role/r", user("jane"))
    may = authorizer.asker(JANE, "c1")
    assert may("get", "", "secrets", "", "ns", "x")
    assert not may("get", "", "secrets", "", "ns", "y")
    assert not authorizer.asker(JANE, "c2")("get", "", "secrets", "", "ns", "x")
    assert authorizer.rules_for(JANE, "c1", "ns").rules[-1]["resources"] == ["secrets"]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        pytest.param(
            Attributes(JANE, "list", "c", resource="configmaps", namespace="ns"),
            'User "jane" cannot list resource "configmaps" in API group "" in the namespace "ns"',
            id="namespaced",
        ),
        pytest.param(
            Attributes(JANE, "get", "c", "apps", "v1", "deployments", "scale", name="x"),
            'User "jane" cannot get resource "deployments/scale" in API group "apps" at the cluster scope',
            id="subresource at the cluster scope",
        ),
        pytest.param(
            Attributes(JANE, "post", "c", path="/conf/x"), 'User "jane" cannot post path "/conf/x"', id="path"
        ),
    ],
)
def test_refusals_say_who_cannot_do_what(attributes: Attributes, message: str) -> None:
    assert forbidden_message(attributes) == message


def test_a_refusal_is_a_status() -> None:
    error = forbidden(Attributes(JANE, "get", "c", "apps", "v1", "deployments", namespace="ns", name="x"), "because")
    assert error.to_status()["message"] == (
        'deployments.apps "x" is forbidden: User "jane" cannot get resource "deployments" in API group "apps" '
        'in the namespace "ns": because'
    )
    assert error.to_status()["details"] == {"name": "x", "group": "apps", "kind": "deployments"}


def test_a_refused_path_has_no_details_and_no_markup() -> None:
    error = forbidden(Attributes(JANE, "get", "c", path="/<b>&"))
    assert error.to_status()["message"] == 'forbidden: User "jane" cannot get path "/&lt;b&gt;&amp;"'
    assert error.to_status()["details"] == {}


def test_a_cluster_is_looked_at_by_those_who_have_access(authorizer: Authorizer, reader: FakeReader) -> None:
    own = UserInfo("system:serviceaccount:ns:bot", extra={wellknown.EXTRA_CLUSTER_NAME: ("team",)}, groups=JANE.groups)
    foreign = UserInfo(own.name, extra={wellknown.EXTRA_CLUSTER_NAME: ("other",)}, groups=JANE.groups)
    look = {who: Attributes(who, "get", "team", path="/apis") for who in (JANE, own, foreign)}
    assert [authorizer.authorize(look[who]).allowed for who in (JANE, own, foreign)] == [False, True, False]
    assert authorizer.authorize(Attributes(JANE, "get", "root", path="/apis")).allowed
    reader.bind("team", "", "enter", "ClusterRole/system:kcp:workspace:access", user("jane"))
    authorizer.rbac.forget("team")
    assert authorizer.authorize(look[JANE]).allowed
