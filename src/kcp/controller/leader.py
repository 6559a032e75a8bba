"""Which of several servers on one store runs the controllers: the one whose name stands in a Lease.

A holder renews; when it has not for as long as the lease lasts, somebody else takes over. How long that was is measured
by the clock of the one who waits, so that the servers' clocks need not agree.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kcp.controller.waiting import wait_any
from kcp.meta import errors, wellknown
from kcp.meta.clock import format_micro_time
from kcp.meta.gvk import GroupVersionResource

if TYPE_CHECKING:
    import asyncio

    from kcp.controller.client import LocalClient, Mutate
    from kcp.meta.clock import Clock
    from kcp.meta.codec import Object

_log = logging.getLogger(__name__)

LEASES: Final = GroupVersionResource("coordination.k8s.io", "v1", "leases")
LEASE_NAME: Final = "kcp-controllers"


@dataclass(frozen=True, slots=True)
class LeaderOptions:
    """As Kubernetes' defaults."""

    lease_seconds: float = 15.0
    """How long others wait for a holder that is silent."""

    renew_seconds: float = 10.0
    """How long a holder tries to renew before it stops; less than `lease_seconds`, or two might work at once."""

    retry_seconds: float = 2.0
    """Between two attempts."""


class _Held(Exception):
    """By somebody else."""


class Leader:
    """One server's attempt to be the one."""

    def __init__(
        self, client: LocalClient, clock: Clock, identity: str, *, options: LeaderOptions | None = None
    ) -> None:
        self._client = client
        self._clock = clock
        self.identity = identity
        self._options = options or LeaderOptions()
        self._observed: tuple[object, ...] = ()
        self._observed_at = 0.0

    async def acquire(self, stopping: asyncio.Event) -> bool:
        """Wait until the lease is ours; False if told to stop before."""
        while not stopping.is_set():
            if await self.try_once():
                _log.info("%s leads the controllers", self.identity)
                return True
            await self._pause(stopping)
        return False

    async def keep(self, stopping: asyncio.Event) -> None:
        """Renew; returns when the lease is lost or nobody wants it any more."""
        renewed = self._clock.monotonic()
        while not stopping.is_set():
            await self._pause(stopping)
            if stopping.is_set():
                return
            if await self.try_once():
                renewed = self._clock.monotonic()
            elif self._clock.monotonic() - renewed >= self._options.renew_seconds or self._is_other():
                _log.warning("%s no longer leads the controllers", self.identity)
                return

    async def release(self) -> None:
        """Let others take over at once."""

        def give_up(lease: Object) -> None:
            spec = lease.setdefault("spec", {})
            if spec.get("holderIdentity") != self.identity:
                raise _Held
            del spec["holderIdentity"]
            spec.update(leaseDurationSeconds=1, renewTime=format_micro_time(self._clock.now()))

        try:
            await self._update(give_up)
        except (_Held, errors.StatusError) as error:
            _log.info("%s: the lease was not released: %s", self.identity, error or "somebody else holds it")

    async def try_once(self) -> bool:
        """Take or renew the lease if it is free or ours."""
        try:
            lease = self._client.get(wellknown.ADMIN_CLUSTER, LEASES, wellknown.NAMESPACE_SYSTEM, LEASE_NAME)
            if lease is None:
                await self._create()
            else:
                await self._update(self._claim)
        except _Held:
            return False
        except errors.StatusError as error:
            _log.log(
                logging.DEBUG if isinstance(error, errors.AlreadyExists) else logging.WARNING,
                "%s: the lease was neither taken nor renewed: %s",
                self.identity,
                error,
            )
            return False
        return True

    def _claim(self, lease: Object) -> None:
        spec = lease.setdefault("spec", {})
        observed = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        now = self._clock.monotonic()
        if observed != self._observed:
            self._observed, self._observed_at = observed, now
        holder = spec.get("holderIdentity") or ""
        is_valid = now - self._observed_at < spec.get("leaseDurationSeconds", 0)
        if holder not in ("", self.identity) and is_valid:
            raise _Held
        moment = format_micro_time(self._clock.now())
        if holder != self.identity:
            spec["acquireTime"] = moment
            spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
        spec.update(
            holderIdentity=self.identity, renewTime=moment, leaseDurationSeconds=int(self._options.lease_seconds)
        )

    def _is_other(self) -> bool:
        lease = self._client.get(wellknown.ADMIN_CLUSTER, LEASES, wellknown.NAMESPACE_SYSTEM, LEASE_NAME)
        return lease is not None and lease.get("spec", {}).get("holderIdentity") not in ("", None, self.identity)

    async def _create(self) -> None:
        moment = format_micro_time(self._clock.now())
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": LEASE_NAME, "namespace": wellknown.NAMESPACE_SYSTEM},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": int(self._options.lease_seconds),
                "acquireTime": moment,
                "renewTime": moment,
                "leaseTransitions": 0,
            },
        }
        await self._client.create(wellknown.ADMIN_CLUSTER, LEASES, lease)

    async def _update(self, mutate: Mutate) -> None:
        await self._client.update(
            wellknown.ADMIN_CLUSTER,
            LEASES,
            wellknown.NAMESPACE_SYSTEM,
            LEASE_NAME,
            mutate,
        )

    async def _pause(self, stopping: asyncio.Event) -> None:
        """Until the next attempt, or until told to stop."""
        await wait_any(stopping.wait(), self._clock.sleep(self._options.retry_seconds))
