"""Nobody hands out permissions that they do not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kcp.admission.attributes import Operation
from kcp.admission.rbac_escalation import RBACEscalation
from kcp.auth.authorizer import Authorizer
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.user import UserInfo
from kcp.meta import errors
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource
from tests.admission.fakes import CLUSTER, write
from tests.auth.cluster_objects import RBAC, FakeReader, allow, binding, user

if TYPE_CHECKING:
    from kcp.meta.codec import Object

JANE = UserInfo("jane", groups=("system:authenticated",))
MASTER = UserInfo("root", groups=("system:masters",))
HELD, MORE = allow("get list", "configmaps"), allow("delete", "configmaps")
KINDS = {
    "roles": "Role",
    "clusterroles": "ClusterRole",
    "rolebindings": "RoleBinding",
    "clusterrolebindings": "ClusterRoleBinding",
}


@pytest.fixture
def reader() -> FakeReader:
    reader = FakeReader()
    reader.cluster_role(CLUSTER, "held", HELD)
    reader.cluster_role(CLUSTER, "more", MORE)
    reader.bind(CLUSTER, "", "b", "ClusterRole/held", user("jane"))
    return reader


@pytest.fixture
def plugin(reader: FakeReader) -> RBACEscalation:
    return RBACEscalation(Authorizer(RBACAuthorizer(reader)))


async def admit(plugin: RBACEscalation, resource: str, obj: Object | None, **more: Any) -> None:  # noqa: ANN401
    group = more.pop("group", RBAC)
    gvr = GroupVersionResource(group, "v1", resource)
    gvk = GroupVersionKind(group, "v1", KINDS.get(resource, "Other"))
    await plugin.admit(write(obj, **({"gvr": gvr, "gvk": gvk, "user": JANE} | more)))


def role(*rules: Object, **metadata: object) -> Object:
    return {"metadata": {"name": "new", **metadata}, "rules": list(rules)}


@pytest.mark.parametrize("resource", ["roles", "clusterroles"])
async def test_roles_may_hold_what_their_writer_holds(plugin: RBACEscalation, resource: str) -> None:
    namespace = "ns" if resource == "roles" else ""
    await admit(plugin, resource, role(HELD), namespace=namespace)
    with pytest.raises(errors.Forbidden, match="attempting to grant RBAC permissions not currently held"):
        await admit(plugin, resource, role(HELD, MORE), namespace=namespace)
    await admit(plugin, resource, role(HELD, MORE), namespace=namespace, user=MASTER)


@pytest.mark.parametrize("resource", ["rolebindings", "clusterrolebindings"])
async def test_bindings_may_hand_out_what_their_writer_holds(plugin: RBACEscalation, resource: str) -> None:
    namespace = "ns" if resource == "rolebindings" else ""
    held, more = (binding("new", f"ClusterRole/{name}", user("joe"), namespace=namespace) for name in ("held", "more"))
    await admit(plugin, resource, held, namespace=namespace)
    with pytest.raises(errors.Forbidden, match="attempting to grant RBAC permissions not currently held"):
        await admit(plugin, resource, more, namespace=namespace)
    await admit(plugin, resource, more, namespace=namespace, user=MASTER)


async def test_permissions_of_another_cluster_do_not_count(plugin: RBACEscalation) -> None:
    with pytest.raises(errors.Forbidden):
        await admit(plugin, "clusterroles", role(HELD), namespace="", cluster="root:other")


async def test_a_change_that_only_cleans_up_may_be_made_by_anyone(plugin: RBACEscalation) -> None:
    old, new = role(MORE, finalizers=["example.io/wait"]), role(MORE)
    changes: Object = {"operation": Operation.UPDATE, "old_obj": old}
    await admit(plugin, "roles", new, **changes)
    with pytest.raises(errors.Forbidden):
        await admit(plugin, "roles", role(MORE, labels={"a": "b"}), **changes)


async def test_who_may_escalate_one_role_may_change_it_but_not_make_others(
    plugin: RBACEscalation, reader: FakeReader
) -> None:
    reader.cluster_role(CLUSTER, "escalator", allow("escalate", "clusterroles", groups=RBAC, names="new"))
    reader.bind(CLUSTER, "", "e", "ClusterRole/escalator", user("jane"))
    changes: Object = {"operation": Operation.UPDATE, "old_obj": role(HELD), "namespace": ""}
    await admit(plugin, "clusterroles", role(MORE), **changes)
    with pytest.raises(errors.Forbidden):  # on create the name is not yet known to the authorizer
        await admit(plugin, "clusterroles", role(MORE), namespace="")


async def test_other_writes_pass(plugin: RBACEscalation) -> None:
    await admit(plugin, "roles", role(MORE), group="example.io")
    await admit(plugin, "roles", None, operation=Operation.UPDATE)
    assert not plugin.handles(Operation.DELETE)
