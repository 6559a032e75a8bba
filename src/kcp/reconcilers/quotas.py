"""What ResourceQuotas say is used.

Watches: ResourceQuotas; everything that is deleted in a namespace with quotas.
Writes: `status` of ResourceQuotas.
Steps: count the objects that the quota limits; write limits and usage if they differ. Every five minutes all quotas
are looked at again: admission charges before it writes, and a write that fails then was charged for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kcp.controller.client import LocalClient
from kcp.controller.controller import DONE, Controller, Later, Outcome, Periodic, Watch
from kcp.controller.keys import NamespacedKey
from kcp.meta import errors
from kcp.meta.gvk import GroupVersionResource, parse_group_resource
from kcp.registry.changes import ChangeFeed, ResourceKey
from kcp.registry.stored import count_stored, find_stored
from kcp.registry.strategies.resource_names import is_quota_name
from kcp.schema import quantity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from kcp.meta.codec import Object
    from kcp.registry.changes import Change, ObjectKey
    from kcp.registry.registry import Registry

NAME: Final = "quotas"
RESYNC_SECONDS: Final = 300.0
SETTLE_SECONDS: Final = 0.5
QUOTAS: Final = GroupVersionResource("", "v1", "resourcequotas")
_QUOTAS: Final = ResourceKey("", "resourcequotas")
_COUNT: Final = "count/"
_REQUESTS: Final = "requests."
# Names from before there was `count/`.
_NAMED: Final = frozenset(("configmaps", "resourcequotas", "secrets"))
_NEVER_COUNTED: Final = frozenset((ResourceKey("", "events"), ResourceKey("events.k8s.io", "events")))
_SCAN_STEP: Final = 500


@dataclass(frozen=True, slots=True)
class Deps:
    get_quota: Callable[[NamespacedKey], Object | None]
    list_quotas: Callable[[str, str], list[Object]]
    count: Callable[[ResourceKey, str, str], int | None]
    """Objects of a resource in a namespace; None if there is no such resource in the logical cluster."""

    update_status: Callable[[NamespacedKey, Callable[[Object], None]], Awaitable[Object]]


async def reconcile(key: NamespacedKey, deps: Deps) -> Outcome:
    """A key without a name stands for all quotas of its namespace."""
    if not key.name:
        quotas = deps.list_quotas(key.cluster, key.namespace)
        return Outcome(keys=tuple(key._replace(name=quota["metadata"]["name"]) for quota in quotas))
    quota = deps.get_quota(key)
    if quota is None:
        return DONE

    def mutate(found: Object) -> None:
        status = make_status(found, lambda resource: deps.count(resource, key.cluster, key.namespace))
        if is_different(found.get("status") or {}, status):
            found["status"] = status

    try:
        await deps.update_status(key, mutate)
    except errors.NotFound:
        return DONE
    return DONE


def make_status(quota: Object, count: Callable[[ResourceKey], int | None]) -> Object:
    """The limits, and the usage of those that something here is counted for; the others keep what they had."""
    spec: Object = quota.get("spec") or {}
    hard: Object = spec.get("hard") or {}
    had: Object = (quota.get("status") or {}).get("used") or {}
    used: Object = {}
    for name in sorted(hard):
        amount = _usage(name, count)
        if amount is not None:
            # Scopes choose among pods. Other objects are in none of them.
            used[name] = str(quantity.from_int(0 if _has_scopes(spec) else amount))
        elif name in had:
            used[name] = had[name]
    status: Object = {}
    if hard:
        status["hard"] = {name: hard[name] for name in sorted(hard)}
    if used:
        status["used"] = used
    return status


def _usage(name: str, count: Callable[[ResourceKey], int | None]) -> int | None:
    if name.startswith(_COUNT):
        key = ResourceKey(*parse_group_resource(name.removeprefix(_COUNT)))
        return None if key in _NEVER_COUNTED else count(key)
    if name in _NAMED:
        return count(ResourceKey("", name))
    # Pods, services and volumes, and what they ask for: there are none.
    return 0 if is_quota_name(name) or name.startswith(_REQUESTS) else None


def _has_scopes(spec: Object) -> bool:
    return bool(spec.get("scopes") or (spec.get("scopeSelector") or {}).get("matchExpressions"))


def is_different(old: Object, new: Object) -> bool:
    """Whether any amount differs, however it is written."""
    return any(_amounts(old.get(name)) != _amounts(new.get(name)) for name in ("hard", "used"))


def _amounts(resources: Object | None) -> dict[str, quantity.Quantity]:
    return {name: quantity.parse(text) for name, text in (resources or {}).items()}


def new(registry: Registry, resync_seconds: float = RESYNC_SECONDS) -> Controller[NamespacedKey]:
    client = LocalClient(registry, NAME)
    feed = ChangeFeed(registry.store)

    def count(resource: ResourceKey, cluster: str, namespace: str) -> int | None:
        found = find_stored(registry, cluster, resource)
        if found is None or not found.namespaced:
            return None
        return count_stored(registry.store, resource, cluster, namespace)

    async def update_status(key: NamespacedKey, mutate: Callable[[Object], None]) -> Object:
        return await client.update(key.cluster, QUOTAS, key.namespace, key.name, mutate, subresource="status")

    async def resync(enqueue: Callable[[NamespacedKey], Awaitable[None]]) -> None:
        after: ObjectKey | None = None
        while True:
            page = feed.scan(_QUOTAS, after, _SCAN_STEP)
            for change in page.changes:
                await enqueue(NamespacedKey(*change.key[1:]))
            after = page.next_after
            if after is None:
                return

    def may_free(change: Change) -> bool:
        """Whether something that a quota counts is gone."""
        is_gone = change.new_stored is None and bool(change.key.namespace)
        return is_gone and count_stored(registry.store, _QUOTAS, change.key.cluster) > 0

    deps = Deps(
        get_quota=lambda key: client.get(key.cluster, QUOTAS, key.namespace, key.name),
        list_quotas=lambda cluster, namespace: client.list(cluster, QUOTAS, namespace),
        count=count,
        update_status=update_status,
    )
    return Controller(
        NAME,
        lambda key: reconcile(key, deps),
        watches=(Watch(_QUOTAS, _quota_keys, _is_present), Watch(None, _namespace_keys, may_free)),
        periodics=(Periodic(resync_seconds, resync),),
    )


def _is_present(change: Change) -> bool:
    return change.new_stored is not None


def _quota_keys(change: Change) -> Iterable[Later[NamespacedKey]]:
    # Whoever makes a quota may want to set its status at once, and should not have to race with us for it.
    yield Later(NamespacedKey(*change.key[1:]), SETTLE_SECONDS)


def _namespace_keys(change: Change) -> Iterable[NamespacedKey]:
    yield NamespacedKey(change.key.cluster, change.key.namespace, "")
