"""update: preconditions, races, what no update changes, and updates that create or delete."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from kcp.meta import codec, errors
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.update import Change, update
from kcp.store import NoSpace
from tests.registry.test_create import Recorder, with_plugin
from tests.registry.verbs import (
    CONFIGMAPS,
    JANE,
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
    from collections.abc import Callable

    from kcp.admission.attributes import Attributes
    from kcp.meta.codec import Object
    from kcp.store import Store

RBAC = "rbac.authorization.k8s.io"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def set_data(value: str) -> Callable[[Object], None]:
    return lambda obj: obj.update(data={"k": value})


def add_data(key: str) -> Callable[[Object], None]:
    return lambda obj: obj.setdefault("data", {}).update({key: "here"})


@pytest.fixture
async def made(verbs: Verbs) -> Object:
    return await verbs.create(CONFIGMAPS, "a", data={"k": "0"})


# -- a plain update -----------------------------------------------------------


async def test_a_change_gets_a_new_version(verbs: Verbs, made: Object) -> None:
    written = await verbs.put(CONFIGMAPS, "a", made | {"data": {"k": "1"}})
    assert not written.created
    body = codec.loads(written.body)
    assert body == verbs.get(CONFIGMAPS, "a")
    assert body["data"] == {"k": "1"}
    assert int(body["metadata"]["resourceVersion"]) == verbs.store.revision > int(made["metadata"]["resourceVersion"])


async def test_no_change_keeps_the_version(verbs: Verbs, made: Object) -> None:
    before, commits = verbs.store.revision, verbs.racing.commits
    assert codec.loads((await verbs.put(CONFIGMAPS, "a", made)).body) == made
    assert await verbs.change(CONFIGMAPS, "a", lambda obj: None) == made
    assert (verbs.store.revision, verbs.racing.commits) == (before, commits)


async def test_true_is_not_one(verbs: Verbs) -> None:
    """Python thinks so, and would not see the change."""
    await verbs.define(crd())
    await verbs.create(WIDGETS, "a", spec={"on": [True], "n": 1})
    changed = await verbs.change(WIDGETS, "a", lambda obj: obj["spec"].update(on=[1]))
    assert (changed["spec"]["on"] == [1], changed["spec"]["on"][0] is True) == (True, False)
    assert changed["metadata"]["generation"] == 2


async def test_the_order_of_fields_is_no_change(verbs: Verbs) -> None:
    await verbs.define(crd())
    made = await verbs.create(WIDGETS, "a", spec={"on": True, "list": [{"x": 1, "y": False}]})
    turned = {"list": [{"y": False, "x": 1}], "on": True}
    assert await verbs.change(WIDGETS, "a", lambda obj: obj.update(spec=turned)) == made


async def test_a_version_is_a_number(verbs: Verbs, made: Object) -> None:
    metadata = made["metadata"] | {"resourceVersion": "00" + made["metadata"]["resourceVersion"]}
    await verbs.put(CONFIGMAPS, "a", made | {"metadata": metadata, "data": {"k": "1"}})


async def test_no_change_is_none_whatever_the_time(verbs: Verbs) -> None:
    """A manager that writes the same again changes only the time of its entry, which does not count."""
    request = verbs.request(CONFIGMAPS, manager="kubectl")
    made = await verbs.create(CONFIGMAPS, "a", request=request, data={"k": "v"})
    verbs.clock.advance(60)
    request = verbs.request(CONFIGMAPS, "a", manager="kubectl")
    again = {name: made[name] for name in ("kind", "apiVersion", "data")} | {"metadata": {"name": "a"}}
    assert codec.loads((await verbs.put(CONFIGMAPS, "a", again, request)).body) == made


async def test_a_dry_run_writes_nothing(verbs: Verbs, made: Object) -> None:
    before = verbs.store.revision
    request = verbs.request(CONFIGMAPS, "a", dry_run=True)
    shown = await verbs.change(CONFIGMAPS, "a", set_data("1"), request)
    assert shown["data"] == {"k": "1"}
    assert shown["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert (verbs.store.revision, verbs.get(CONFIGMAPS, "a")) == (before, made)


async def test_what_is_not_there_cannot_be_changed(verbs: Verbs) -> None:
    with pytest.raises(errors.NotFound, match='configmaps "none" not found'):
        await verbs.change(CONFIGMAPS, "none", set_data("1"))


async def test_another_cluster_is_another_world(verbs: Verbs, made: Object) -> None:
    with pytest.raises(errors.NotFound):
        await verbs.change(CONFIGMAPS, "a", set_data("1"), verbs.request(CONFIGMAPS, "a", cluster=OTHER))
    assert verbs.get(CONFIGMAPS, "a") == made


async def test_managers_are_tracked(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a", request=verbs.request(CONFIGMAPS, manager="maker"), data={"k": "0"})
    request = verbs.request(CONFIGMAPS, "a", manager="editor")
    changed = await verbs.change(CONFIGMAPS, "a", set_data("1"), request)
    managers = {entry["manager"]: entry for entry in changed["metadata"]["managedFields"]}
    assert managers["editor"]["fieldsV1"] == {"f:data": {"f:k": {}}}


async def test_managers_may_be_recorded_under_another_endpoint(verbs: Verbs) -> None:
    """A write through `scale` follows the rules of the object itself."""
    await verbs.define(crd(version(subresources={"status": {}, "scale": {}})))
    await verbs.create(WIDGETS, "a", request=verbs.request(WIDGETS, manager="maker"), spec={"n": 1})
    request = verbs.request(WIDGETS, "a", manager="scaler")
    changed = await verbs.change(WIDGETS, "a", lambda obj: obj["spec"].update(n=2), request, tracked_as="scale")
    entries = [entry for entry in changed["metadata"]["managedFields"] if entry["manager"] == "scaler"]
    assert [entry.get("subresource") for entry in entries] == ["scale"]


async def test_status_is_written_through_its_own_endpoint_only(verbs: Verbs) -> None:
    await verbs.define(crd(version(subresources={"status": {}})))
    made = await verbs.create(WIDGETS, "a", spec={"n": 1}, status={"x": 1})
    assert "status" not in made
    changes = {"spec": {"n": 2}, "status": {"x": 2}}
    status = await verbs.change(
        WIDGETS, "a", lambda obj: obj.update(changes), verbs.request(WIDGETS, "a", subresource="status")
    )
    assert (status["spec"], status["status"], status["metadata"]["generation"]) == ({"n": 1}, {"x": 2}, 1)
    spec = await verbs.change(WIDGETS, "a", lambda obj: obj.update(spec={"n": 2}, status={"x": 3}))
    assert (spec["spec"], spec["status"], spec["metadata"]["generation"]) == ({"n": 2}, {"x": 2}, 2)


async def test_an_older_version_answers_in_its_own(verbs: Verbs) -> None:
    await verbs.define(crd(version(), version("v1beta1")))
    made = await verbs.create(OLD_WIDGETS, "a", spec={"n": 1})
    changed = await verbs.change(OLD_WIDGETS, "a", lambda obj: obj["spec"].update(n=2))
    assert (changed["apiVersion"], changed["spec"]) == ("example.io/v1beta1", {"n": 2})
    assert changed["metadata"]["resourceVersion"] == str(verbs.store.revision)
    assert await verbs.change(OLD_WIDGETS, "a", lambda obj: None) == changed
    assert made["metadata"]["uid"] == changed["metadata"]["uid"]


# -- what no update changes ---------------------------------------------------


async def test_what_no_update_changes(verbs: Verbs, made: Object) -> None:
    sent = {"name": "a", "creationTimestamp": "1999-01-01T00:00:00Z", "selfLink": "/x", "generation": 7}
    metadata = codec.loads((await verbs.put(CONFIGMAPS, "a", {**made, "metadata": sent, "data": {}})).body)["metadata"]
    assert {**metadata, "resourceVersion": ""} == {**made["metadata"], "resourceVersion": ""}


async def test_a_deletion_cannot_be_taken_back(verbs: Verbs) -> None:
    made = await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": ["example.io/wait"]})
    await verbs.delete(CONFIGMAPS, "a")
    written = await verbs.put(CONFIGMAPS, "a", {**made, "metadata": {"name": "a", "finalizers": ["example.io/wait"]}})
    metadata = codec.loads(written.body)["metadata"]
    assert metadata["deletionTimestamp"] == "2025-01-01T00:00:00Z"
    assert metadata["deletionGracePeriodSeconds"] == 0


async def test_nobody_is_deleted_by_an_update(verbs: Verbs, made: Object) -> None:
    mark = {"deletionTimestamp": "2025-01-01T00:00:00Z"}
    with pytest.raises(errors.Invalid, match=r"metadata.deletionTimestamp: .*field is immutable"):
        await verbs.change(CONFIGMAPS, "a", lambda obj: obj["metadata"].update(mark))


@pytest.mark.parametrize(
    ("metadata", "expected", "message"),
    [
        ({"name": "b"}, errors.BadRequest, r"the name of the object \(b\) does not match the name on the URL \(a\)"),
        ({"namespace": "other"}, errors.BadRequest, "the namespace of the provided object does not match"),
        ({"uid": "other"}, errors.Conflict, "Precondition failed: UID in precondition: other, UID in object meta: "),
        ({"resourceVersion": "1"}, errors.Conflict, MODIFIED),
        ({"resourceVersion": "abc"}, errors.StatusError, 'strconv.ParseUint: parsing "abc": invalid syntax'),
        ({"resourceVersion": "9" * 20}, errors.StatusError, 'strconv.ParseUint: parsing "9+": value out of range'),
        ({"resourceVersion": "1" * 5000}, errors.StatusError, "value out of range"),
        ({"labels": {"!": ""}}, errors.Invalid, "metadata.labels"),
    ],
    ids=[
        "name",
        "namespace",
        "uid",
        "stale version",
        "no version",
        "too large a version",
        "far too large a version",
        "labels",
    ],
)
async def test_refused_replacements(
    verbs: Verbs, made: Object, metadata: Object, expected: type[errors.StatusError], message: str
) -> None:
    with pytest.raises(expected, match=message):
        await verbs.put(CONFIGMAPS, "a", {**made, "metadata": made["metadata"] | metadata, "data": {"k": "1"}})
    assert verbs.get(CONFIGMAPS, "a") == made


async def test_a_patch_cannot_change_the_uid_either(verbs: Verbs, made: Object) -> None:
    with pytest.raises(errors.Invalid, match=r"metadata.uid: .*field is immutable"):
        await verbs.change(CONFIGMAPS, "a", lambda obj: obj["metadata"].update(uid="other"))


@pytest.mark.parametrize("sent", ["", "0", "00"])
async def test_replacing_without_a_version(verbs: Verbs, made: Object, sent: str) -> None:
    """Plain kinds take it; others, such as custom resources, want to know what is replaced."""
    await verbs.put(CONFIGMAPS, "a", {**made, "metadata": {"name": "a", "resourceVersion": sent}, "data": {"k": "1"}})
    await verbs.define(crd())
    widget = await verbs.create(WIDGETS, "w")
    with pytest.raises(
        errors.Invalid, match=r"metadata.resourceVersion: Invalid value: 0: must be specified"
    ) as caught:
        await verbs.put(WIDGETS, "w", {**widget, "metadata": {"name": "w", "resourceVersion": sent}})
    assert caught.value.message.startswith('widgets.example.io "w" is invalid')


async def test_a_namespace_is_dropped_where_there_is_none(verbs: Verbs) -> None:
    changed = await verbs.change(NAMESPACES, "default", lambda obj: obj["metadata"].update(namespace="x"))
    assert "namespace" not in changed["metadata"]


async def test_duplicate_owners_of_a_replacement_and_of_a_patch(verbs: Verbs, made: Object) -> None:
    """A patch is looked at only once, after admission."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
    twice = {"ownerReferences": [owner, owner]}
    put, patch = verbs.request(CONFIGMAPS, "a"), verbs.request(CONFIGMAPS, "a")
    await verbs.put(CONFIGMAPS, "a", {**made, "metadata": {"name": "a", **twice}}, put)
    changed = await verbs.change(CONFIGMAPS, "a", lambda obj: obj["metadata"].update(twice), patch)
    assert changed["metadata"]["ownerReferences"] == [owner]
    assert ["after mutating admission" in text for text in put.warnings + patch.warnings] == [False, True]


async def test_admission_sees_both_objects_and_may_replace_the_new_one(embedded: Store) -> None:
    seen = []

    def replace(a: Attributes) -> None:
        if a.old_obj is not None and a.obj is not None:
            seen.append((a.old_obj["data"], a.obj["data"]))
            a.obj = {**a.obj, "data": {"k": "admitted"}}

    verbs = await with_plugin(embedded, Recorder(replace))
    await verbs.create(CONFIGMAPS, "a", data={"k": "0"})
    assert (await verbs.change(CONFIGMAPS, "a", set_data("1")))["data"] == {"k": "admitted"}
    assert seen == [({"k": "0"}, {"k": "1"})]


# -- races --------------------------------------------------------------------


async def test_of_two_updates_at_once_both_count(verbs: Verbs, made: Object) -> None:
    await asyncio.gather(*(verbs.change(CONFIGMAPS, "a", add_data(f"k{number}")) for number in range(10)))
    found = verbs.get(CONFIGMAPS, "a")
    assert found is not None
    assert found["data"] == {"k": "0"} | {f"k{number}": "here" for number in range(10)}


async def test_of_two_replacements_of_one_version_one_counts(verbs: Verbs, made: Object) -> None:
    puts = [verbs.put(CONFIGMAPS, "a", made | {"data": {"k": str(number)}}) for number in range(1, 6)]
    results = await asyncio.gather(*puts, return_exceptions=True)
    lost = [result for result in results if isinstance(result, errors.Conflict)]
    assert len(lost) == 4
    assert all(MODIFIED in error.message for error in lost)


async def test_a_lost_race_is_run_again_with_what_is_there_now(verbs: Verbs, made: Object) -> None:
    verbs.racing.meanwhile = [lambda: verbs.change(CONFIGMAPS, "a", add_data("theirs"))]
    changed = await verbs.change(CONFIGMAPS, "a", add_data("mine"))
    assert changed["data"] == {"k": "0", "theirs": "here", "mine": "here"}


async def test_a_lost_race_with_a_version_is_a_conflict(verbs: Verbs, made: Object) -> None:
    verbs.racing.meanwhile = [lambda: verbs.change(CONFIGMAPS, "a", add_data("theirs"))]
    with pytest.raises(errors.Conflict, match=MODIFIED):
        await verbs.put(CONFIGMAPS, "a", made | {"data": {"k": "1"}})


async def test_races_are_not_run_for_ever(verbs: Verbs, made: Object) -> None:
    async def interfere() -> None:
        current = verbs.get(CONFIGMAPS, "a")
        assert current is not None
        data = current["data"] | {f"k{len(current['data'])}": "x"}
        waiting, verbs.racing.meanwhile = verbs.racing.meanwhile, []
        await verbs.put(CONFIGMAPS, "a", current | {"data": data})
        verbs.racing.meanwhile = waiting

    verbs.racing.meanwhile = [interfere] * 5
    with pytest.raises(errors.Conflict, match=MODIFIED):
        await verbs.change(CONFIGMAPS, "a", add_data("mine"), attempts=3)
    assert len(verbs.racing.meanwhile) == 2
    await verbs.change(CONFIGMAPS, "a", add_data("mine"), attempts=3)


async def test_what_was_deleted_meanwhile_is_not_found(verbs: Verbs, made: Object) -> None:
    verbs.racing.meanwhile = [lambda: verbs.delete(CONFIGMAPS, "a")]
    with pytest.raises(errors.NotFound):
        await verbs.change(CONFIGMAPS, "a", set_data("1"))
    assert verbs.get(CONFIGMAPS, "a") is None


async def test_what_was_deleted_and_made_anew_meanwhile_is_another_object(verbs: Verbs, made: Object) -> None:
    async def replace() -> None:
        await verbs.delete(CONFIGMAPS, "a")
        await verbs.create(CONFIGMAPS, "a", data={"k": "new"})

    verbs.racing.meanwhile = [replace]
    sent = {**made, "metadata": {"name": "a", "uid": made["metadata"]["uid"]}, "data": {"k": "1"}}
    with pytest.raises(errors.Conflict, match="Precondition failed: UID in precondition"):
        await verbs.put(CONFIGMAPS, "a", sent)


async def test_updates_racing_a_deletion_never_bring_it_back(verbs: Verbs, made: Object) -> None:
    changes = [verbs.change(CONFIGMAPS, "a", add_data(f"k{number}")) for number in range(6)]
    await asyncio.gather(*changes[:3], verbs.delete(CONFIGMAPS, "a"), *changes[3:], return_exceptions=True)
    assert verbs.get(CONFIGMAPS, "a") is None


async def test_a_store_that_cannot_write_is_told(verbs: Verbs, made: Object) -> None:
    async def fail() -> None:
        raise NoSpace("full")

    verbs.racing.meanwhile = [fail]
    with pytest.raises(errors.ServiceUnavailable):
        await verbs.change(CONFIGMAPS, "a", set_data("1"))


# -- updates that delete ------------------------------------------------------


@pytest.mark.parametrize("dry_run", [False, True], ids=["real", "dry run"])
async def test_the_last_finalizer_takes_the_object_with_it(verbs: Verbs, dry_run: bool) -> None:
    await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": ["example.io/wait"]})
    marked = codec.loads((await verbs.delete(CONFIGMAPS, "a")).body)
    request = verbs.request(CONFIGMAPS, "a", dry_run=dry_run)
    last = await verbs.change(CONFIGMAPS, "a", lambda obj: obj["metadata"].pop("finalizers"), request)
    assert last["metadata"]["resourceVersion"] == marked["metadata"]["resourceVersion"]
    assert "finalizers" not in last["metadata"]
    assert (verbs.get(CONFIGMAPS, "a") is None) is not dry_run


async def test_a_finalizer_that_stays_holds_the_object(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": ["example.io/a", "example.io/b"]})
    await verbs.delete(CONFIGMAPS, "a")
    await verbs.change(CONFIGMAPS, "a", lambda obj: obj["metadata"]["finalizers"].remove("example.io/a"))
    assert verbs.get(CONFIGMAPS, "a") is not None


async def test_without_a_deletion_the_last_finalizer_takes_nothing(verbs: Verbs) -> None:
    await verbs.create(CONFIGMAPS, "a", metadata={"finalizers": ["example.io/wait"]})
    await verbs.change(CONFIGMAPS, "a", lambda obj: obj["metadata"].pop("finalizers"))
    assert verbs.get(CONFIGMAPS, "a") is not None


# -- updates that create ------------------------------------------------------


def configmap(**metadata: Any) -> Object:  # noqa: ANN401 - metadata
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "new", **metadata}, "data": {"k": "1"}}


async def test_some_updates_create(verbs: Verbs) -> None:
    request = verbs.request(CONFIGMAPS, "new", manager="kubectl")
    written = await verbs.put(CONFIGMAPS, "new", configmap(), request, may_create=True)
    assert written.created
    body = codec.loads(written.body)
    assert body == verbs.get(CONFIGMAPS, "new")
    assert [entry["manager"] for entry in body["metadata"]["managedFields"]] == ["kubectl"]


async def test_an_update_that_set_the_managers_itself_is_not_tracked_again(verbs: Verbs) -> None:
    request = verbs.request(CONFIGMAPS, "new", manager="kubectl")
    written = await verbs.put(CONFIGMAPS, "new", configmap(uid="x"), request, may_create=True, sets_managers=True)
    assert "managedFields" not in codec.loads(written.body)["metadata"]
    assert request.manager == "kubectl"
    changed = await verbs.change(CONFIGMAPS, "new", set_data("2"), request, sets_managers=True)
    assert "managedFields" not in changed["metadata"]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"uid": "x"}, "Precondition failed: UID in precondition: x, UID in object meta: $"),
        ({"resourceVersion": "5"}, MODIFIED),
    ],
    ids=["uid", "version"],
)
async def test_what_never_was_has_neither_uid_nor_version(verbs: Verbs, metadata: Object, message: str) -> None:
    with pytest.raises(errors.Conflict, match=message):
        await verbs.put(CONFIGMAPS, "new", configmap(**metadata), may_create=True)


async def test_no_update_creates_through_a_subresource(verbs: Verbs) -> None:
    request = verbs.request(NAMESPACES, "new", subresource="status")
    with pytest.raises(errors.NotFound):
        await verbs.put(NAMESPACES, "new", {"metadata": {"name": "new"}}, request, may_create=True)


async def test_creating_by_update_takes_permission_to_create(verbs: Verbs) -> None:
    """Who may only update must not be able to bring objects into being."""
    rules = {"verbs": ["update", "patch"], "apiGroups": [""], "resources": ["configmaps"]}
    await allow(verbs, rules)
    request = verbs.request(CONFIGMAPS, "new", user=JANE)
    message = (
        'configmaps "new" is forbidden: User "jane" cannot create resource "configmaps" in API group "" '
        'in the namespace "default"'
    )
    with pytest.raises(errors.Forbidden) as caught:
        await verbs.put(CONFIGMAPS, "new", configmap(), request, may_create=True)
    assert caught.value.message == message
    assert verbs.get(CONFIGMAPS, "new") is None


async def test_creating_by_update_with_permission_to_create(verbs: Verbs) -> None:
    await allow(verbs, {"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]})
    request = verbs.request(CONFIGMAPS, "new", user=JANE)
    assert (await verbs.put(CONFIGMAPS, "new", configmap(), request, may_create=True)).created


async def allow(verbs: Verbs, rule: Object) -> None:
    roles = GroupVersionResource(RBAC, "v1", "roles")
    bindings = GroupVersionResource(RBAC, "v1", "rolebindings")
    await verbs.create(roles, "r", rules=[rule])
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "r"}
    subject = {"apiGroup": RBAC, "kind": "User", "name": "jane"}
    await verbs.create(bindings, "b", roleRef=reference, subjects=[subject])


async def test_of_two_that_would_create_the_slower_one_changes(verbs: Verbs) -> None:
    """As two appliers of a new object do: neither is told that it exists already."""

    def transform(old: Object | None) -> Object:
        obj = configmap() if old is None else old
        obj.setdefault("data", {})["mine"] = "here"
        return obj

    verbs.racing.meanwhile = [lambda: verbs.create(CONFIGMAPS, "new", data={"theirs": "here"})]
    change = Change(transform, may_create=True, consumes=True)
    written = await update(verbs.registry, verbs.resource(CONFIGMAPS), verbs.request(CONFIGMAPS, "new"), change)
    assert not written.created
    assert codec.loads(written.body)["data"] == {"theirs": "here", "mine": "here"}


async def test_a_refusal_that_sounds_like_a_lost_race_is_passed_on(embedded: Store) -> None:
    def refuse(a: Attributes) -> None:
        if a.gvr == CONFIGMAPS:
            raise errors.AlreadyExists(CONFIGMAPS.group_resource, "elsewhere")

    verbs = await with_plugin(embedded, Recorder(refuse))
    with pytest.raises(errors.AlreadyExists, match="elsewhere"):
        await verbs.put(CONFIGMAPS, "new", configmap(), may_create=True)


async def test_events_of_the_newer_group_are_changed_in_their_form(verbs: Verbs) -> None:
    fields: Object = {
        "eventTime": "2025-01-01T00:00:00.000000Z",
        "reportingController": "example.io/c",
        "reportingInstance": "c-1",
        "action": "Do",
        "reason": "Why",
        "type": "Normal",
        "regarding": {"namespace": "default"},
    }
    await verbs.create(NEW_EVENTS, "e", **fields)
    series = {"count": 2, "lastObservedTime": "2025-01-01T00:00:01.000000Z"}
    changed = await verbs.change(NEW_EVENTS, "e", lambda obj: obj.update(series=series))
    assert (changed["apiVersion"], changed["series"]) == ("events.k8s.io/v1", series)
