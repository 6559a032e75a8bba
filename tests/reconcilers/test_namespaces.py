"""Deletion of namespaces."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from kcp.reconcilers import namespaces
from kcp.store import EmbeddedStore, ObjectKey, Put, ResourceKey, pack_object
from tests.reconcilers.control_plane import CLUSTER, CONFIGMAPS, NAMESPACES, SECRETS, ControlPlane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kcp.admission.attributes import Attributes
    from kcp.meta.codec import Object


def conditions_of(namespace: Object | None) -> dict[str, tuple[str, str, str]]:
    assert namespace is not None
    found = namespace["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}


async def test_content_goes_with_its_namespace(plane: ControlPlane) -> None:
    plane.start(namespaces.new(plane.registry))
    await plane.create_namespace("doomed")
    for number in range(250):
        await plane.create(CONFIGMAPS, f"c{number}", "doomed")
    await plane.create(SECRETS, "s", "doomed")
    await plane.create(CONFIGMAPS, "kept", "default")
    await plane.delete(NAMESPACES, "doomed")
    await plane.settle()
    assert plane.names(NAMESPACES) == ["default"]
    assert plane.names(CONFIGMAPS) == ["kept"]
    assert plane.names(SECRETS) == []


async def test_an_active_namespace_is_left_alone(plane: ControlPlane) -> None:
    plane.start(namespaces.new(plane.registry))
    await plane.create(CONFIGMAPS, "kept", "default")
    await plane.settle()
    assert plane.names(CONFIGMAPS) == ["kept"]


async def test_finalizers_hold_the_namespace_and_conditions_say_so(plane: ControlPlane) -> None:
    plane.start(namespaces.new(plane.registry))
    await plane.create_namespace("doomed")
    await plane.create(CONFIGMAPS, "held", "doomed", metadata={"finalizers": ["example.io/wait"]})
    await plane.create(CONFIGMAPS, "free", "doomed")
    await plane.delete(NAMESPACES, "doomed")
    await plane.settle()
    held = plane.get(CONFIGMAPS, "held", "doomed")
    assert held is not None
    assert held["metadata"]["deletionTimestamp"]
    assert plane.names(CONFIGMAPS, "doomed") == ["held"]
    namespace = plane.get(NAMESPACES, "doomed")
    assert namespace is not None
    assert namespace["status"]["phase"] == "Terminating"
    assert conditions_of(namespace) == {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.io/wait in 1 resource instances",
        ),
    }
    await plane.release(CONFIGMAPS, "held", "doomed")
    await plane.settle()
    assert plane.names(NAMESPACES) == ["default"]


async def test_a_finalizer_of_somebody_else_keeps_the_empty_namespace(plane: ControlPlane) -> None:
    plane.start(namespaces.new(plane.registry))
    await plane.create(NAMESPACES, "doomed", metadata={"finalizers": ["example.io/wait"]})
    await plane.delete(NAMESPACES, "doomed")
    await plane.settle()
    namespace = plane.get(NAMESPACES, "doomed")
    assert namespace is not None
    assert "finalizers" not in namespace["spec"]
    await plane.release(NAMESPACES, "doomed")
    assert plane.get(NAMESPACES, "doomed") is None


async def test_objects_that_nothing_serves_any_more_go_too(plane: ControlPlane) -> None:
    await plane.create_namespace("doomed")
    key = ObjectKey(ResourceKey("gone.example.io", "things"), CLUSTER, "doomed", "t")
    orphan = {"metadata": {"name": "t", "finalizers": ["example.io/wait"]}}
    await plane.store.commit([Put(key, pack_object(orphan))])
    plane.start(namespaces.new(plane.registry))
    await plane.delete(NAMESPACES, "doomed")
    await plane.settle()
    assert plane.store.get(key) is None
    assert plane.get(NAMESPACES, "doomed") is None


async def test_deletions_before_the_start_are_found(plane: ControlPlane) -> None:
    await plane.create_namespace("doomed")
    await plane.create(CONFIGMAPS, "c", "doomed")
    await plane.delete(NAMESPACES, "doomed")
    plane.start(namespaces.new(plane.registry))
    await plane.settle()
    assert plane.names(NAMESPACES) == ["default"]


class Refusal(Plugin):
    """Refuses deletions of ConfigMaps until told otherwise."""

    name = "Refusal"
    operations = frozenset((Operation.DELETE,))
    is_open = False

    async def validate(self, a: Attributes) -> None:
        if a.gvr == CONFIGMAPS and not self.is_open:
            raise errors.Forbidden(a.gvr.group_resource, a.name, "not now")


@pytest.fixture
async def refusal() -> Refusal:
    return Refusal()


@pytest.fixture
async def refusing(tmp_path: Path, refusal: Refusal) -> AsyncIterator[ControlPlane]:
    async with await EmbeddedStore.open(tmp_path / "refusing") as store:
        plane = ControlPlane(store, FakeClock(), refusal)
        await plane.create_namespace("default")
        yield plane
        await plane.stop()


async def test_content_that_admission_keeps_is_tried_again(refusing: ControlPlane, refusal: Refusal) -> None:
    refusing.start(namespaces.new(refusing.registry))
    await refusing.create_namespace("doomed")
    await refusing.create(CONFIGMAPS, "c", "doomed")
    await refusing.create(SECRETS, "s", "doomed")
    await refusing.delete(NAMESPACES, "doomed")
    await refusing.settle()
    assert refusing.names(SECRETS) == []
    assert conditions_of(refusing.get(NAMESPACES, "doomed"))["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        'Failed to delete all resource types, 1 remaining: configmaps "c" is forbidden: not now',
    )
    refusal.is_open = True
    await refusing.pass_time(60)
    assert refusing.get(NAMESPACES, "doomed") is None


def test_conditions_keep_their_time_until_their_status_changes() -> None:
    first = namespaces.set_conditions([], {}, "then")
    assert {each["lastTransitionTime"] for each in first} == {"then"}
    complaints = {"NamespaceContentRemaining": ("SomeResourcesRemain", "some")}
    second = namespaces.set_conditions(first, complaints, "now")
    changed = [each["type"] for each in second if each["lastTransitionTime"] == "now"]
    assert changed == ["NamespaceContentRemaining"]
    assert first[3]["status"] == "False", "the old conditions are not changed"


def test_complaints_are_sorted() -> None:
    from kcp.registry.sweep import Remaining

    content = {
        ResourceKey("b.io", "bs"): Remaining(2, Counter({"y": 1, "x": 1})),
        ResourceKey("a.io", "as"): Remaining(1, Counter({"x": 1})),
        ResourceKey("c.io", "cs"): Remaining(),
    }
    assert namespaces.find_complaints(content) == {
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            "Some resources are remaining: as.a.io has 1 resource instances, bs.b.io has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: "
            "x in 2 resource instances, y in 1 resource instances",
        ),
    }
