"""Names and instances of CustomResourceDefinitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.controller.controller import DONE
from kcp.controller.keys import ClusterKey
from kcp.meta import errors, wellknown
from kcp.meta.fake_clock import FakeClock
from kcp.reconcilers import custom_resource_definitions
from kcp.store import EmbeddedStore, ObjectKey, Put, ResourceKey, pack_object
from tests.reconcilers.control_plane import CLUSTER, CRDS, LEASES, WIDGETS, ControlPlane, crd
from tests.reconcilers.test_namespaces import conditions_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kcp.admission.attributes import Attributes
    from kcp.meta.codec import Object
    from kcp.registry.sweep import Remaining

NAME = "widgets.example.io"


async def establish(plane: ControlPlane) -> None:
    plane.start(custom_resource_definitions.new(plane.registry))
    await plane.create(CRDS, NAME, **crd())
    await plane.settle()


async def test_a_new_definition_is_established(plane: ControlPlane) -> None:
    await establish(plane)
    found = plane.get(CRDS, NAME)
    assert conditions_of(found) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert plane.registry.catalogue.find(CLUSTER, WIDGETS) is not None
    revision = plane.store.revision
    await plane.stop()
    plane.start(custom_resource_definitions.new(plane.registry))
    await plane.settle()
    assert plane.get(CRDS, NAME) == found
    assert plane.store.revision <= revision + 1, "nothing but a checkpoint"


async def test_a_name_that_is_freed_goes_to_whoever_waits(plane: ControlPlane) -> None:
    await establish(plane)
    await plane.create(CRDS, "gadgets.example.io", **crd("gadgets", "Widget"))
    await plane.create(CRDS, "gizmos.other.io", **crd("gizmos", "Widget", "other.io"))
    await plane.settle()
    assert conditions_of(plane.get(CRDS, "gadgets.example.io"))["NamesAccepted"][:2] == ("False", "ListKindConflict")
    assert conditions_of(plane.get(CRDS, "gizmos.other.io"))["NamesAccepted"][0] == "True"
    await plane.delete(CRDS, NAME)
    await plane.settle()
    assert plane.get(CRDS, NAME) is None
    assert conditions_of(plane.get(CRDS, "gadgets.example.io"))["Established"][0] == "True"


async def test_instances_go_before_their_definition(plane: ControlPlane) -> None:
    await establish(plane)
    await plane.create_namespace("team")
    for name in "ab":
        await plane.create(WIDGETS, name, "default")
    await plane.create(WIDGETS, "held", "team", metadata={"finalizers": ["example.io/wait"]})
    await plane.delete(CRDS, NAME)
    await plane.settle()
    assert plane.names(WIDGETS) == ["held"]
    assert conditions_of(plane.get(CRDS, NAME))["Terminating"] == (
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    await plane.release(WIDGETS, "held", "team")
    await plane.settle()
    assert plane.get(CRDS, NAME) is None


async def test_one_that_was_never_established_goes_at_once(plane: ControlPlane) -> None:
    await establish(plane)
    await plane.create(CRDS, "gadgets.example.io", **crd("gadgets", "Widget"))
    await plane.settle()
    await plane.delete(CRDS, "gadgets.example.io")
    await plane.settle()
    assert plane.names(CRDS) == [NAME]


async def test_another_finalizer_keeps_the_definition(plane: ControlPlane) -> None:
    plane.start(custom_resource_definitions.new(plane.registry))
    await plane.create(CRDS, NAME, metadata={"finalizers": ["example.io/wait"]}, **crd())
    await plane.settle()
    await plane.delete(CRDS, NAME)
    await plane.settle()
    found = plane.get(CRDS, NAME)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["example.io/wait"]
    assert conditions_of(found)["Terminating"] == ("False", "InstanceDeletionCompleted", "removed all instances")


async def test_instances_left_behind_are_removed(plane: ControlPlane) -> None:
    await establish(plane)
    await plane.stop()
    await plane.delete(CRDS, NAME)

    def finish(found: Object) -> None:
        del found["metadata"]["finalizers"]

    await plane.update(CRDS, NAME, "", finish)
    key = ObjectKey(ResourceKey("example.io", "widgets"), CLUSTER, "default", "left")
    await plane.store.commit([Put(key, pack_object({"metadata": {"name": "left"}}))])
    plane.start(custom_resource_definitions.new(plane.registry))
    await plane.settle()
    assert plane.get(CRDS, NAME) is None
    assert plane.store.get(key) is None


async def test_built_in_kinds_are_no_leftovers(plane: ControlPlane) -> None:
    plane.start(custom_resource_definitions.new(plane.registry))
    await plane.create(LEASES, "kept", "default")
    await plane.create(LEASES, "held", "default", metadata={"finalizers": ["example.io/wait"]})
    await plane.delete(LEASES, "held", "default")
    await plane.settle()
    await plane.release(LEASES, "held", "default")
    await plane.settle()
    assert plane.names(LEASES) == ["kept"]


class Refusal(Plugin):
    """Refuses deletions of widgets until told otherwise."""

    name = "Refusal"
    operations = frozenset((Operation.DELETE,))
    is_open = False

    async def validate(self, a: Attributes) -> None:
        if a.gvr == WIDGETS and not self.is_open:
            raise errors.Forbidden(a.gvr.group_resource, a.name, "not now")


async def test_instances_that_admission_keeps_are_tried_again(tmp_path: Path) -> None:
    refusal = Refusal()
    async with await EmbeddedStore.open(tmp_path / "refusing") as store:
        plane = ControlPlane(store, FakeClock(), refusal)
        await plane.create_namespace("default")
        await establish(plane)
        await plane.create(WIDGETS, "w", "default")
        await plane.delete(CRDS, NAME)
        await plane.settle()
        assert conditions_of(plane.get(CRDS, NAME))["Terminating"] == (
            "True",
            "InstanceDeletionFailed",
            'could not issue all deletes: widgets.example.io "w" is forbidden: not now',
        )
        refusal.is_open = True
        await plane.pass_time(60)
        assert plane.get(CRDS, NAME) is None
        await plane.stop()


@pytest.mark.parametrize("new_uid", [False, True], ids=["gone", "another one"])
async def test_a_definition_that_goes_meanwhile_is_no_failure(new_uid: bool) -> None:
    definition: Object = {
        "metadata": {
            "name": NAME,
            "deletionTimestamp": "2025-01-01T00:00:00Z",
            "finalizers": [wellknown.FINALIZER_CUSTOM_RESOURCES],
        },
        "spec": {"group": "example.io"},
    }

    async def update(key: ClusterKey, mutate: Callable[[Object], None]) -> Object:
        if not new_uid:
            raise errors.NotFound(CRDS.group_resource, key.name)
        other: Object = {"metadata": {"name": NAME}}
        mutate(other)
        return other

    async def delete(key: ClusterKey) -> Remaining:
        raise AssertionError("not reached")

    deps = custom_resource_definitions.Deps(
        now=FakeClock().now,
        get=lambda key: definition,
        list_group=lambda cluster, group: [],
        update_status=update,
        is_served=lambda key: True,
        count_instances=lambda key: 0,
        delete_instances=delete,
    )
    assert await custom_resource_definitions.reconcile(ClusterKey("root", NAME), deps) == DONE


def test_keys_of_removed_definitions_differ_from_others() -> None:
    gone = custom_resource_definitions.GoneKey("root", NAME)
    assert len({gone, ClusterKey("root", NAME)}) == 2
    assert str(gone) == f"root|{NAME}"
