"""The roles that every logical cluster has without holding them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.meta import errors, wellknown
from kcp.meta.gvk import GroupResource
from kcp.registry.bootstrapped import find_bootstrapped, missing
from kcp.store import EmbeddedStore, ObjectKey, Put, ResourceKey, pack_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

GROUP = "rbac.authorization.k8s.io"
ROLES = ResourceKey(GROUP, "clusterroles")
RESOURCE = GroupResource(GROUP, "clusterroles")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    async with await EmbeddedStore.open(tmp_path / "store") as opened:
        for resource in (ROLES, ResourceKey("", "secrets")):
            key = ObjectKey(resource, wellknown.ADMIN_CLUSTER, "", "view")
            await opened.commit([Put(key, pack_object({"metadata": {"name": "view"}}))])
        yield opened


async def test_they_are_found_in_every_cluster(store: EmbeddedStore) -> None:
    assert find_bootstrapped(store, ObjectKey(ROLES, "team", "", "view")) is not None
    assert find_bootstrapped(store, ObjectKey(ROLES, "team", "", "other")) is None


async def test_nothing_else_of_the_servers_own_is(store: EmbeddedStore) -> None:
    assert find_bootstrapped(store, ObjectKey(ResourceKey("", "secrets"), "team", "", "view")) is None


async def test_whoever_wants_to_change_one_is_told_why_not(store: EmbeddedStore) -> None:
    refused = missing(store, ObjectKey(ROLES, "team", "", "view"), RESOURCE)
    assert isinstance(refused, errors.Forbidden)
    assert "create one with another name" in refused.message
    assert isinstance(missing(store, ObjectKey(ROLES, "team", "", "other"), RESOURCE), errors.NotFound)
