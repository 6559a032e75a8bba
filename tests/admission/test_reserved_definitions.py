"""Which resources cannot be defined."""

from __future__ import annotations

import pytest

from kcp.admission.attributes import Attributes, Operation
from kcp.admission.reserved_definitions import ReservedDefinitions
from kcp.auth.user import UserInfo
from kcp.meta import errors, wellknown
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource

TENANT = UserInfo("alice", groups=(wellknown.GROUP_KCP_ADMIN,))
SYSTEM = UserInfo("system", groups=(wellknown.GROUP_MASTERS,))
PLUGIN = ReservedDefinitions(frozenset({("rbac.authorization.k8s.io", "clusterroles")}))


def define(group: str, plural: str, user: UserInfo) -> Attributes:
    return Attributes(
        operation=Operation.CREATE,
        cluster="team",
        gvr=GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        gvk=GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        namespace="",
        name=f"{plural}.{group}",
        user=user,
        obj={"metadata": {}, "spec": {"group": group, "names": {"plural": plural}}},
    )


@pytest.mark.parametrize("user", [TENANT, SYSTEM], ids=["tenant", "system"])
async def test_nobody_defines_what_is_built_in(user: UserInfo) -> None:
    with pytest.raises(errors.Forbidden, match="is a built-in resource"):
        await PLUGIN.validate(define("rbac.authorization.k8s.io", "clusterroles", user))


@pytest.mark.parametrize("group", ["kcp.io", "apis.kcp.io"])
async def test_our_own_groups_are_reserved(group: str) -> None:
    with pytest.raises(errors.Forbidden, match=f"{group} is a reserved group"):
        await PLUGIN.validate(define(group, "things", TENANT))
    await PLUGIN.validate(define(group, "things", SYSTEM))


async def test_all_else_may_be_defined() -> None:
    await PLUGIN.validate(define("example.io", "clusterroles", TENANT))
    other = define("kcp.io", "things", TENANT)
    other.gvr = GroupVersionResource("", "v1", "configmaps")
    await PLUGIN.validate(other)
