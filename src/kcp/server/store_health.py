"""Whether the store answers, for those who ask the server how it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from kcp.store import Closed, StoreError

if TYPE_CHECKING:
    from kcp.meta.clock import Clock
    from kcp.store import Store

INTERVAL_SECONDS: Final = 5.0
TIMEOUT_SECONDS: Final = 2.0  # what kube-apiserver gives etcd to answer a health check


class StoreHealth:
    """Asks now and then, so that a health check is answered at once and a store in trouble is not asked by everyone."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._complaint = ""

    def check(self) -> str:
        """Why reads and writes would fail, or nothing."""
        return self._complaint

    async def run(self) -> None:
        """Until the store is closed."""
        while True:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    await self._store.sync()
                self._complaint = ""
            except TimeoutError:
                self._complaint = f"the store did not answer within {TIMEOUT_SECONDS:g} s"
            except Closed:
                self._complaint = "the store is closed"
                return
            except StoreError as error:
                self._complaint = str(error)
            await self._clock.sleep(INTERVAL_SECONDS)
