"""delete: preconditions, finalizers, policies, marks and races."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from kcp.admission.attributes import Operation
from kcp.meta import codec, errors
from kcp.store import NoSpace
from tests.registry.test_create import Recorder, with_plugin
from tests.registry.verbs import (
    CONFIGMAPS,
    CRDS,
    EVENTS,
    NAMESPACES,
    NEW_EVENTS,
    OLD_WIDGETS,
    OTHER,
    WIDGETS,
    Verbs,
    crd,
    version,
)

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionResource
    from kcp.store import Store

WAIT = "example.io/wait"
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


async def test_what_nothing_holds_is_gone(verbs: Verbs) -> None:
    made = await verbs.create(CONFIGMAPS, "a")
    deleted = await verbs.delete(CONFIGMAPS, "a")
    assert (deleted.gone, deleted.last, codec.loads(deleted.body)) == (True, made, made)
    assert verbs.get(CONFIGMAPS, "a") is None
    with pytest.raises(errors.NotFound, match='configmaps "a" not found'):
        await verbs.delete(CONFIGMAPS, "a")


async def test_another_cluster_is_another_world(verbs: Verbs) -> None:
    made = await verbs.create(CONFIGMAPS, "a")
    with pytest.raises(errors.NotFound):
        await verbs.delete(CONFIGMAPS, "a", verbs.request(CONFIGMAPS, "a", cluster=OTHER))
    with pytest.raises(errors.NotFound):
        await verbs.delete(CONFIGMAPS, "a", verbs.request(CONFIGMAPS, "a", namespace="other"))
    assert verbs.get(CONFIGMAPS, "a") == made


async def test_what_finalizers_hold_is_marked(verbs: Verbs) -> None:
    await verbs.define(crd())
    await verbs.create(WIDGETS, "a", metadata={"finalizers": [WAIT]})
    verbs.clock.advance(5)
    deleted = await verbs.delete(WIDGETS, "a")
    marked = verbs.get(WIDGETS, "a")
    assert marked is not None
    assert (deleted.gone, deleted.last, codec.loads(deleted.body)) == (False, marked, marked)
    metadata = marked["metadata"]
    assert metadata["deletionTimestamp"] == "2025-01-01T00:00:05Z"
    assert (metadata["deletionGracePeriodSeconds"], metadata["generation"]) == (0, 2)


async def test_a_second_deletion_changes_nothing(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": [WAIT]})
    await verbs.delete(CONFIGMAPS, "a")
    marked, before = verbs.get(CONFIGMAPS, "a"), verbs.store.revision
    verbs.clock.advance(5)
    deleted = await verbs.delete(CONFIGMAPS, "a")
    assert (deleted.gone, codec.loads(deleted.body)) == (False, marked)
    assert verbs.store.revision == before


@pytest.mark.parametrize("finalizers", [[], [WAIT]], ids=["free", "held"])
async def test_a_dry_run_deletes_nothing(verbs: Verbs, finalizers: list[str]) -> None:
    made = await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": finalizers})
    before = verbs.store.revision
    deleted = await verbs.delete(CONFIGMAPS, "a", verbs.request(CONFIGMAPS, "a", dry_run=True))
    assert deleted.gone is not bool(finalizers)
    assert ("deletionTimestamp" in deleted.last["metadata"]) is bool(finalizers)
    assert (verbs.get(CONFIGMAPS, "a"), verbs.store.revision) == (made, before)


async def test_an_older_version_answers_in_its_own(verbs: Verbs) -> None:
    await verbs.define(crd(version(), version("v1beta1")))
    await verbs.create(OLD_WIDGETS, "a", metadata={"finalizers": [WAIT]})
    shown = codec.loads((await verbs.delete(OLD_WIDGETS, "a")).body)
    stored = verbs.get(WIDGETS, "a")
    assert stored is not None
    assert (shown["apiVersion"], stored["apiVersion"]) == ("example.io/v1beta1", "example.io/v1")
    assert shown["metadata"] == stored["metadata"]


# -- preconditions ------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"uid": "other"},
            'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the '
            "UID in record ({uid}). The object might have been deleted and then recreated",
        ),
        (
            {"resource_version": "1"},
            'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not '
            "match the ResourceVersion in record ({resourceVersion}). The object might have been modified",
        ),
    ],
    ids=["uid", "version"],
)
async def test_preconditions_hold_or_nothing_happens(verbs: Verbs, options: Object, message: str) -> None:
    made = await verbs.create(CONFIGMAPS, "a")
    with pytest.raises(errors.Conflict) as caught:
        await verbs.delete(CONFIGMAPS, "a", **options)
    assert caught.value.message == message.format(**made["metadata"])
    metadata = made["metadata"]
    await verbs.delete(CONFIGMAPS, "a", uid=metadata["uid"], resource_version=metadata["resourceVersion"])
    assert verbs.get(CONFIGMAPS, "a") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uid": "x"}, "Precondition failed: UID in precondition: x, UID in object meta: {uid}"),
        (
            {"resource_version": "77"},
            "Precondition failed: ResourceVersion in precondition: 77, "
            "ResourceVersion in object meta: {resourceVersion}",
        ),
    ],
    ids=["uid", "version"],
)
async def test_namespaces_and_definitions_say_it_in_other_words(verbs: Verbs, options: Object, message: str) -> None:
    await verbs.define(crd())
    for gvr, name in ((NAMESPACES, "default"), (CRDS, "widgets.example.io")):
        found = verbs.get(gvr, name, "")
        assert found is not None
        with pytest.raises(errors.Conflict) as caught:
            await verbs.delete(gvr, name, **options)
        subject = f'Operation cannot be fulfilled on {gvr.group_resource} "{name}": '
        assert caught.value.message == subject + message.format(**found["metadata"])


# -- finalizers of the garbage collector --------------------------------------


@pytest.mark.parametrize(
    ("present", "options", "left"),
    [
        ([], {}, None),
        ([], {"propagation_policy": "Background"}, None),
        ([], {"propagation_policy": "Foreground"}, [FOREGROUND]),
        ([], {"propagation_policy": "Orphan"}, [ORPHAN]),
        ([], {"orphan_dependents": True}, [ORPHAN]),
        ([], {"orphan_dependents": False}, None),
        ([ORPHAN], {}, [ORPHAN]),
        ([ORPHAN], {"propagation_policy": "Background"}, None),
        ([ORPHAN], {"propagation_policy": "Foreground"}, [FOREGROUND]),
        ([ORPHAN], {"orphan_dependents": False}, None),
        ([FOREGROUND], {"orphan_dependents": True}, [ORPHAN]),
        ([FOREGROUND, WAIT], {}, [FOREGROUND, WAIT]),
        ([FOREGROUND, WAIT], {"propagation_policy": "Foreground"}, [FOREGROUND, WAIT]),
        ([FOREGROUND, WAIT], {"propagation_policy": "Orphan"}, [WAIT, ORPHAN]),
        ([WAIT], {"propagation_policy": "Background"}, [WAIT]),
    ],
    ids=str,
)
async def test_the_policy_chooses_finalizers(
    verbs: Verbs, present: list[str], options: dict[str, Any], left: list[str] | None
) -> None:
    await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": present})
    deleted = await verbs.delete(CONFIGMAPS, "a", **options)
    found = verbs.get(CONFIGMAPS, "a")
    assert (None if found is None else found["metadata"]["finalizers"]) == left
    assert deleted.gone is (left is None)


async def test_a_second_deletion_may_ask_for_another_policy(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": [WAIT]})
    await verbs.delete(CONFIGMAPS, "a", propagation_policy="Orphan")
    await verbs.delete(CONFIGMAPS, "a", propagation_policy="Foreground")
    found = verbs.get(CONFIGMAPS, "a")
    assert found is not None
    assert found["metadata"]["finalizers"] == [WAIT, FOREGROUND]


@pytest.mark.parametrize("gvr", [EVENTS, NEW_EVENTS], ids=str)
async def test_no_policy_holds_an_event(verbs: Verbs, gvr: GroupVersionResource) -> None:
    """The garbage collector leaves events alone: a finalizer of its own would stay for ever."""
    await verbs.create(EVENTS, "e", involvedObject={"namespace": "default"})
    assert (await verbs.delete(gvr, "e", propagation_policy="Foreground")).gone
    assert verbs.get(EVENTS, "e") is None


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({}, None),
        ({"propagation_policy": "Foreground"}, [FOREGROUND]),
        ({"orphan_dependents": True}, [ORPHAN]),
        ({"orphan_dependents": False}, [FOREGROUND]),
    ],
    ids=str,
)
async def test_a_namespace_waits_for_its_content(verbs: Verbs, options: Object, finalizers: list[str] | None) -> None:
    await verbs.create(NAMESPACES, "busy")
    await verbs.delete(NAMESPACES, "busy", **options)
    found = verbs.get(NAMESPACES, "busy", "")
    assert found is not None
    assert found["status"]["phase"] == "Terminating"
    assert found["metadata"].get("finalizers") == finalizers
    assert "deletionGracePeriodSeconds" not in found["metadata"]


async def test_a_definition_waits_for_its_objects_whatever_the_policy(verbs: Verbs) -> None:
    await verbs.define(crd())
    await verbs.delete(CRDS, "widgets.example.io", propagation_policy="Foreground")
    found = verbs.get(CRDS, "widgets.example.io", "")
    assert found is not None
    assert found["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]


# -- admission and races ------------------------------------------------------


async def test_admission_sees_what_is_deleted(embedded: Store) -> None:
    recorder = Recorder()
    verbs = await with_plugin(embedded, recorder)
    await verbs.create(CONFIGMAPS, "a")
    await verbs.delete(CONFIGMAPS, "a")
    assert recorder.admitted[-1] == recorder.validated[-1] == (Operation.DELETE, "a", "")


async def test_some_namespaces_stay(verbs: Verbs) -> None:
    with pytest.raises(errors.Forbidden, match="this namespace may not be deleted"):
        await verbs.delete(NAMESPACES, "default")


async def test_of_many_deletions_one_counts(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a")
    before = verbs.store.revision
    results = await asyncio.gather(*(verbs.delete(CONFIGMAPS, "a") for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(result, errors.NotFound) for result in results) == 5
    assert verbs.store.revision == before + 1


async def test_what_changed_meanwhile_is_deleted_all_the_same(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a")
    verbs.racing.meanwhile = [lambda: verbs.change(CONFIGMAPS, "a", lambda obj: obj.update(data={"k": "v"}))]
    assert (await verbs.delete(CONFIGMAPS, "a")).last["data"] == {"k": "v"}


async def test_a_finalizer_put_on_meanwhile_counts(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a")
    hold = {"finalizers": [WAIT]}
    verbs.racing.meanwhile = [lambda: verbs.change(CONFIGMAPS, "a", lambda obj: obj["metadata"].update(hold))]
    assert not (await verbs.delete(CONFIGMAPS, "a")).gone
    assert verbs.get(CONFIGMAPS, "a") is not None


async def test_preconditions_are_looked_at_again_after_a_lost_race(verbs: Verbs) -> None:
    made = await verbs.create(CONFIGMAPS, "a")
    verbs.racing.meanwhile = [lambda: verbs.change(CONFIGMAPS, "a", lambda obj: obj.update(data={"k": "v"}))]
    with pytest.raises(errors.Conflict, match="The object might have been modified"):
        await verbs.delete(CONFIGMAPS, "a", resource_version=made["metadata"]["resourceVersion"])
    assert verbs.get(CONFIGMAPS, "a") is not None


async def test_a_store_that_cannot_write_is_told(verbs: Verbs) -> None:
    async def fail() -> None:
        raise NoSpace("full")

    await verbs.create(CONFIGMAPS, "a")
    verbs.racing.meanwhile = [fail]
    with pytest.raises(errors.ServiceUnavailable):
        await verbs.delete(CONFIGMAPS, "a")
