"""CustomResourceDefinitions: which names they get, and what becomes of their instances.

Watches: CustomResourceDefinitions; custom resources that were held by finalizers and are gone now.
Writes: `status` and the finalizer of CustomResourceDefinitions; deletes custom resources.
Steps: accept the names that no other definition of the group has, and establish; look at the others of the group when a
definition goes. When one is being deleted: delete its instances, then take the finalizer away. What instances a
definition has left behind, go as well, or a new definition of the same name would bring them back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kcp.controller.client import LocalClient
from kcp.controller.controller import DONE, Controller, Outcome, Watch
from kcp.controller.keys import ClusterKey
from kcp.meta import errors
from kcp.meta.gvk import GroupVersionResource, parse_group_resource
from kcp.meta.wellknown import FINALIZER_CUSTOM_RESOURCES
from kcp.registry.changes import DELETING, ResourceKey, is_released
from kcp.registry.stored import count_stored, find_stored, list_definitions
from kcp.registry.strategies.crd_names import ESTABLISHED, NAMES_ACCEPTED, TERMINATING, is_condition_true, set_condition
from kcp.registry.strategies.customresourcedefinitions import naming_conditions
from kcp.registry.sweep import delete_many

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from kcp.meta.codec import Object
    from kcp.registry.changes import Change
    from kcp.registry.registry import Registry
    from kcp.registry.sweep import Remaining

NAME: Final = "custom-resource-definitions"
MANAGER: Final = "kube-apiserver"  # as in Kubernetes, whose server does this itself
CRDS: Final = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_FAILED: Final = "InstanceDeletionFailed"


@dataclass(frozen=True, slots=True)
class GoneKey:
    """A definition that was removed. No tuple, which would equal the key of the definition."""

    cluster: str
    name: str

    def __str__(self) -> str:
        return f"{self.cluster}|{self.name}"


@dataclass(frozen=True, slots=True)
class Deps:
    now: Callable[[], datetime]
    get: Callable[[ClusterKey], Object | None]
    list_group: Callable[[str, str], list[Object]]
    """The definitions of an API group in a logical cluster."""

    update_status: Callable[[ClusterKey, Callable[[Object], None]], Awaitable[Object]]
    is_served: Callable[[ClusterKey], bool]
    """Whether there is such a resource, be it by a definition or built in."""

    count_instances: Callable[[ClusterKey], int]
    delete_instances: Callable[[ClusterKey], Awaitable[Remaining]]


async def reconcile(key: ClusterKey | GoneKey, deps: Deps) -> Outcome:
    if isinstance(key, GoneKey):
        return await reconcile_leftovers(ClusterKey(key.cluster, key.name), deps)
    crd = deps.get(key)
    if crd is None:
        return DONE
    try:
        if not crd["metadata"].get("deletionTimestamp"):
            return await reconcile_names(key, crd, deps)
        if FINALIZER_CUSTOM_RESOURCES in (crd["metadata"].get("finalizers") or ()):
            return await reconcile_instances(key, crd, deps)
    except errors.NotFound:
        return DONE
    return DONE


async def reconcile_names(key: ClusterKey, crd: Object, deps: Deps) -> Outcome:
    status = naming_conditions(crd, deps.list_group(key.cluster, crd["spec"]["group"]), deps.now())
    if (crd.get("status") or {}) == status:
        return DONE
    version = crd["metadata"]["resourceVersion"]

    def mutate(found: Object) -> None:
        if found["metadata"]["resourceVersion"] != version:
            raise errors.Conflict(CRDS.group_resource, key.name, "it has changed")  # which brings us back
        found["status"] = status

    await deps.update_status(key, mutate)
    return DONE


async def reconcile_instances(key: ClusterKey, crd: Object, deps: Deps) -> Outcome:
    if _terminating_reason(crd) != _FAILED:  # which stays until it is over
        message = "CustomResource deletion is in progress"
        await _set_terminating(key, deps, "True", "InstanceDeletionInProgress", message)
    if not is_condition_true(crd, ESTABLISHED):
        await _finish(key, deps, "NeverEstablished", "resource was never established")
        return DONE
    remaining = await deps.delete_instances(key)
    if remaining.errors:
        message = f"could not issue all deletes: {remaining.errors[0]}"
        await _set_terminating(key, deps, "True", _FAILED, message)
        raise remaining.errors[0]
    if remaining.objects or deps.count_instances(key):
        return DONE  # the last one to go brings us back
    await _finish(key, deps, "InstanceDeletionCompleted", "removed all instances")
    return DONE


def _terminating_reason(crd: Object) -> str:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((each.get("reason", "") for each in conditions if each["type"] == TERMINATING), "")


async def reconcile_leftovers(key: ClusterKey, deps: Deps) -> Outcome:
    """The definition is gone. Others of its group may have waited for its names."""
    if not deps.is_served(key) and deps.count_instances(key):
        await deps.delete_instances(key)
    group = parse_group_resource(key.name).group
    waiting = [
        ClusterKey(key.cluster, crd["metadata"]["name"])
        for crd in deps.list_group(key.cluster, group)
        if not is_condition_true(crd, NAMES_ACCEPTED)
    ]
    return Outcome(keys=tuple(waiting))


async def _set_terminating(key: ClusterKey, deps: Deps, status: str, reason: str, message: str) -> None:
    await deps.update_status(key, lambda crd: _change_terminating(crd, deps, status, reason, message))


async def _finish(key: ClusterKey, deps: Deps, reason: str, message: str) -> None:
    def mutate(crd: Object) -> None:
        _change_terminating(crd, deps, "False", reason, message)
        metadata = crd["metadata"]
        metadata["finalizers"] = [
            each for each in metadata.get("finalizers") or () if each != FINALIZER_CUSTOM_RESOURCES
        ]
        if not metadata["finalizers"]:
            del metadata["finalizers"]

    await deps.update_status(key, mutate)


def _change_terminating(crd: Object, deps: Deps, status: str, reason: str, message: str) -> None:
    if not crd["metadata"].get("deletionTimestamp"):
        raise errors.NotFound(CRDS.group_resource, crd["metadata"]["name"])  # another one of the same name
    found: Object = crd.get("status") or {}
    conditions = [dict(condition) for condition in found.get("conditions") or ()]
    set_condition(conditions, TERMINATING, status, reason, message, now=deps.now())
    crd["status"] = {**found, "conditions": conditions}


def new(registry: Registry) -> Controller[ClusterKey | GoneKey]:
    client = LocalClient(registry, NAME, MANAGER)

    def instances_of(key: ClusterKey) -> ResourceKey:
        return ResourceKey(*parse_group_resource(key.name))

    async def update_status(key: ClusterKey, mutate: Callable[[Object], None]) -> Object:
        return await client.update(key.cluster, CRDS, "", key.name, mutate, subresource="status")

    async def delete_instances(key: ClusterKey) -> Remaining:
        return await delete_many(registry, instances_of(key), key.cluster, None, client.user)

    deps = Deps(
        now=registry.clock.now,
        get=lambda key: client.get(key.cluster, CRDS, "", key.name),
        list_group=lambda cluster, group: list_definitions(registry.store, cluster, group),
        update_status=update_status,
        is_served=lambda key: find_stored(registry, key.cluster, instances_of(key)) is not None,
        count_instances=lambda key: count_stored(registry.store, instances_of(key), key.cluster),
        delete_instances=delete_instances,
    )
    return Controller(
        NAME,
        lambda key: reconcile(key, deps),
        watches=(
            Watch(ResourceKey(CRDS.group, CRDS.resource), _crd_keys, _is_news),
            Watch(None, _instance_keys, _is_instance_released),
        ),
        workers=4,
    )


def _is_news(change: Change) -> bool:
    """Of one that goes, only the beginning and the end: what we say about a failure must not lead to the next attempt
    at once."""
    old, record = change.old, change.new
    return record is None or not record.flags & DELETING or old is None or not old.flags & DELETING


def _crd_keys(change: Change) -> Iterable[ClusterKey | GoneKey]:
    kind = GoneKey if change.new_stored is None else ClusterKey
    yield kind(change.key.cluster, change.key.name)


def _is_instance_released(change: Change) -> bool:
    return bool(change.key.resource.group) and is_released(change)


def _instance_keys(change: Change) -> Iterable[ClusterKey]:
    key = change.key
    yield ClusterKey(key.cluster, f"{key.resource.resource}.{key.resource.group}")
