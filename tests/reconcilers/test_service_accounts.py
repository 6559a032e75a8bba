"""The default ServiceAccount."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.controller.controller import DONE
from kcp.controller.keys import ClusterKey
from kcp.meta import errors
from kcp.reconcilers import namespaces, service_accounts
from tests.reconcilers.control_plane import NAMESPACES, SERVICE_ACCOUNTS, ControlPlane

if TYPE_CHECKING:
    from kcp.meta.codec import Object


async def test_every_namespace_gets_one(plane: ControlPlane) -> None:
    plane.start(service_accounts.new(plane.registry))
    await plane.create_namespace("team")
    await plane.create_namespace("team", cluster="other")
    await plane.settle()
    for namespace, cluster in (("default", "root"), ("team", "root"), ("team", "other")):
        account = plane.get(SERVICE_ACCOUNTS, "default", namespace, cluster)
        assert account is not None
        assert "managedFields" not in account["metadata"]


async def test_a_deleted_one_comes_back(plane: ControlPlane) -> None:
    plane.start(service_accounts.new(plane.registry))
    await plane.create(SERVICE_ACCOUNTS, "builder", "default")
    await plane.settle()
    first = plane.get(SERVICE_ACCOUNTS, "default", "default")
    await plane.delete(SERVICE_ACCOUNTS, "default", "default")
    await plane.delete(SERVICE_ACCOUNTS, "builder", "default")
    await plane.settle()
    second = plane.get(SERVICE_ACCOUNTS, "default", "default")
    assert first is not None
    assert second is not None
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert plane.names(SERVICE_ACCOUNTS) == ["default"]


async def test_a_namespace_that_goes_keeps_none(plane: ControlPlane) -> None:
    plane.start(service_accounts.new(plane.registry), namespaces.new(plane.registry))
    await plane.create_namespace("doomed")
    await plane.settle()
    await plane.delete(NAMESPACES, "doomed")
    await plane.settle()
    assert plane.names(NAMESPACES) == ["default"]
    assert plane.names(SERVICE_ACCOUNTS, "doomed") == []


def make_deps(answers: list[Object | None], error: errors.StatusError) -> service_accounts.Deps:
    async def create(key: ClusterKey) -> Object:
        raise error

    return service_accounts.Deps(
        get_namespace=lambda key: answers.pop(0), has_account=lambda key: False, create_account=create
    )


ACTIVE: Object = {"metadata": {"name": "team"}}
DELETED: Object = {"metadata": {"name": "team", "deletionTimestamp": "2025-01-01T00:00:00Z"}}


async def test_losing_a_race_is_fine() -> None:
    exists = errors.AlreadyExists(SERVICE_ACCOUNTS.group_resource, "default")
    assert await service_accounts.reconcile(ClusterKey("root", "team"), make_deps([ACTIVE], exists)) == DONE
    refused = errors.Forbidden(SERVICE_ACCOUNTS.group_resource, "default", "it goes")
    assert await service_accounts.reconcile(ClusterKey("root", "team"), make_deps([ACTIVE, DELETED], refused)) == DONE
    assert await service_accounts.reconcile(ClusterKey("root", "team"), make_deps([ACTIVE, None], refused)) == DONE


async def test_another_refusal_is_tried_again() -> None:
    refused = errors.Forbidden(SERVICE_ACCOUNTS.group_resource, "default", "quota")
    with pytest.raises(errors.Forbidden):
        await service_accounts.reconcile(ClusterKey("root", "team"), make_deps([ACTIVE, ACTIVE], refused))
