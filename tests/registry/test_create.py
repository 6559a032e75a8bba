"""create: addresses, names, admission, and what may happen meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from kcp.registry import create as create_module
from kcp.store import NoSpace, Scope
from tests.registry.verbs import (
    ADMIN,
    CLUSTER,
    CONFIGMAPS,
    CRDS,
    NAMESPACES,
    NEW_EVENTS,
    OLD_WIDGETS,
    OTHER,
    SECRETS,
    WIDGETS,
    Verbs,
    crd,
    version,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.admission.attributes import Attributes
    from kcp.meta.codec import Object
    from kcp.store import Store


class Recorder(Plugin):
    """Sees every write, and may change or refuse it."""

    name = "Recorder"

    def __init__(self, change: Callable[[Attributes], None] | None = None) -> None:
        self.admitted: list[tuple[Operation, str, str]] = []
        self.validated: list[tuple[Operation, str, str]] = []
        self._change = change

    async def admit(self, a: Attributes) -> None:
        self.admitted.append((a.operation, a.name, (a.obj or {}).get("metadata", {}).get("name", "")))
        if self._change is not None:
            self._change(a)

    async def validate(self, a: Attributes) -> None:
        self.validated.append((a.operation, a.name, (a.obj or {}).get("metadata", {}).get("name", "")))


async def with_plugin(store: Store, plugin: Plugin) -> Verbs:
    await Verbs(store, FakeClock()).create(NAMESPACES, "default")
    return Verbs(store, FakeClock(), plugin)


# -- what the server fills in -------------------------------------------------


async def test_the_server_fills_in_the_metadata(verbs: Verbs) -> None:
    made = await verbs.create(CONFIGMAPS, "a", data={"k": "v"}, metadata={"labels": {"x": "y"}})
    assert made == verbs.get(CONFIGMAPS, "a")
    metadata = made["metadata"]
    assert metadata["resourceVersion"] == str(verbs.store.revision)
    assert len(metadata.pop("uid")) == 36
    del metadata["resourceVersion"]
    assert metadata == {
        "name": "a",
        "namespace": "default",
        "labels": {"x": "y"},
        "creationTimestamp": "2025-01-01T00:00:00Z",
    }


async def test_what_clients_may_not_set_is_dropped(verbs: Verbs) -> None:
    sent = {
        "uid": "mine",
        "creationTimestamp": "1999-01-01T00:00:00Z",
        "deletionTimestamp": "1999-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/x",
    }
    metadata = (await verbs.create(CONFIGMAPS, "a", metadata=sent))["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] == "2025-01-01T00:00:00Z"
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & metadata.keys()


async def test_kinds_with_a_generation_start_at_one(verbs: Verbs) -> None:
    await verbs.define(crd())
    assert (await verbs.create(WIDGETS, "a", metadata={"generation": 9}))["metadata"]["generation"] == 1
    assert "generation" not in (await verbs.create(CONFIGMAPS, "a"))["metadata"]


async def test_a_manager_owns_what_it_sent(verbs: Verbs) -> None:
    request = verbs.request(CONFIGMAPS, manager="kubectl")
    made = await verbs.create(CONFIGMAPS, "a", request=request, data={"k": "v"})
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl", "Update")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}
    assert "managedFields" not in (await verbs.create(CONFIGMAPS, "b"))["metadata"]


async def test_duplicate_owners_are_dropped_with_a_warning(verbs: Verbs) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
    request = verbs.request(CONFIGMAPS)
    made = await verbs.create(CONFIGMAPS, "a", request=request, metadata={"ownerReferences": [owner, owner]})
    assert made["metadata"]["ownerReferences"] == [owner]
    assert [text.rpartition(": ")[2] for text in request.warnings] == ["1"]


async def test_objects_of_another_form_answer_in_their_own(verbs: Verbs) -> None:
    """Events of the newer group are stored as the older one's."""
    fields: Object = {
        "eventTime": "2025-01-01T00:00:00.000000Z",
        "reportingController": "example.io/c",
        "reportingInstance": "c-1",
        "action": "Do",
        "reason": "Why",
        "type": "Normal",
        "note": "text",
        "regarding": {"namespace": "default"},
    }
    made = await verbs.create(NEW_EVENTS, "e", **fields)
    assert (made["apiVersion"], made["note"]) == ("events.k8s.io/v1", "text")
    assert made["metadata"]["resourceVersion"] == str(verbs.store.revision)
    stored = verbs.get(NEW_EVENTS, "e")
    assert stored is not None
    assert (stored["apiVersion"], stored["message"]) == ("v1", "text")


async def test_an_older_version_is_stored_as_the_storage_version(verbs: Verbs) -> None:
    await verbs.define(crd(version(), version("v1beta1")))
    made = await verbs.create(OLD_WIDGETS, "a", spec={"n": 1})
    stored = verbs.get(WIDGETS, "a")
    assert stored is not None
    assert (made["apiVersion"], stored["apiVersion"]) == ("example.io/v1beta1", "example.io/v1")
    assert {**made, "apiVersion": ""} == {**stored, "apiVersion": ""}


# -- addresses ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "changes", "message"),
    [
        ({"name": "a", "namespace": "other"}, {}, "the namespace of the provided object does not match"),
        ({"name": "a"}, {"name": "b"}, r"the name of the object \(a\) does not match the name on the URL \(b\)"),
    ],
    ids=["namespace", "name"],
)
async def test_an_object_goes_only_where_it_says(verbs: Verbs, metadata: Object, changes: Object, message: str) -> None:
    request = verbs.request(CONFIGMAPS, **changes)
    with pytest.raises(errors.BadRequest, match=message):
        await verbs.create(CONFIGMAPS, request=request, metadata=metadata)


async def test_the_address_names_what_has_no_name(verbs: Verbs) -> None:
    request = verbs.request(CONFIGMAPS, name="b")
    assert (await verbs.create(CONFIGMAPS, request=request))["metadata"]["name"] == "b"


async def test_a_namespace_is_dropped_where_there_is_none(verbs: Verbs) -> None:
    made = await verbs.create(NAMESPACES, "n", metadata={"namespace": "default"})
    assert "namespace" not in made["metadata"]


async def test_a_missing_name_is_invalid(verbs: Verbs) -> None:
    with pytest.raises(errors.Invalid, match="name or generateName is required"):
        await verbs.create(CONFIGMAPS)


async def test_clusters_do_not_see_each_others_namespaces_or_objects(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a")
    request = verbs.request(CONFIGMAPS, cluster=OTHER)
    with pytest.raises(errors.NotFound, match='namespaces "default" not found'):
        await verbs.create(CONFIGMAPS, "a", request=request)
    await verbs.create(NAMESPACES, "default", request=verbs.request(NAMESPACES, cluster=OTHER))
    await verbs.create(CONFIGMAPS, "a", request=request, data={"k": "theirs"})
    mine, theirs = verbs.get(CONFIGMAPS, "a"), verbs.get(CONFIGMAPS, "a", cluster=OTHER)
    assert mine is not None
    assert theirs is not None
    assert ("data" in mine, theirs["data"]) == (False, {"k": "theirs"})


# -- names that are taken -----------------------------------------------------


async def test_a_name_is_taken_once(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a", data={"k": "first"})
    with pytest.raises(errors.AlreadyExists, match=r'^configmaps "a" already exists$'):
        await verbs.create(CONFIGMAPS, "a")
    kept = verbs.get(CONFIGMAPS, "a")
    assert kept is not None
    assert kept["data"] == {"k": "first"}


async def test_of_many_at_once_one_wins(verbs: Verbs) -> None:
    tries = [verbs.create(CONFIGMAPS, "a", data={"k": str(number)}) for number in range(10)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    won = [result for result in results if isinstance(result, dict)]
    assert [type(result) for result in results].count(errors.AlreadyExists) == 9
    assert won == [verbs.get(CONFIGMAPS, "a")]


@pytest.mark.parametrize("dry_run", [False, True], ids=["real", "dry run"])
async def test_a_name_that_is_being_deleted_is_still_taken(verbs: Verbs, dry_run: bool) -> None:
    await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": ["example.io/wait"]})
    await verbs.delete(CONFIGMAPS, "a")
    with pytest.raises(errors.AlreadyExists, match=r'^object is being deleted: configmaps "a" already exists$'):
        await verbs.create(CONFIGMAPS, "a", request=verbs.request(CONFIGMAPS, dry_run=dry_run))


async def test_a_given_name_beside_a_prefix_is_used(verbs: Verbs) -> None:
    made = await verbs.create(CONFIGMAPS, "a", metadata={"generateName": "gen-"})
    assert made["metadata"]["name"] == "a"
    with pytest.raises(errors.AlreadyExists, match="was not able to generate a unique name"):
        await verbs.create(CONFIGMAPS, "a", metadata={"generateName": "gen-"})


async def test_generated_names_are_tried_until_one_is_free(verbs: Verbs, monkeypatch: pytest.MonkeyPatch) -> None:
    await verbs.create(CONFIGMAPS, "x-1")
    await verbs.create(CONFIGMAPS, "x-2")
    names = iter(["x-1", "x-2", "x-3"])
    monkeypatch.setattr(create_module, "make_generated_name", lambda _: next(names))
    made = await verbs.create(CONFIGMAPS, metadata={"generateName": "x-"}, data={"k": "v"})
    assert (made["metadata"]["name"], made["data"]) == ("x-3", {"k": "v"})


async def test_generated_names_are_not_tried_for_ever(verbs: Verbs, monkeypatch: pytest.MonkeyPatch) -> None:
    await verbs.create(CONFIGMAPS, "x-1")
    tried = []

    def make(prefix: str) -> str:
        tried.append(prefix)
        return "x-1"

    monkeypatch.setattr(create_module, "make_generated_name", make)
    with pytest.raises(
        errors.AlreadyExists, match=r'configmaps "x-1" already exists, the server was not able'
    ) as caught:
        await verbs.create(CONFIGMAPS, metadata={"generateName": "x-"})
    assert tried == ["x-"] * 8
    assert caught.value.retry_after_seconds == 1


async def test_many_generated_names_at_once_are_all_different(verbs: Verbs) -> None:
    made = await asyncio.gather(*(verbs.create(CONFIGMAPS, metadata={"generateName": "x-"}) for _ in range(50)))
    assert len({obj["metadata"]["name"] for obj in made}) == 50
    assert len({obj["metadata"]["uid"] for obj in made}) == 50


async def test_admission_changes_an_object_once_however_many_names_are_tried(
    embedded: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it sees no name before there is one, as kube-apiserver's does."""

    def count(a: Attributes) -> None:
        assert a.obj is not None
        a.obj.setdefault("data", {})["n"] = a.obj.get("data", {}).get("n", "") + "+"

    recorder = Recorder(count)
    verbs = await with_plugin(embedded, recorder)
    names = iter(["x-1", "x-1", "x-2"])
    monkeypatch.setattr(create_module, "make_generated_name", lambda _: next(names))
    await verbs.create(CONFIGMAPS, metadata={"generateName": "x-"})
    made = await verbs.create(CONFIGMAPS, metadata={"generateName": "x-"})
    assert made["data"] == {"n": "+"}
    assert recorder.admitted == [(Operation.CREATE, "", "")] * 2
    assert recorder.validated == [(Operation.CREATE, "", name) for name in ("x-1", "x-1", "x-2")]


# -- admission ----------------------------------------------------------------


async def test_admission_may_put_another_object_in_its_place(embedded: Store) -> None:
    def replace(a: Attributes) -> None:
        assert a.obj is not None
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
        a.obj = {**a.obj, "data": {"k": "admitted"}}
        a.obj["metadata"] = a.obj["metadata"] | {"ownerReferences": [owner, owner]}

    verbs = await with_plugin(embedded, Recorder(replace))
    request = verbs.request(CONFIGMAPS)
    made = await verbs.create(CONFIGMAPS, "a", request=request, data={"k": "sent"})
    assert made["data"] == {"k": "admitted"}
    assert len(made["metadata"]["ownerReferences"]) == 1
    assert "after mutating admission happens" in request.warnings[0]


async def test_what_admission_makes_of_an_object_is_validated(embedded: Store) -> None:
    def spoil(a: Attributes) -> None:
        assert a.obj is not None
        a.obj["metadata"]["labels"] = {"bad key!": "x"}

    verbs = await with_plugin(embedded, Recorder(spoil))
    with pytest.raises(errors.Invalid, match=r"metadata\.labels"):
        await verbs.create(CONFIGMAPS, "a")
    assert verbs.get(CONFIGMAPS, "a") is None


async def test_admission_cannot_move_an_object_to_another_namespace(embedded: Store) -> None:
    def move(a: Attributes) -> None:
        assert a.obj is not None
        a.obj["metadata"]["namespace"] = "other"

    verbs = await with_plugin(embedded, Recorder(move))
    with pytest.raises(errors.BadRequest, match="the namespace of the provided object does not match"):
        await verbs.create(CONFIGMAPS, "a")
    assert await verbs.list_names(CONFIGMAPS, None) == []


# -- versions and dry runs ----------------------------------------------------


@pytest.mark.parametrize("sent", ["0", "000", "abc", ""])
async def test_what_is_no_version_is_forgotten(verbs: Verbs, sent: str) -> None:
    made = await verbs.create(CONFIGMAPS, "a", metadata={"resourceVersion": sent})
    assert made["metadata"]["resourceVersion"] == str(verbs.store.revision)


async def test_a_new_object_has_no_version(verbs: Verbs) -> None:
    with pytest.raises(
        errors.StatusError, match=r"^resourceVersion should not be set on objects to be created$"
    ) as caught:
        await verbs.create(CONFIGMAPS, "a", metadata={"resourceVersion": "5"})
    assert caught.value.code == 500
    with pytest.raises(errors.Invalid):  # what is wrong with the object comes first
        await verbs.create(CONFIGMAPS, "A", metadata={"resourceVersion": "5"})


async def test_a_dry_run_writes_nothing(verbs: Verbs) -> None:
    before = verbs.store.revision
    request = verbs.request(CONFIGMAPS, dry_run=True)
    made = await verbs.create(CONFIGMAPS, "a", request=request)
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    generated = await verbs.create(CONFIGMAPS, request=request, metadata={"generateName": "x-"})
    assert generated["metadata"]["name"].startswith("x-")
    assert (verbs.store.revision, await verbs.list_names(CONFIGMAPS)) == (before, [])
    await verbs.create(CONFIGMAPS, "a")
    with pytest.raises(errors.AlreadyExists):
        await verbs.create(CONFIGMAPS, "a", request=request)


# -- meanwhile ----------------------------------------------------------------


@pytest.fixture
async def busy(verbs: Verbs) -> Verbs:
    await verbs.create(NAMESPACES, "busy")
    return verbs


async def finish_namespace(verbs: Verbs) -> None:
    """Delete the namespace and take its finalizer off: it is gone."""
    await verbs.delete(NAMESPACES, "busy")
    request = verbs.request(NAMESPACES, "busy", subresource="finalize")
    await verbs.change(NAMESPACES, "busy", lambda obj: obj.pop("spec"), request)
    assert verbs.get(NAMESPACES, "busy", "") is None


async def recreate_namespace(verbs: Verbs) -> None:
    await finish_namespace(verbs)
    await verbs.create(NAMESPACES, "busy")


@pytest.mark.parametrize(
    ("meanwhile", "expected", "message"),
    [
        (lambda verbs: verbs.delete(NAMESPACES, "busy"), errors.Forbidden, "because it is being terminated"),
        (finish_namespace, errors.NotFound, 'namespaces "busy" not found'),
    ],
    ids=["terminating", "gone"],
)
async def test_nothing_lands_in_a_namespace_that_was_deleted_meanwhile(
    busy: Verbs, meanwhile: Callable[[Verbs], Any], expected: type[Exception], message: str
) -> None:
    busy.racing.meanwhile = [lambda: meanwhile(busy)]
    with pytest.raises(expected, match=message):
        await busy.create(CONFIGMAPS, "a", request=busy.request(CONFIGMAPS, namespace="busy"))
    assert await busy.list_names(CONFIGMAPS, "busy") == []


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda verbs: verbs.change(NAMESPACES, "busy", lambda obj: obj["metadata"]["labels"].update(x="y")),
        recreate_namespace,
    ],
    ids=["labelled", "made anew"],
)
async def test_a_namespace_that_changes_meanwhile_still_takes_objects(
    busy: Verbs, meanwhile: Callable[[Verbs], Any]
) -> None:
    busy.racing.meanwhile = [lambda: meanwhile(busy)]
    await busy.create(CONFIGMAPS, "a", request=busy.request(CONFIGMAPS, namespace="busy"))
    assert await busy.list_names(CONFIGMAPS, "busy") == ["a"]


async def test_creations_racing_the_deletion_of_their_namespace_leave_none_behind(busy: Verbs) -> None:
    """Whatever was answered with success is there to be swept; after the deletion nothing is added."""
    request = busy.request(CONFIGMAPS, namespace="busy")
    creations = [busy.create(CONFIGMAPS, f"c{number}", request=request) for number in range(20)]
    results = await asyncio.gather(
        *creations[:10], busy.delete(NAMESPACES, "busy"), *creations[10:], return_exceptions=True
    )
    made = [result["metadata"]["name"] for result in results if isinstance(result, dict)]
    refused = [result for result in results if isinstance(result, BaseException)]
    assert all(isinstance(error, errors.Forbidden) for error in refused)
    assert await busy.list_names(CONFIGMAPS, "busy") == sorted(made)
    namespace = busy.get(NAMESPACES, "busy", "")
    assert namespace is not None
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in results if isinstance(obj, dict)]
    assert max(versions, default=0) <= int(namespace["metadata"]["resourceVersion"])


async def terminate_definition(verbs: Verbs) -> None:
    await verbs.delete(CRDS, "widgets.example.io")


async def finish_definition(verbs: Verbs) -> None:
    await terminate_definition(verbs)
    await verbs.change(CRDS, "widgets.example.io", lambda obj: obj["metadata"].pop("finalizers"))
    assert verbs.get(CRDS, "widgets.example.io", "") is None


TERMINATING = 'widgets.example.io "a" is forbidden: create not allowed while custom resource definition is terminating'


@pytest.mark.parametrize(
    ("meanwhile", "expected", "message"),
    [
        (terminate_definition, errors.Forbidden, TERMINATING),
        (finish_definition, errors.NotFound, 'widgets.example.io "a" not found'),
    ],
    ids=["terminating", "gone"],
)
async def test_no_object_outlives_its_definition(
    verbs: Verbs, meanwhile: Callable[[Verbs], Any], expected: type[errors.StatusError], message: str
) -> None:
    """It would be there again when somebody defines the same name anew."""
    await verbs.define(crd())
    verbs.racing.meanwhile = [lambda: meanwhile(verbs)]
    resource = verbs.resource(WIDGETS)
    with pytest.raises(expected) as caught:
        await verbs.create(WIDGETS, "a")
    assert caught.value.message == message
    assert verbs.store.count(Scope(resource.key)) == 0


async def test_a_terminating_definition_takes_no_objects(verbs: Verbs) -> None:
    await verbs.define(crd())
    made = await verbs.create(WIDGETS, "old")
    await terminate_definition(verbs)
    with pytest.raises(errors.Forbidden) as caught:
        await verbs.create(WIDGETS, "a")
    assert caught.value.message == TERMINATING
    await verbs.change(WIDGETS, "old", lambda obj: obj.update(spec={"n": 1}))
    assert made["metadata"]["name"] == "old"


async def test_a_definition_that_changes_meanwhile_still_takes_objects(verbs: Verbs) -> None:
    await verbs.define(crd())
    verbs.racing.meanwhile = [lambda: verbs.define(crd(version(), version("v1beta1")))]
    await verbs.create(WIDGETS, "a")
    assert verbs.get(WIDGETS, "a") is not None


async def test_the_same_name_taken_meanwhile_is_a_conflict(verbs: Verbs) -> None:
    verbs.racing.meanwhile = [lambda: verbs.create(CONFIGMAPS, "a", data={"k": "theirs"})]
    with pytest.raises(errors.AlreadyExists):
        await verbs.create(CONFIGMAPS, "a", data={"k": "mine"})


async def test_a_store_that_cannot_write_is_told(verbs: Verbs) -> None:
    async def fail() -> None:
        raise NoSpace("full")

    verbs.racing.meanwhile = [fail]
    with pytest.raises(errors.ServiceUnavailable):
        await verbs.create(SECRETS, "a", request=verbs.request(SECRETS, user=ADMIN, cluster=CLUSTER))
