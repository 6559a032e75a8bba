"""What a new installation begins with."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kcp.auth.bootstrap import cluster_role_bindings, cluster_roles
from kcp.meta import wellknown
from kcp.meta.fake_clock import FakeClock
from kcp.registry.registry import StoreReader
from kcp.server.bootstrap import bootstrap, ensure_cluster
from kcp.store import Compacted, Delete, EmbeddedStore, ObjectKey, ResourceKey, Revision, Scope
from tests.reconcilers.control_plane import make_registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kcp.registry.registry import Registry

RBAC = "rbac.authorization.k8s.io"
CLUSTERS = ("root", "system:admin")


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        yield make_registry(store, FakeClock())


def names(registry: Registry, cluster: str, group: str, resource: str) -> set[str]:
    found = StoreReader(registry.store).list(cluster, group, resource)
    return {obj["metadata"]["name"] for obj in found}


async def test_the_first_clusters_have_their_namespaces(registry: Registry) -> None:
    await bootstrap(registry)
    for cluster in CLUSTERS:
        assert registry.catalogue.has_cluster(cluster)
        assert names(registry, cluster, "", "namespaces") == {"default", "kube-system"}
    clusters = StoreReader(registry.store).list("root", wellknown.GROUP_CORE, "logicalclusters")
    assert [obj["metadata"]["name"] for obj in clusters] == ["cluster"]
    assert clusters[0]["spec"] == {}, "defaulted as any other"


async def test_the_policy_of_all_clusters_can_be_looked_at_in_one(registry: Registry) -> None:
    await bootstrap(registry)
    expected = {role["metadata"]["name"] for role in cluster_roles()}
    assert names(registry, "system:admin", RBAC, "clusterroles") == expected
    bindings = {binding["metadata"]["name"] for binding in cluster_role_bindings()}
    assert names(registry, "system:admin", RBAC, "clusterrolebindings") == bindings
    assert names(registry, "root", RBAC, "clusterroles") == set()


async def test_a_new_installation_has_no_past(registry: Registry) -> None:
    await bootstrap(registry)
    assert registry.store.compacted == registry.store.revision
    with pytest.raises(Compacted):
        registry.store.watch(Scope(), Revision(1))


async def test_a_second_start_changes_nothing_and_forgets_nothing(registry: Registry) -> None:
    await bootstrap(registry)
    await ensure_cluster(registry, "root:team")
    before, compacted = registry.store.revision, registry.store.compacted
    await bootstrap(registry)
    assert (registry.store.revision, registry.store.compacted) == (before, compacted)


async def test_what_is_missing_is_made_again_and_the_rest_is_left_alone(registry: Registry) -> None:
    await bootstrap(registry)
    key = ObjectKey(ResourceKey(RBAC, "clusterroles"), "system:admin", "", "cluster-admin")
    kept = StoreReader(registry.store).get("root", "", "namespaces", "", "default")
    await registry.store.commit([Delete(key)])
    await bootstrap(registry)
    assert registry.store.get(key) is not None
    assert StoreReader(registry.store).get("root", "", "namespaces", "", "default") == kept


async def test_several_servers_may_start_at_once(registry: Registry) -> None:
    await asyncio.gather(*(bootstrap(registry) for _ in range(3)))
    assert names(registry, "root", "", "namespaces") == {"default", "kube-system"}
    assert registry.store.count(Scope(ResourceKey(wellknown.GROUP_CORE, "logicalclusters"))) == 2
