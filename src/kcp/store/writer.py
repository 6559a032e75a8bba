"""The one writer: a thread that takes whatever commits are waiting and makes them durable with a single fsync.

    loop    submit(a) submit(b)            submit(c)            a, b settled, events to the hub     c settled
    writer            [a b staged, flushed, fsync]  ───────────>  [c staged, flushed, fsync]  ──────>

A job is a function of the open Group. It may run more than once: the transaction is begun again when the map has
to grow, and jobs are run one by one when a group of them fails, so that one bad job fails alone.

Rejected: writing on the event loop's own thread (an fsync stops all reads for a millisecond), and a lock per commit
(one fsync each, so 2,000 commits per second instead of 30,000).
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kcp.store.environment import MapFull, translated
from kcp.store.errors import Closed, StoreError, Unavailable
from kcp.store.transaction import Group

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.meta.clock import Clock
    from kcp.store.engine import Engine

    T = TypeVar("T")


# Each call into LMDB gives the interpreter away, and a busy event loop gives it back only after this many seconds:
# Python's default of 5 ms would make a group of 32 commits take half a second. Measured with a loop that never rests:
# 50 commits per second at 5 ms, 700 to 5,000 at 0.2 ms, and the loop itself no slower.
_SWITCH_INTERVAL = 0.0002

_GROUP_BYTES = 16 << 20  # a group is held in memory, twice over, until it is on the disk


class _Job(NamedTuple):
    run: Callable[[Group], Any]
    settled: asyncio.Future[Any]
    size: int


class _Outcome(NamedTuple):
    job: _Job
    result: Any
    error: BaseException | None


class Writer:
    """Belongs to one event loop, which calls `submit` and receives `deliver`."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        deliver: Callable[[Group], None],
        grow: Callable[[], None],
        group_jobs: int,
    ) -> None:
        """`deliver(group)` is called on the loop for each group, in order, before its jobs settle.

        `grow()` is called on the loop when the map is full, and must have no view open.
        """
        self._engine = engine
        self._clock = clock
        self._deliver = deliver
        self._grow_map = grow
        self._group_jobs = group_jobs
        with engine.view() as view:
            self._last_ms = view.last_time_ms()
        self._loop = asyncio.get_running_loop()
        self._submitted: list[_Job] = []  # in this turn of the loop
        self._jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._waiting: deque[_Job] = deque()  # taken from the queue by the thread, but not in a group yet
        self._is_ending = False
        self._closed = False
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
        self._thread = threading.Thread(target=self._work, name="kcp-store-writer", daemon=True)
        self._thread.start()

    def submit(self, run: Callable[[Group], T], size: int = 0) -> asyncio.Future[T]:
        """Run a job in the next group. The future settles once the group is durable. `size` is what it adds to it."""
        if self._closed:
            raise Closed
        settled: asyncio.Future[T] = self._loop.create_future()
        if not self._submitted:
            # What one turn of the loop submits goes over together. One by one, the thread would make a group, and an
            # fsync, of the first, while all others wait for it.
            self._loop.call_soon(self._hand_in)
        self._submitted.append(_Job(run, settled, size))
        return settled

    def _hand_in(self) -> None:
        if self._submitted:
            self._jobs.put(self._submitted)
            self._submitted = []

    async def aclose(self) -> None:
        """Finish every job that was submitted."""
        if not self._closed:
            self._closed = True
            self._hand_in()
            self._jobs.put(None)
        # Off the loop: the last groups still need it to grow the map and to settle.
        await asyncio.to_thread(self._thread.join)

    # -- in the writer's thread -----------------------------------------------

    def _work(self) -> None:
        while jobs := self._take():
            try:
                outcomes, group = self._write(jobs)
            except StoreError as error:
                self._hand_over([_Outcome(job, None, error) for job in jobs], None)
            except Exception as error:
                # Not foreseen, so perhaps the fault of one job: the others must not pay for it.
                if len(jobs) == 1:
                    self._hand_over([_Outcome(jobs[0], None, error)], None)
                else:
                    self._write_singly(jobs)
            else:
                self._hand_over(outcomes, group)

    def _take(self) -> list[_Job]:
        """Wait for a job, then take all that are there, as far as a group goes. Empty when the writer is closed."""
        self._receive(wait=not self._waiting)
        jobs: list[_Job] = []
        size = 0
        while self._waiting and len(jobs) < self._group_jobs and size < _GROUP_BYTES:
            jobs.append(self._waiting.popleft())
            size += jobs[-1].size
        return jobs

    def _receive(self, *, wait: bool) -> None:
        while not self._is_ending:
            try:
                submitted = self._jobs.get(block=wait)
            except queue.Empty:
                return
            if submitted is None:
                self._is_ending = True
            else:
                self._waiting.extend(submitted)
            wait = False

    def _write_singly(self, jobs: list[_Job]) -> None:
        for job in jobs:
            try:
                outcomes, group = self._write([job])
            except Exception as error:
                self._hand_over([_Outcome(job, None, error)], None)
            else:
                self._hand_over(outcomes, group)

    def _write(self, jobs: list[_Job]) -> tuple[list[_Outcome], Group]:
        while True:
            try:
                with translated(self._engine.env.path):
                    return self._transact(jobs)
            except MapFull:
                self._grow()

    def _transact(self, jobs: list[_Job]) -> tuple[list[_Outcome], Group]:
        # Never back in time, or compaction by age could not bisect the log.
        self._last_ms = max(self._last_ms, int(self._clock.now().timestamp() * 1000))
        outcomes: list[_Outcome] = []
        txn = self._engine.env.write()
        try:
            group = Group(self._engine, txn, self._last_ms)
            for job in jobs:
                try:
                    outcomes.append(_Outcome(job, job.run(group), None))
                except StoreError as error:
                    outcomes.append(_Outcome(job, None, error))
            if group.is_changed:
                group.flush()
                txn.commit()  # and fsync
        finally:
            txn.abort()  # no change after a commit
        if group.is_changed:
            for resource, number in group.new_resources.items():
                self._engine.remember(resource, number)
        return outcomes, group

    def _grow(self) -> None:
        """Reads happen on the loop, so between two of its callbacks none is under way."""
        done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

        def grow_on_loop() -> None:
            try:
                self._grow_map()
            except Exception as error:  # the writer waits for an answer, whatever it is
                done.put(error)
            else:
                done.put(None)

        if not self._call_loop(grow_on_loop):
            raise Closed
        if error := done.get():
            raise Unavailable(f"the store is full and could not be enlarged: {error}") from error

    def _hand_over(self, outcomes: list[_Outcome], group: Group | None) -> None:
        self._call_loop(lambda: self._settle(outcomes, group))

    def _call_loop(self, function: Callable[[], None]) -> bool:
        """False if the loop is gone: its program ended without closing the store, and nobody is left to tell."""
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            return False
        return True

    # -- on the loop ----------------------------------------------------------

    def _settle(self, outcomes: list[_Outcome], group: Group | None) -> None:
        try:
            if group is not None:
                self._deliver(group)
        finally:
            # Whatever happened to the watchers: who asked for a commit that was made is told so.
            for job, result, error in outcomes:
                if job.settled.done():  # the caller was cancelled and does not wait any more
                    continue
                if error is None:
                    job.settled.set_result(result)
                else:
                    job.settled.set_exception(error)
