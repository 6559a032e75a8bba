"""ResourceQuota: no more objects of a kind in a namespace than its quotas allow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.admission.configuration import Configurations
from kcp.admission.refusal import forbidden
from kcp.meta import errors
from kcp.meta.gvk import GroupResource
from kcp.schema import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kcp.admission.attributes import Attributes
    from kcp.auth.reader import Reader
    from kcp.meta.codec import Object

_QUOTAS: Final = GroupResource("", "resourcequotas")
_ALIASES: Final = frozenset(("configmaps", "resourcequotas", "replicationcontrollers", "secrets"))
# Kinds that are not kept, and events, which never were counted.
_IGNORED: Final = frozenset(
    (
        GroupResource("", "bindings"),
        GroupResource("", "componentstatuses"),
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
    )
)
_RETRIES: Final = 3
_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"

Used = dict[str, str]


class Charger(Protocol):
    """Writes usage; the registry implements it."""

    async def charge(
        self, cluster: str, namespace: str, name: str, used: Mapping[str, str], expected_resource_version: str
    ) -> bool:
        """Set a quota's `status.used`, unless it is no longer at that resource version: then False."""
        ...


@dataclass(eq=False, slots=True)
class _Waiter:
    attributes: Attributes
    turn: asyncio.Future[bool]  # True: it is yours to do the next batch; False: yours is done
    error: Exception | None = None


@dataclass(slots=True)
class _Queue:
    """The writes to one namespace that wait to be counted. Whoever comes first counts for all who came meanwhile."""

    waiting: list[_Waiter] = field(default_factory=list)


class ResourceQuota(Plugin):
    """Writes to a namespace are counted in batches: each batch changes a quota once, so that they do not conflict."""

    name = "ResourceQuota"
    operations = frozenset((Operation.CREATE,))

    def __init__(self, reader: Reader, charger: Charger) -> None:
        self._reader = reader
        self._charger = charger
        self._queues: dict[tuple[str, str], _Queue] = {}
        # Which namespaces of a logical cluster have a quota.
        self._namespaces = Configurations(((_QUOTAS.group, _QUOTAS.resource),), self._find_namespaces)

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        self._namespaces.forget(cluster, group, resource)

    async def validate(self, a: Attributes) -> None:
        namespaces = self._namespaces.get(a.cluster)
        if not namespaces or a.namespace not in namespaces or a.subresource:
            return
        if a.gvr.group_resource in _IGNORED or (a.gvr.resource == "namespaces" and not a.gvr.group):
            return
        await self._wait(a)

    def _find_namespaces(self, cluster: str) -> frozenset[str]:
        return frozenset(quota["metadata"]["namespace"] for quota in self._reader.list(cluster, *_QUOTAS, None))

    async def _wait(self, a: Attributes) -> None:
        key = (a.cluster, a.namespace)
        waiter = _Waiter(a, asyncio.get_running_loop().create_future())
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
            waiter.turn.set_result(True)
        queue.waiting.append(waiter)
        try:
            is_first = await waiter.turn
        except asyncio.CancelledError:
            if waiter in queue.waiting:
                queue.waiting.remove(waiter)
            if not waiter.turn.cancelled() and waiter.turn.result():
                self._pass_on(key, queue)
            raise
        if is_first:
            await self._do_batch(key, queue)
        if waiter.error is not None:
            raise waiter.error

    async def _do_batch(self, key: tuple[str, str], queue: _Queue) -> None:
        batch, queue.waiting = queue.waiting, []
        try:
            await self._count(*key, batch)
        except BaseException:
            # This write failed or was cancelled; the others of the batch are counted by the next one.
            queue.waiting = [waiter for waiter in batch if not waiter.turn.done()] + queue.waiting
            raise
        else:
            for waiter in batch:
                if not waiter.turn.done():
                    waiter.turn.set_result(False)
        finally:
            self._pass_on(key, queue)

    def _pass_on(self, key: tuple[str, str], queue: _Queue) -> None:
        for waiter in queue.waiting:
            if not waiter.turn.done():
                waiter.turn.set_result(True)
                return
        self._queues.pop(key, None)

    async def _count(self, cluster: str, namespace: str, batch: Sequence[_Waiter]) -> None:
        """Check each write against all quotas, then write the new usage; try again where another server was quicker."""
        names: set[str] | None = None
        pending = list(batch)
        for _ in range(_RETRIES + 1):
            quotas = [
                quota
                for quota in self._reader.list(cluster, *_QUOTAS, namespace)
                if names is None or quota["metadata"]["name"] in names
            ]
            changed = _check_all(quotas, pending)
            pending = [waiter for waiter in pending if waiter.error is None]
            names = {
                quota["metadata"]["name"] for quota, used in changed if not await self._charge(cluster, quota, used)
            }
            if not names:
                return
        for waiter in pending:
            waiter.error = errors.Conflict(_QUOTAS, min(names or {""}), _MODIFIED)

    async def _charge(self, cluster: str, quota: Object, used: Used) -> bool:
        metadata = quota["metadata"]
        return await self._charger.charge(
            cluster, metadata["namespace"], metadata["name"], used, metadata["resourceVersion"]
        )


def _check_all(quotas: list[Object], waiters: Iterable[_Waiter]) -> list[tuple[Object, Used]]:
    """Set the errors of writes that do not fit; return the quotas that change, with their new usage."""
    running = [dict((quota.get("status") or {}).get("used") or {}) for quota in quotas]
    for waiter in waiters:
        try:
            counted = check_request(quotas, running, waiter.attributes)
        except errors.Forbidden as error:
            waiter.error = error
            continue
        if not waiter.attributes.dry_run:
            running = counted
    before = [(quota.get("status") or {}).get("used") or {} for quota in quotas]
    return [(quota, used) for quota, used, old in zip(quotas, running, before, strict=True) if used != old]


def check_request(quotas: Sequence[Object], used_by_quota: Sequence[Used], a: Attributes) -> list[Used]:
    """The usage of each quota with this write counted. Raises Forbidden if one would be exceeded."""
    counted = resource_names(a.gvr.group_resource)
    result = []
    for quota, used in zip(quotas, used_by_quota, strict=True):
        hard: Used = (quota.get("status") or {}).get("hard") or {}
        restricted = sorted(name for name in counted if name in hard)
        if not restricted or _has_scopes(quota):
            result.append(used)
            continue
        if any(name not in used for name in restricted):
            names = ",".join(restricted)
            raise forbidden(a, f"status unknown for quota: {quota['metadata']['name']}, resources: {names}")
        result.append(_add(quota, hard, used, restricted, a))
    return result


def _add(quota: Object, hard: Used, used: Used, restricted: Sequence[str], a: Attributes) -> Used:
    one = quantity.from_int(1)
    new_used = used | {name: str(quantity.parse(used[name]) + one) for name in restricted}
    exceeded = [name for name in restricted if quantity.parse(new_used[name]) > quantity.parse(hard[name])]
    if exceeded:
        raise forbidden(
            a,
            f"exceeded quota: {quota['metadata']['name']}, requested: {_show(exceeded, dict.fromkeys(exceeded, '1'))}, "
            f"used: {_show(exceeded, used)}, limited: {_show(exceeded, hard)}",
        )
    return new_used


def resource_names(resource: GroupResource) -> tuple[str, ...]:
    """What quotas call the number of objects of a resource."""
    count = f"count/{resource}"
    return (count, resource.resource) if not resource.group and resource.resource in _ALIASES else (count,)


def _has_scopes(quota: Object) -> bool:
    """Scopes are about pods: a quota with one has nothing to say about other objects."""
    spec = quota.get("spec") or {}
    return bool(spec.get("scopes") or (spec.get("scopeSelector") or {}).get("matchExpressions"))


def _show(names: Sequence[str], amounts: Mapping[str, str]) -> str:
    return ",".join(f"{name}={quantity.canonical(amounts[name])}" for name in names)
