"""All controllers of one server: started together, stopped together, and only while this server leads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kcp.controller.loop import Loop
from kcp.controller.waiting import wait_any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.controller.controller import AnyController
    from kcp.controller.leader import Leader
    from kcp.controller.loop import LoopOptions, Observer
    from kcp.meta.clock import Clock
    from kcp.registry.changes import ChangeFeed


class ControllerManager:
    """`leader` is None where the store has no other server: then this one always leads."""

    def __init__(
        self,
        controllers: Sequence[AnyController],
        feed: ChangeFeed,
        clock: Clock,
        *,
        leader: Leader | None = None,
        options: LoopOptions | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._controllers = tuple(controllers)
        self._feed = feed
        self._clock = clock
        self._leader = leader
        self._options = options
        self._observer = observer
        self.loops: tuple[Loop, ...] = ()
        """Those that run now."""

    @property
    def is_idle(self) -> bool:
        """Whether the controllers run and have nothing to do, as far as they know."""
        return bool(self.loops) and all(loop.is_idle for loop in self.loops)

    async def run(self, stopping: asyncio.Event) -> None:
        """Until told to stop; what runs then is finished, and the lease given back."""
        if self._leader is None:
            await self._run_loops(stopping)
            return
        while await self._leader.acquire(stopping):
            await self._lead(self._leader, stopping)

    async def _lead(self, leader: Leader, stopping: asyncio.Event) -> None:
        ending = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(self._run_loops(ending))
            await wait_any(stopping.wait(), leader.keep(stopping))
            ending.set()
            await working
        if stopping.is_set():
            await leader.release()

    async def _run_loops(self, stopping: asyncio.Event) -> None:
        self.loops = tuple(
            Loop(controller, self._feed, self._clock, options=self._options, observer=self._observer)
            for controller in self._controllers
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                for loop in self.loops:
                    tasks.create_task(loop.run(stopping))
        finally:
            self.loops = ()
