"""Who may make and unmake a logical cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kcp.admission.attributes import Attributes, Operation
from kcp.admission.logical_cluster import LogicalCluster
from kcp.auth.user import UserInfo
from kcp.meta import errors, wellknown
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource

TENANT = UserInfo("alice", groups=(wellknown.GROUP_KCP_ADMIN,))
SYSTEM = UserInfo("system", groups=(wellknown.GROUP_MASTERS,))


def write(operation: Operation, user: UserInfo, name: str = "cluster", **spec: Any) -> Attributes:  # noqa: ANN401
    obj = {"metadata": {"name": name}, "spec": spec}
    return Attributes(
        operation=operation,
        cluster="team",
        gvr=GroupVersionResource(wellknown.GROUP_CORE, "v1alpha1", "logicalclusters"),
        gvk=GroupVersionKind(wellknown.GROUP_CORE, "v1alpha1", "LogicalCluster"),
        namespace="",
        name=name,
        user=user,
        obj=obj if operation is Operation.CREATE else None,
        old_obj=obj if operation is Operation.DELETE else None,
    )


@pytest.mark.parametrize(
    ("a", "why"),
    [
        (write(Operation.CREATE, TENANT), "LogicalCluster cannot be created"),
        (write(Operation.DELETE, TENANT), "LogicalCluster cannot be deleted"),
        (write(Operation.CREATE, SYSTEM, name="other"), "must be named cluster"),
    ],
    ids=["create", "delete", "name"],
)
async def test_tenants_neither_make_nor_unmake_their_cluster(a: Attributes, why: str) -> None:
    with pytest.raises(errors.Forbidden) as caught:
        await LogicalCluster().validate(a)
    assert why in caught.value.message


@pytest.mark.parametrize(
    "a",
    [
        write(Operation.CREATE, SYSTEM),
        write(Operation.DELETE, SYSTEM),
        write(Operation.DELETE, TENANT, directlyDeletable=True),
    ],
    ids=["create", "delete", "directly deletable"],
)
async def test_the_system_may_and_so_may_anyone_where_the_object_says_so(a: Attributes) -> None:
    await LogicalCluster().validate(a)


def change(user: UserInfo, **new: Any) -> Attributes:  # noqa: ANN401
    a = write(Operation.UPDATE, user)
    a.old_obj = {"metadata": {"name": "cluster", "labels": {"mine": "1"}}, "spec": {}, "status": {}}
    a.obj = {**a.old_obj, **new}
    return a


@pytest.mark.parametrize(
    "new",
    [
        {"spec": {"directlyDeletable": True}},
        {"status": {"phase": "Ready"}},
        {"metadata": {"name": "cluster", "annotations": {wellknown.PATH_ANNOTATION: "root:x"}}},
        {"metadata": {"name": "cluster", "labels": {"tenancy.kcp.io" + "/phase": "Ready"}}},
    ],
    ids=["spec", "status", "annotation", "label"],
)
async def test_tenants_do_not_change_what_the_system_wrote(new: dict[str, Any]) -> None:
    with pytest.raises(errors.Forbidden):
        await LogicalCluster().validate(change(TENANT, **new))
    await LogicalCluster().validate(change(SYSTEM, **new))


async def test_labels_of_their_own_they_may_change() -> None:
    await LogicalCluster().validate(change(TENANT, metadata={"name": "cluster", "labels": {"mine": "2"}}))


async def test_other_kinds_are_none_of_its_business() -> None:
    a = write(Operation.CREATE, TENANT)
    a.gvr = GroupVersionResource("", "v1", "configmaps")
    await LogicalCluster().validate(a)
