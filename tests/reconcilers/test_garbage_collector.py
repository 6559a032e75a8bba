"""Owner references: background, foreground, orphan, and all that can be wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kcp.controller.controller import DONE
from kcp.meta import errors
from kcp.reconcilers import custom_resource_definitions, garbage_collector
from kcp.registry.owners import OwnerIndex
from kcp.store import ObjectKey, ResourceKey
from tests.reconcilers.control_plane import (
    CLUSTER,
    CLUSTER_ROLES,
    CONFIGMAPS,
    CRDS,
    EVENTS,
    NAMESPACES,
    SECRETS,
    WIDGETS,
    ControlPlane,
    crd,
    owned_by,
)

if TYPE_CHECKING:
    from kcp.meta.codec import Object


@pytest.fixture
async def collected(plane: ControlPlane) -> ControlPlane:
    plane.start(garbage_collector.new(plane.registry))
    return plane


async def make(plane: ControlPlane, name: str, *owners: Object, block: bool = False) -> Object:
    return await plane.create(CONFIGMAPS, name, "default", metadata=owned_by(*owners, block=block))


async def test_dependents_follow_their_owner(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    child = await make(collected, "child", owner)
    await make(collected, "grandchild", child)
    await make(collected, "bystander")
    await collected.settle()
    await collected.delete(CONFIGMAPS, "owner", "default", "Background")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == ["bystander"]


async def test_an_owner_in_another_cluster_is_none_of_ours(collected: ControlPlane) -> None:
    await collected.create_namespace("default", cluster="other")
    owner = await collected.create(CONFIGMAPS, "owner", "default", cluster="other")
    await make(collected, "child", owner)
    await collected.pass_time(3)
    assert collected.names(CONFIGMAPS) == []
    assert collected.names(CONFIGMAPS, cluster="other") == ["owner"]


async def test_a_dependent_with_a_live_owner_only_forgets_the_dead_one(collected: ControlPlane) -> None:
    dead, live = await make(collected, "dead"), await make(collected, "live")
    await make(collected, "child", dead, live)
    await collected.delete(CONFIGMAPS, "dead", "default")
    await collected.settle()
    child = collected.get(CONFIGMAPS, "child", "default")
    assert child is not None
    assert [reference["name"] for reference in child["metadata"]["ownerReferences"]] == ["live"]
    await collected.delete(CONFIGMAPS, "live", "default")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == []


async def test_an_object_of_an_owner_that_never_was_is_collected(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    await collected.create(CONFIGMAPS, "never", "default", metadata=owned_by(owner, name="nobody"))
    await collected.create(CONFIGMAPS, "wrong", "default", metadata=owned_by(owner, uid="another"))
    await make(collected, "right", owner)
    await collected.pass_time(3)
    assert collected.names(CONFIGMAPS) == ["owner", "right"]


async def test_an_owner_in_another_namespace_counts_as_absent(collected: ControlPlane) -> None:
    await collected.create_namespace("other")
    owner = await make(collected, "owner")
    await collected.create(CONFIGMAPS, "stranger", "other", metadata=owned_by(owner))
    await collected.pass_time(3)
    assert collected.names(CONFIGMAPS) == ["owner"]


async def test_a_cluster_scoped_owner_may_own_namespaced_objects(collected: ControlPlane) -> None:
    role = await collected.create(CLUSTER_ROLES, "role", rules=[])
    await make(collected, "child", role)
    await collected.settle()
    assert collected.names(CONFIGMAPS) == ["child"]
    await collected.delete(CLUSTER_ROLES, "role")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == []


async def test_a_cluster_scoped_object_with_a_namespaced_owner_is_left_alone(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    await collected.create(CLUSTER_ROLES, "role", rules=[], metadata=owned_by(owner))
    await collected.delete(CONFIGMAPS, "owner", "default")
    await collected.settle()
    assert collected.names(CLUSTER_ROLES) == ["role"]


async def test_references_to_unknown_kinds_wait_for_the_kind(plane: ControlPlane) -> None:
    plane.start(garbage_collector.new(plane.registry), custom_resource_definitions.new(plane.registry))
    owner = await make(plane, "owner")
    unknown = owned_by(owner, apiVersion="example.io/v1", kind="Widget", name="w")
    await plane.create(CONFIGMAPS, "child", "default", metadata=unknown)
    bad = owned_by(owner, apiVersion="a/b/c", kind="Widget", name="w")
    await plane.settle()
    assert plane.names(CONFIGMAPS) == ["child", "owner"]
    assert bad
    await plane.create(CRDS, "widgets.example.io", **crd())
    await plane.settle()
    assert plane.names(CONFIGMAPS) == ["owner"]


@pytest.mark.parametrize(("plural", "kind"), [("widgets", "Widget"), ("pansies", "Pansy")], ids=["guessed", "searched"])
async def test_custom_resources_own_and_are_owned(plane: ControlPlane, plural: str, kind: str) -> None:
    plane.start(garbage_collector.new(plane.registry), custom_resource_definitions.new(plane.registry))
    await plane.create(CRDS, f"{plural}.example.io", **crd(plural, kind))
    await plane.settle()
    gvr = WIDGETS._replace(resource=plural)
    owner = await plane.client.create(
        CLUSTER,
        gvr,
        {"kind": kind, "apiVersion": "example.io/v1", "metadata": {"name": "w", "namespace": "default"}},
    )
    child = await make(plane, "child", owner)
    await plane.client.create(
        CLUSTER,
        gvr,
        {
            "kind": kind,
            "apiVersion": "example.io/v1",
            "metadata": {"name": "w2", "namespace": "default", **owned_by(child)},
        },
    )
    await plane.settle()
    assert plane.names(CONFIGMAPS) == ["child"]
    await plane.delete(gvr, "w", "default")
    await plane.settle()
    assert plane.names(CONFIGMAPS) == []
    assert plane.names(gvr) == []


async def test_events_are_not_collected(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    regarding = {"namespace": "default", "name": "owner", "kind": "ConfigMap"}
    await collected.create(EVENTS, "e", "default", involvedObject=regarding, metadata=owned_by(owner))
    await collected.delete(CONFIGMAPS, "owner", "default")
    await collected.settle()
    assert collected.names(EVENTS) == ["e"]


async def test_dangling_references_added_later_are_found(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    await make(collected, "child")
    await collected.delete(CONFIGMAPS, "owner", "default")

    def adopt(obj: Object) -> None:
        obj["metadata"].update(owned_by(owner))

    await collected.update(CONFIGMAPS, "child", "default", adopt)
    await collected.settle()
    assert collected.names(CONFIGMAPS) == []


# -- orphan -------------------------------------------------------------------


async def test_orphans_stay_without_their_reference(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    other = await make(collected, "other")
    await make(collected, "child", owner)
    await make(collected, "shared", owner, other)
    await collected.settle()
    await collected.delete(CONFIGMAPS, "owner", "default", "Orphan")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == ["child", "other", "shared"]
    child, shared = collected.get(CONFIGMAPS, "child", "default"), collected.get(CONFIGMAPS, "shared", "default")
    assert child is not None
    assert shared is not None
    assert "ownerReferences" not in child["metadata"]
    assert [each["name"] for each in shared["metadata"]["ownerReferences"]] == ["other"]


async def test_orphaning_leaves_other_finalizers(collected: ControlPlane) -> None:
    await collected.create(CONFIGMAPS, "owner", "default", metadata={"finalizers": ["example.io/wait"]})
    await collected.delete(CONFIGMAPS, "owner", "default", "Orphan")
    await collected.settle()
    owner = collected.get(CONFIGMAPS, "owner", "default")
    assert owner is not None
    assert owner["metadata"]["finalizers"] == ["example.io/wait"]


# -- foreground ---------------------------------------------------------------


async def test_foreground_waits_for_blocking_dependents(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    reference = owned_by(owner, block=True)
    await collected.create(CONFIGMAPS, "held", "default", metadata={**reference, "finalizers": ["example.io/wait"]})
    await collected.create(CONFIGMAPS, "free", "default", metadata=reference)
    await collected.settle()
    await collected.delete(CONFIGMAPS, "owner", "default", "Foreground")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == ["held", "owner"]
    await collected.release(CONFIGMAPS, "held", "default")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == []


async def test_foreground_does_not_wait_for_others(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    metadata = {**owned_by(owner), "finalizers": ["example.io/wait"]}
    await collected.create(CONFIGMAPS, "held", "default", metadata=metadata)
    await collected.settle()
    await collected.delete(CONFIGMAPS, "owner", "default", "Foreground")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == ["held"]
    held = collected.get(CONFIGMAPS, "held", "default")
    assert held is not None
    assert held["metadata"]["deletionTimestamp"]


async def test_foreground_goes_down_the_tree_and_comes_up_again(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    child = await make(collected, "child", owner, block=True)
    leaf = {**owned_by(child, block=True), "finalizers": ["example.io/wait"]}
    await collected.create(CONFIGMAPS, "leaf", "default", metadata=leaf)
    await collected.settle()
    await collected.delete(CONFIGMAPS, "owner", "default", "Foreground")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == ["child", "leaf", "owner"]
    waiting = collected.get(CONFIGMAPS, "child", "default")
    assert waiting is not None
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    await collected.release(CONFIGMAPS, "leaf", "default")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == []


async def test_a_dependent_with_another_owner_does_not_hold_up_the_first(collected: ControlPlane) -> None:
    owner, other = await make(collected, "owner"), await make(collected, "other")
    await make(collected, "child", owner, other, block=True)
    await collected.settle()
    await collected.delete(CONFIGMAPS, "owner", "default", "Foreground")
    await collected.settle()
    assert collected.names(CONFIGMAPS) == ["child", "other"]


async def test_a_dependent_that_stops_blocking_lets_its_owner_go(collected: ControlPlane) -> None:
    owner = await make(collected, "owner")
    reference = owned_by(owner, block=True)
    await collected.create(CONFIGMAPS, "held", "default", metadata={**reference, "finalizers": ["example.io/wait"]})
    await collected.settle()
    await collected.delete(CONFIGMAPS, "owner", "default", "Foreground")
    await collected.settle()

    def unblock(obj: Object) -> None:
        obj["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = False

    await collected.update(CONFIGMAPS, "held", "default", unblock)
    await collected.settle()
    assert collected.names(CONFIGMAPS) == ["held"]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_circles_are_collected(collected: ControlPlane, policy: str) -> None:
    first = await make(collected, "first")
    second = await make(collected, "second", first, block=True)

    def close(obj: Object) -> None:
        obj["metadata"].update(owned_by(second, block=True))

    await collected.update(CONFIGMAPS, "first", "default", close)
    await collected.settle()
    await collected.delete(CONFIGMAPS, "first", "default", policy)
    await collected.settle()
    await collected.pass_time(10)
    assert collected.names(CONFIGMAPS) == []


async def test_what_happened_while_nobody_looked_is_made_up_for(plane: ControlPlane) -> None:
    owner = await make(plane, "owner")
    await make(plane, "child", owner)
    front = await make(plane, "front")
    await make(plane, "back", front, block=True)
    await plane.delete(CONFIGMAPS, "owner", "default")
    await plane.delete(CONFIGMAPS, "front", "default", "Foreground")
    plane.start(garbage_collector.new(plane.registry))
    await plane.pass_time(3)
    assert plane.names(CONFIGMAPS) == []


async def test_a_restart_continues_with_a_foreground_deletion(plane: ControlPlane) -> None:
    plane.start(garbage_collector.new(plane.registry))
    owner = await make(plane, "owner")
    reference = owned_by(owner, block=True)
    await plane.create(CONFIGMAPS, "held", "default", metadata={**reference, "finalizers": ["example.io/wait"]})
    await plane.delete(CONFIGMAPS, "owner", "default", "Foreground")
    await plane.settle()
    await plane.stop()
    await plane.release(CONFIGMAPS, "held", "default")
    plane.start(garbage_collector.new(plane.registry))
    await plane.settle()
    assert plane.names(CONFIGMAPS) == []


async def test_data_that_nothing_serves_is_not_touched(collected: ControlPlane) -> None:
    from kcp.store import Put, pack_object

    owner = await make(collected, "owner")
    key = ObjectKey(ResourceKey("gone.example.io", "things"), CLUSTER, "default", "t")
    orphan = {"metadata": {"name": "t", "uid": "u", **owned_by(owner)}}
    await collected.store.commit([Put(key, pack_object(orphan))])
    await collected.delete(CONFIGMAPS, "owner", "default", "Orphan")
    await collected.settle()
    assert collected.store.get(key) is not None


async def test_namespaces_may_own(collected: ControlPlane) -> None:
    namespace = collected.get(NAMESPACES, "default")
    assert namespace is not None
    await make(collected, "child", namespace)
    await collected.create(SECRETS, "s", "default", metadata=owned_by(namespace, uid="wrong"))
    await collected.pass_time(3)
    assert collected.names(CONFIGMAPS) == ["child"]
    assert collected.names(SECRETS) == []


# -- races, which a real store makes rarely -----------------------------------


def make_item(name: str = "x", **metadata: Any) -> garbage_collector.Item:  # noqa: ANN401 - metadata is any JSON
    key = ObjectKey(ResourceKey("", "configmaps"), CLUSTER, "default", name)
    return garbage_collector.Item(key, {"metadata": {"name": name, "uid": f"uid-{name}", **metadata}})


def make_deps(**functions: Any) -> garbage_collector.Deps:  # noqa: ANN401 - functions of all kinds
    def unexpected(*args: object) -> Any:  # noqa: ANN401
        raise AssertionError(f"unexpected: {args}")

    async def sync() -> None:
        pass

    fields = dict.fromkeys(garbage_collector.Deps.__dataclass_fields__, unexpected)
    return garbage_collector.Deps(**{**fields, "sync": sync, **functions})


async def test_uids_are_not_forgotten_when_the_search_fails() -> None:
    async def fail(cluster: str, uids: frozenset[str]) -> list[garbage_collector.Item]:
        raise RuntimeError("broken")

    memory = garbage_collector.Memory(deleted={CLUSTER: {"u"}})
    deps = make_deps(find_dependents=fail)
    with pytest.raises(RuntimeError):
        await garbage_collector.reconcile(garbage_collector.DeletedIn(CLUSTER), deps, memory)
    assert memory.deleted == {CLUSTER: {"u"}}
    assert await garbage_collector.reconcile(garbage_collector.DeletedIn("other"), deps, memory) == DONE


async def test_an_object_that_goes_meanwhile_is_no_failure() -> None:
    item = make_item(deletionTimestamp="2025-01-01T00:00:00Z", finalizers=["foregroundDeletion"])

    async def none(cluster: str, uids: frozenset[str]) -> list[garbage_collector.Item]:
        return []

    async def gone(item: garbage_collector.Item, mutate: object) -> None:
        raise errors.NotFound(CONFIGMAPS.group_resource, "x")

    deps = make_deps(read=lambda key: item, find_dependents=none, update=gone)
    assert await garbage_collector.reconcile(item.key, deps, garbage_collector.Memory()) == DONE


async def test_fresh_reads_decide() -> None:
    """On a replica that lags behind, an owner may seem absent, and so may its dependent's end."""
    item = make_item("child", ownerReferences=[{"uid": "uid-owner", "name": "owner"}])
    owner = make_item("owner")
    reads: dict[str, list[garbage_collector.Item | None]] = {"child": [item, item], "owner": [None, owner]}
    deps = make_deps(
        read=lambda key: reads[key.name].pop(0), owner_key=lambda key, reference: key._replace(name=reference["name"])
    )
    assert await garbage_collector.reconcile(item.key, deps, garbage_collector.Memory()) == DONE
    reads.update(child=[item, None], owner=[None])
    assert await garbage_collector.reconcile(item.key, deps, garbage_collector.Memory()) == DONE


def test_keys_of_different_kinds_differ() -> None:
    assert len({garbage_collector.DeletedIn("c"), garbage_collector.KindsOf("c")}) == 2


@pytest.mark.parametrize(
    ("finalizers", "expected"),
    [([], "Background"), (["orphan"], "Orphan"), (["foregroundDeletion", "x"], "Foreground")],
    ids=["none", "orphan", "foreground"],
)
async def test_finalizers_set_beforehand_choose_the_policy(finalizers: list[str], expected: str) -> None:
    policies: list[str] = []

    async def delete(item: garbage_collector.Item, policy: str) -> None:
        policies.append(policy)

    item = make_item("child", ownerReferences=[{"uid": "u", "name": "owner"}], finalizers=finalizers)
    deps = make_deps(
        read=lambda key: item if key.name == "child" else None,
        owner_key=lambda key, reference: key._replace(name=reference["name"]),
        delete=delete,
    )
    await garbage_collector.reconcile(item.key, deps, garbage_collector.Memory())
    assert policies == [expected]


async def test_references_to_an_object_of_the_same_name_are_kept(plane: ControlPlane) -> None:
    index = OwnerIndex(plane.store)
    deps = garbage_collector.make_deps(plane.registry, index)
    await make(plane, "x")
    with pytest.raises(errors.NotFound):
        await deps.update(make_item("x"), lambda obj: None)
