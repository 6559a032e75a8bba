"""What admission asks of the catalogue."""

from __future__ import annotations

import pytest

from kcp.meta import errors
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource
from kcp.registry.kinds import CatalogueKinds
from tests.registry.verbs import (
    CLUSTER,
    CONFIGMAPS,
    EVENTS,
    NEW_EVENTS,
    OLD_WIDGETS,
    OTHER,
    WIDGETS,
    Verbs,
    crd,
    version,
)

WIDGET, OLD_WIDGET = GroupVersionKind("example.io", "v1", "Widget"), GroupVersionKind("example.io", "v1beta1", "Widget")
EVENT, NEW_EVENT = GroupVersionKind("", "v1", "Event"), GroupVersionKind("events.k8s.io", "v1", "Event")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


@pytest.fixture
async def kinds(verbs: Verbs) -> CatalogueKinds:
    await verbs.define(crd(version(), version("v1beta1")))
    return CatalogueKinds(verbs.registry.catalogue)


def test_other_versions_and_groups_of_the_same_objects(kinds: CatalogueKinds) -> None:
    assert kinds.equivalents(CLUSTER, WIDGETS) == [(OLD_WIDGETS, OLD_WIDGET)]
    assert kinds.equivalents(CLUSTER, EVENTS) == [(NEW_EVENTS, NEW_EVENT)]
    assert kinds.equivalents(CLUSTER, NEW_EVENTS) == [(EVENTS, EVENT)]
    assert kinds.equivalents(CLUSTER, CONFIGMAPS) == []
    assert kinds.equivalents(OTHER, WIDGETS) == ()


def test_the_resource_of_a_kind(kinds: CatalogueKinds) -> None:
    assert kinds.resource_for(CLUSTER, CONFIG_MAP) == (CONFIGMAPS, True)
    assert kinds.resource_for(CLUSTER, OLD_WIDGET) == (OLD_WIDGETS, True)
    assert kinds.resource_for(OTHER, OLD_WIDGET) is None
    assert kinds.resource_for(CLUSTER, GroupVersionKind("example.io", "v2", "Widget")) is None
    assert kinds.resource_for(CLUSTER, GroupVersionKind("example.io", "v1", "Gadget")) is None
    assert kinds.resource_for(CLUSTER, GroupVersionKind("", "v1", "Namespace")) == (
        GroupVersionResource("", "v1", "namespaces"),
        False,
    )


def test_conversion_between_versions(kinds: CatalogueKinds) -> None:
    widget = {"kind": "Widget", "apiVersion": "example.io/v1", "metadata": {"name": "a"}, "spec": {"n": 1}}
    assert kinds.convert(CLUSTER, widget, WIDGET) is widget
    assert kinds.convert(CLUSTER, widget, OLD_WIDGET) == widget | {"apiVersion": "example.io/v1beta1"}
    with pytest.raises(errors.NotFound, match=r"no kind .* is served here"):
        kinds.convert(OTHER, widget, OLD_WIDGET)


def test_conversion_between_the_groups_of_events(kinds: CatalogueKinds) -> None:
    event = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e"}, "message": "m", "involvedObject": {}}
    new = kinds.convert(CLUSTER, event, NEW_EVENT)
    assert (new["apiVersion"], new["note"]) == ("events.k8s.io/v1", "m")
    back = kinds.convert(CLUSTER, new, EVENT)
    assert (back["apiVersion"], back["message"]) == ("v1", "m")


async def test_conversion_with_one_version_renames(verbs: Verbs) -> None:
    await verbs.define(crd())
    kinds = CatalogueKinds(verbs.registry.catalogue)
    old = {"kind": "Widget", "apiVersion": "example.io/v0", "metadata": {"name": "a"}}
    assert kinds.convert(CLUSTER, old, WIDGET) == old | {"apiVersion": "example.io/v1"}
    assert kinds.convert(CLUSTER, old, CONFIG_MAP)["apiVersion"] == "v1"


def test_objects_are_decoded_as_if_a_client_had_sent_them(kinds: CatalogueKinds) -> None:
    sent = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "unknown": 1, "data": {"k": "v"}}
    assert kinds.decode(CLUSTER, sent, CONFIG_MAP) == {name: sent[name] for name in sent if name != "unknown"}
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n"}}
    decoded = kinds.decode(CLUSTER, namespace, GroupVersionKind("", "v1", "Namespace"))
    assert decoded["status"] == {"phase": "Active"}
    with pytest.raises(ValueError, match="cannot unmarshal"):
        kinds.decode(CLUSTER, sent | {"data": 7}, CONFIG_MAP)
    with pytest.raises(errors.NotFound):
        kinds.decode(OTHER, {}, WIDGET)
