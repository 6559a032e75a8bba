"""Deleting many objects at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from kcp.registry.stored import count_stored, find_kind, find_stored
from kcp.registry.sweep import delete_many, expire, stored_in
from kcp.store import Conflict, EmbeddedStore, NoSpace, ObjectKey, Put, ResourceKey, pack_object
from tests.reconcilers.control_plane import CLUSTER, CONFIGMAPS, CRDS, NAMESPACES, SECRETS, WIDGETS, ControlPlane, crd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from kcp.meta.codec import Object
    from kcp.store import Operation, Revision

CONFIGMAPS_KEY = ResourceKey("", "configmaps")
THINGS = ResourceKey("gone.example.io", "things")


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        plane = ControlPlane(store, FakeClock())
        await plane.create_namespace("default")
        await plane.create_namespace("other")
        yield plane


async def put_thing(plane: ControlPlane, name: str) -> None:
    await plane.store.commit(
        [Put(ObjectKey(THINGS, CLUSTER, "default", name), pack_object({"metadata": {"name": "t"}}))]
    )


async def test_a_namespace_is_swept_in_few_commits(plane: ControlPlane) -> None:
    for number in range(250):
        await plane.create(CONFIGMAPS, f"c{number}", "default")
    await plane.create(CONFIGMAPS, "kept", "other")
    before = plane.store.revision
    remaining = await delete_many(plane.registry, CONFIGMAPS_KEY, CLUSTER, "default", plane.client.user)
    assert (remaining.objects, remaining.errors) == (0, [])
    assert plane.names(CONFIGMAPS) == ["kept"]
    assert plane.store.revision - before == 3


async def test_without_a_namespace_all_go(plane: ControlPlane) -> None:
    await plane.create(CONFIGMAPS, "a", "default")
    await plane.create(CONFIGMAPS, "b", "other")
    await delete_many(plane.registry, CONFIGMAPS_KEY, CLUSTER, None, plane.client.user)
    assert plane.names(CONFIGMAPS) == []


async def test_namespaces_are_only_marked(plane: ControlPlane) -> None:
    remaining = await delete_many(plane.registry, ResourceKey("", "namespaces"), CLUSTER, None, plane.client.user)
    assert remaining.objects == 2, "one may not be deleted, one waits for its content"
    assert plane.names(NAMESPACES) == ["default", "other"]
    assert [str(error) for error in remaining.errors] == [
        'namespaces "default" is forbidden: this namespace may not be deleted'
    ]


async def test_the_resources_of_a_namespace_are_known(plane: ControlPlane) -> None:
    await plane.create(CONFIGMAPS, "a", "default")
    await plane.create(SECRETS, "b", "other")
    await put_thing(plane, "t")
    assert sorted(stored_in(plane.registry, CLUSTER, "default")) == [CONFIGMAPS_KEY, THINGS]


class Racing:
    """A store in which somebody else is faster, once."""

    def __init__(self, plane: ControlPlane, meanwhile: Object | None, error: Exception | None = None) -> None:
        self._plane = plane
        self._commit = plane.store.commit
        self._meanwhile = meanwhile
        self._error = error

    async def commit(self, operations: Sequence[Operation]) -> Revision:
        self._plane.store.commit = self._commit  # type: ignore[method-assign]
        if self._error is not None:
            raise self._error
        key = operations[0].key
        if self._meanwhile is None:
            await self._plane.client.delete(CLUSTER, CONFIGMAPS, key.namespace, key.name)
        else:
            metadata = self._meanwhile
            await self._plane.update(CONFIGMAPS, key.name, key.namespace, lambda obj: obj["metadata"].update(metadata))
        return await self._commit(operations)


@pytest.mark.parametrize(
    ("meanwhile", "left"),
    [(None, []), ({"labels": {"a": "b"}}, []), ({"finalizers": ["example.io/wait"]}, ["a"])],
    ids=["deleted", "changed", "held"],
)
async def test_lost_races_are_made_up_for(plane: ControlPlane, meanwhile: Object | None, left: list[str]) -> None:
    for name in "ab":
        await plane.create(CONFIGMAPS, name, "default")
    plane.store.commit = Racing(plane, meanwhile).commit  # type: ignore[method-assign]
    remaining = await delete_many(plane.registry, CONFIGMAPS_KEY, CLUSTER, "default", plane.client.user)
    assert plane.names(CONFIGMAPS) == left
    assert remaining.objects == len(left)
    assert dict(remaining.finalizers) == ({"example.io/wait": 1} if left else {})


async def test_races_over_what_nothing_serves_are_won(plane: ControlPlane) -> None:
    await put_thing(plane, "t")
    conflict = Conflict(ObjectKey(THINGS, CLUSTER, "default", "t"), None)
    plane.store.commit = Racing(plane, None, conflict).commit  # type: ignore[method-assign]
    await delete_many(plane.registry, THINGS, CLUSTER, None, plane.client.user)
    assert count_stored(plane.store, THINGS) == 0


async def test_a_store_that_cannot_write_is_told(plane: ControlPlane) -> None:
    await plane.create(CONFIGMAPS, "a", "default")
    plane.store.commit = Racing(plane, None, NoSpace("full")).commit  # type: ignore[method-assign]
    with pytest.raises(errors.ServiceUnavailable):
        await delete_many(plane.registry, CONFIGMAPS_KEY, CLUSTER, "default", plane.client.user)
    plane.store.commit = Racing(plane, None, NoSpace("full")).commit  # type: ignore[method-assign]
    with pytest.raises(errors.ServiceUnavailable):
        await expire(plane.store, CONFIGMAPS_KEY, 100, None)


async def test_old_objects_expire(plane: ControlPlane) -> None:
    for name in "abc":
        await plane.create(CONFIGMAPS, name, "default")
    revision = plane.store.revision
    await plane.create(CONFIGMAPS, "d", "default")
    assert await expire(plane.store, CONFIGMAPS_KEY, revision, None) == (3, None)
    assert plane.names(CONFIGMAPS) == ["d"]


async def test_an_expiring_object_that_changes_lives_on(plane: ControlPlane) -> None:
    await plane.create(CONFIGMAPS, "a", "default")
    revision = plane.store.revision
    plane.store.commit = Racing(plane, {"labels": {"a": "b"}}).commit  # type: ignore[method-assign]
    assert await expire(plane.store, CONFIGMAPS_KEY, revision, None) == (0, None)
    assert plane.names(CONFIGMAPS) == ["a"]


# -- from stored names to resources -------------------------------------------


async def test_stored_resources_are_found(plane: ControlPlane) -> None:
    registry = plane.registry
    events = find_stored(registry, CLUSTER, ResourceKey("", "events"))
    assert events is not None
    assert events.gvr.group == "", "the group that stores them as they are"
    assert find_stored(registry, CLUSTER, ResourceKey("", "pods")) is None
    assert find_stored(registry, CLUSTER, THINGS) is None
    await plane.create(CRDS, "widgets.example.io", **crd())
    assert find_stored(registry, CLUSTER, ResourceKey("example.io", "widgets")) is None, "not established"


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("v1", "ConfigMap", CONFIGMAPS),
        ("v1", "Pod", None),
        ("a/b/c", "ConfigMap", None),
        ("example.io/v1", "Widget", None),
        ("", "", None),
    ],
    ids=["built in", "not here", "malformed", "not defined", "empty"],
)
async def test_kinds_are_found(plane: ControlPlane, api_version: str, kind: str, expected: object) -> None:
    found = find_kind(plane.registry, CLUSTER, api_version, kind)
    assert (None if found is None else found.gvr) == expected
    assert WIDGETS.group == "example.io"
