"""Deletion of namespaces: their content goes first.

Watches: Namespaces being deleted; everything that was held by finalizers and is gone now.
Writes: deletes what is in the namespace; the Namespace's `status.conditions`, `spec.finalizers` through `finalize`.
Steps: delete the content, a hundred objects to a commit; say in the conditions what is left and why; once nothing is,
take the finalizer `kubernetes` away, with which the namespace goes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kcp.controller.client import LocalClient
from kcp.controller.controller import DONE, Controller, Outcome, Watch
from kcp.controller.keys import ClusterKey
from kcp.meta import errors, wellknown
from kcp.meta.clock import format_time
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.changes import DELETING, ResourceKey, is_released
from kcp.registry.sweep import delete_many, stored_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from datetime import datetime

    from kcp.meta.codec import Object
    from kcp.registry.changes import Change
    from kcp.registry.registry import Registry
    from kcp.registry.sweep import Remaining

    Content = Mapping[ResourceKey, Remaining]

NAME: Final = "namespaces"
NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")

# type: (reason, message) when there is nothing to complain about; the order is the one in which they are shown.
_FINE: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(frozen=True, slots=True)
class Deps:
    now: Callable[[], datetime]
    get_namespace: Callable[[ClusterKey], Object | None]
    delete_content: Callable[[ClusterKey], Awaitable[Content]]
    update_namespace: Callable[[ClusterKey, str, Callable[[Object], None]], Awaitable[Object]]
    """With the subresource. Raises NotFound."""


async def reconcile(key: ClusterKey, deps: Deps) -> Outcome:
    namespace = deps.get_namespace(key)
    if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
        return DONE
    if not (namespace.get("spec") or {}).get("finalizers"):
        return DONE
    content = await deps.delete_content(key)
    uid = namespace["metadata"]["uid"]
    try:
        await reconcile_conditions(key, uid, content, deps)
        problems = [error for remaining in content.values() for error in remaining.errors]
        if problems:
            raise problems[0]
        if not any(remaining.objects for remaining in content.values()):
            await reconcile_finalizers(key, uid, deps)
    except errors.NotFound:
        return DONE  # somebody else finished it
    return DONE  # what is left brings the namespace back when it goes


async def reconcile_conditions(key: ClusterKey, uid: str, content: Content, deps: Deps) -> None:
    complaints = find_complaints(content)
    moment = format_time(deps.now())

    def mutate(namespace: Object) -> None:
        _check_uid(namespace, uid, key.name)
        status: Object = namespace.get("status") or {}
        conditions = set_conditions(status.get("conditions") or [], complaints, moment)
        namespace["status"] = {**status, "phase": "Terminating", "conditions": conditions}

    await deps.update_namespace(key, "status", mutate)


async def reconcile_finalizers(key: ClusterKey, uid: str, deps: Deps) -> None:
    def mutate(namespace: Object) -> None:
        _check_uid(namespace, uid, key.name)
        finalizers = set(namespace["spec"].get("finalizers") or ()) - {wellknown.FINALIZER_KUBERNETES}
        namespace["spec"] = {**namespace["spec"], "finalizers": sorted(finalizers)}
        if not finalizers:
            del namespace["spec"]["finalizers"]

    await deps.update_namespace(key, "finalize", mutate)


def _check_uid(namespace: Object, uid: str, name: str) -> None:
    if namespace["metadata"].get("uid") != uid:
        raise errors.NotFound(NAMESPACES.group_resource, name)  # another one of the same name


def find_complaints(content: Content) -> dict[str, tuple[str, str]]:
    """Reason and message of each condition that is true."""
    complaints = {}
    problems = sorted(str(error) for remaining in content.values() for error in remaining.errors)
    if problems:
        message = f"Failed to delete all resource types, {len(problems)} remaining: {', '.join(problems)}"
        complaints["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    left = sorted(
        f"{key.resource}.{key.group} has {remaining.objects} resource instances"
        for key, remaining in content.items()
        if remaining.objects
    )
    if left:
        message = f"Some resources are remaining: {', '.join(left)}"
        complaints["NamespaceContentRemaining"] = ("SomeResourcesRemain", message)
    finalizers: Counter[str] = sum((remaining.finalizers for remaining in content.values()), Counter())
    if finalizers:
        held = sorted(f"{finalizer} in {count} resource instances" for finalizer, count in finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
        complaints["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return complaints


def set_conditions(old: list[Object], complaints: Mapping[str, tuple[str, str]], moment: str) -> list[Object]:
    """The conditions with this controller's five brought up to date; their time changes only with their status."""
    conditions = [dict(condition) for condition in old]
    by_type = {condition["type"]: condition for condition in conditions}
    for kind, fine in _FINE.items():
        reason, message = complaints.get(kind, fine)
        status = "True" if kind in complaints else "False"
        condition = by_type.get(kind)
        if condition is None:
            condition = {"type": kind, "status": status, "lastTransitionTime": moment}
            conditions.append(condition)
        elif condition["status"] != status:
            condition.update(status=status, lastTransitionTime=moment)
        condition.update(reason=reason, message=message)
    return conditions


def new(registry: Registry) -> Controller[ClusterKey]:
    client = LocalClient(registry, NAME)

    async def delete_content(key: ClusterKey) -> Content:
        found = {}
        for resource in stored_in(registry, *key):
            found[resource] = await delete_many(registry, resource, *key, client.user)
        return found

    async def update_namespace(key: ClusterKey, subresource: str, mutate: Callable[[Object], None]) -> Object:
        return await client.update(key.cluster, NAMESPACES, "", key.name, mutate, subresource=subresource)

    deps = Deps(
        now=registry.clock.now,
        get_namespace=lambda key: client.get(key.cluster, NAMESPACES, "", key.name),
        delete_content=delete_content,
        update_namespace=update_namespace,
    )
    return Controller(
        NAME,
        lambda key: reconcile(key, deps),
        watches=(
            Watch(ResourceKey("", "namespaces"), _namespace_keys, _begins_to_go),
            Watch(None, _released_keys, is_released),
        ),
        workers=4,
    )


def _begins_to_go(change: Change) -> bool:
    """Only the beginning: what we say in the conditions about a failure must not lead to the next attempt at once."""
    old, record = change.old, change.new
    return record is not None and bool(record.flags & DELETING) and not (old is not None and old.flags & DELETING)


def _namespace_keys(change: Change) -> Iterable[ClusterKey]:
    yield ClusterKey(change.key.cluster, change.key.name)


def _released_keys(change: Change) -> Iterable[ClusterKey]:
    if change.key.namespace:
        yield ClusterKey(change.key.cluster, change.key.namespace)
