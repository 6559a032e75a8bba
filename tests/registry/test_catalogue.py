"""What exists in which logical cluster."""

from __future__ import annotations

import pytest

from kcp.meta import wellknown
from kcp.meta.gvk import GroupVersionResource
from kcp.registry import catalogue as catalogue_module
from kcp.registry.catalogue import CRDS, Catalogue
from kcp.store import Delete, ObjectKey
from tests.registry.verbs import CLUSTER, CONFIGMAPS, OLD_WIDGETS, OTHER, WIDGETS, Verbs, crd, version

LOGICAL_CLUSTERS = GroupVersionResource(wellknown.GROUP_CORE, "v1alpha1", "logicalclusters")
KEY = ObjectKey(CRDS, CLUSTER, "", "widgets.example.io")


async def test_a_cluster_exists_once_it_has_its_object(verbs: Verbs) -> None:
    catalogue = verbs.registry.catalogue
    assert not catalogue.has_cluster(CLUSTER)
    await verbs.create(LOGICAL_CLUSTERS, wellknown.LOGICAL_CLUSTER_NAME)
    assert catalogue.has_cluster(CLUSTER)
    assert not catalogue.has_cluster(OTHER)


async def test_what_is_built_in_is_everywhere(verbs: Verbs) -> None:
    catalogue = verbs.registry.catalogue
    for cluster in (CLUSTER, OTHER, "*"):
        assert catalogue.find(cluster, CONFIGMAPS) is not None
        assert catalogue.find(cluster, LOGICAL_CLUSTERS) is not None
    assert {CONFIGMAPS, LOGICAL_CLUSTERS} <= {resource.gvr for resource in catalogue.builtin()}
    assert "v1/ConfigMap" in catalogue.known_kinds


async def test_definitions_count_in_their_own_cluster(verbs: Verbs) -> None:
    """Two clusters may define the same name differently, side by side."""
    await verbs.define(crd(version(), version("v1beta1")))
    await verbs.define(crd(version(), scope="Cluster", kind="Gadget"), OTHER)
    catalogue = verbs.registry.catalogue
    mine, theirs = catalogue.find(CLUSTER, WIDGETS), catalogue.find(OTHER, WIDGETS)
    assert mine is not None
    assert theirs is not None
    assert [(each.gvk.kind, each.namespaced) for each in (mine, theirs)] == [("Widget", True), ("Gadget", False)]
    assert catalogue.find(CLUSTER, OLD_WIDGETS) is not None
    assert catalogue.find(OTHER, OLD_WIDGETS) is None
    assert catalogue.find("root", WIDGETS) is None


@pytest.mark.parametrize(
    "gvr",
    [
        ("example.io", "v2", "widgets"),
        ("example.io", "v1", "gadgets"),
        ("example.com", "v1", "widgets"),
        ("", "v1", "widgets"),
        ("example.io", "v1", ""),
        ("example.io", "v1", "wid/gets"),
        ("example.io", "v1", "w" * 254),
    ],
    ids=["version", "resource", "group", "no group", "no resource", "slash", "long"],
)
async def test_what_nobody_defined_is_not_there(verbs: Verbs, gvr: tuple[str, str, str]) -> None:
    await verbs.define(crd())
    assert verbs.registry.catalogue.find(CLUSTER, GroupVersionResource(*gvr)) is None


async def test_custom_resources_are_not_served_over_all_clusters(verbs: Verbs) -> None:
    await verbs.define(crd())
    assert verbs.registry.catalogue.find("*", WIDGETS) is None


async def test_a_change_is_seen_by_the_next_request(verbs: Verbs) -> None:
    catalogue = verbs.registry.catalogue
    await verbs.define(crd(established="False"))
    assert catalogue.find(CLUSTER, WIDGETS) is None
    await verbs.define(crd())
    first = catalogue.find(CLUSTER, WIDGETS)
    assert first is not None
    assert catalogue.find(CLUSTER, WIDGETS) is first, "compiled once"
    await verbs.define(crd(version(), version("v1beta1")))
    assert catalogue.find(CLUSTER, OLD_WIDGETS) is not None
    assert catalogue.find(CLUSTER, WIDGETS) is not first
    await verbs.store.commit([Delete(KEY)])
    assert catalogue.find(CLUSTER, WIDGETS) is None
    assert catalogue.versions(CLUSTER, "example.io", "widgets") == {}


async def test_discovery_knows_what_a_cluster_defines(verbs: Verbs) -> None:
    catalogue = verbs.registry.catalogue
    await verbs.define(crd(version(), version("v1beta1"), version("v0", served=False)))
    await verbs.define(crd(established="False"), OTHER)
    (versions,) = catalogue.custom(CLUSTER)
    assert sorted(versions) == ["v1", "v1beta1"]
    assert catalogue.custom(OTHER) == []
    before = catalogue.custom_revision(CLUSTER)
    assert [name for name, _ in before] == ["widgets.example.io"]
    await verbs.define(crd())
    assert catalogue.custom_revision(CLUSTER) != before
    assert catalogue.custom_revision("root") == ()


async def test_what_is_remembered_is_bounded(verbs: Verbs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "MAX_COMPILED", 2)
    catalogue = Catalogue(verbs.store)
    for cluster in ("a", "b", "c"):
        await verbs.define(crd(), cluster)
    first, second = catalogue.find("a", WIDGETS), catalogue.find("b", WIDGETS)
    assert catalogue.find("a", WIDGETS) is first
    catalogue.find("c", WIDGETS)
    assert catalogue.find("a", WIDGETS) is first, "what is used stays"
    assert catalogue.find("b", WIDGETS) is not second, "what was used longest ago goes"
