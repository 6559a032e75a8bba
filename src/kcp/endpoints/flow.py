"""Protection against too much at once: how many requests run, and whose turn it is when more want to.

Must not know users or paths: the caller decides what is exempt (health checks, system:masters) and does not ask.

There are two lanes, for requests that read and for requests that write, so that one cannot starve the other. A lane
has *seats*, and queues per logical cluster that are served in turn. A request waits if

- all seats are taken, or
- the loop has worked on this lane for longer than `turn_seconds` without a pause. Requests that never wait for anything
  hold their seat for no time at all, so a flood of them would be served in the order of arrival, whoever sent
  it. With this rule the flood queues behind itself: another cluster's request is at most two turns away.

        arrived   a1 a2 a3 a4 a5 b1 a6            served in one turn: two requests, say
        turn 1    a1 a2 run; queues  a: a3 a4 a5 a6   b: b1
        turn 2    a3 b1                               a: a4 a5 a6
        turn 3    a4 a5                               a: a6

A cluster that has nothing waiting is not remembered. Watches take no seat, but their number is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, Final

from kcp.meta.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable

_RETRY_AFTER_SECONDS: Final = 1


@dataclass(frozen=True, slots=True)
class FlowOptions:
    """Bounds on what one server does at once."""

    max_readonly: int = 400
    """Requests at once that read; --max-requests-inflight, with Kubernetes' default."""

    max_mutating: int = 200
    """Requests at once that write; --max-mutating-requests-inflight, with Kubernetes' default."""

    max_queued: int = 10_000
    """Requests of one lane that may wait. Each holds a connection and its body."""

    max_queued_per_cluster: int = 1_000
    """The same for one logical cluster, so that one cannot fill the queues."""

    queue_timeout: float = 15.0
    """Seconds that a request may wait: a quarter of its time, as in Kubernetes."""

    cluster_share: int = 4
    """One logical cluster may hold this part of a lane's seats: requests may wait for something of its own, such as a
    webhook that does not answer, and must not keep all others from working."""

    turn_seconds: float = 0.005
    """How long the loop works before waiting requests take turns: about what a client notices."""

    turn_requests: int = 16
    """Requests that leave the queues at a time. Few, because what they will cost is not known."""

    max_watches: int = 50_000
    """Long-running requests at once."""

    max_watches_per_cluster: int = 10_000
    """The same for one logical cluster."""

    request_timeout: float = 60.0
    """Seconds that a request other than a watch may take; --request-timeout, with Kubernetes' default."""


class Lane(Enum):
    READONLY = "readOnly"
    MUTATING = "mutating"
    WATCH = "watch"


_READONLY, _MUTATING, _WATCH = Lane  # a look at an enumeration's member is a call; this is asked for every request


class _Queues:
    """The seats of one lane and who waits for them."""

    def __init__(self, seats: int, options: FlowOptions, monotonic: Callable[[], float]) -> None:
        self.seats = seats
        self.taken = 0
        self._share = max(1, seats // options.cluster_share)
        self._taken_by: dict[str, int] = {}
        self.waiting = 0
        self.rejected = 0
        self._options = options
        self._monotonic = monotonic
        self._turn_ends = 0.0
        self._turn_is_open = False
        self._pass_scheduled = False
        # In the order of their turn: the first is served next, then goes to the end.
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    def try_take(self, cluster: str) -> bool:
        held = self._taken_by.get(cluster, 0)
        if self.taken >= self.seats or held >= self._share or (self.waiting and self._someone_may_go()):
            return False
        if not self._turn_is_open:
            self._turn_is_open = True
            self._turn_ends = self._monotonic() + self._options.turn_seconds
            asyncio.get_running_loop().call_soon(self._end_turn)
        elif self._monotonic() > self._turn_ends:
            return False
        self.taken += 1
        self._taken_by[cluster] = held + 1
        return True

    def _someone_may_go(self) -> bool:
        """Whether anyone waits who is not held up by its own share alone."""
        return any(self._taken_by.get(cluster, 0) < self._share for cluster in self._queues)

    async def wait(self, cluster: str) -> None:
        """Returns with a seat. Raises TooManyRequests."""
        queue = self._queues.get(cluster)
        if self.waiting >= self._options.max_queued or (queue and len(queue) >= self._options.max_queued_per_cluster):
            raise self._refuse()
        if queue is None:
            queue = self._queues[cluster] = deque()
        seat: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(seat)
        self.waiting += 1
        self._schedule_pass()
        timer = seat.get_loop().call_later(self._options.queue_timeout, self._expire, seat)
        try:
            await seat
        except (TooManyRequests, asyncio.CancelledError):
            self._give_up(cluster, queue, seat)
            raise
        finally:
            timer.cancel()

    def _expire(self, seat: asyncio.Future[None]) -> None:
        if not seat.done():
            seat.set_exception(self._refuse())

    def release(self, cluster: str) -> None:
        self.taken -= 1
        held = self._taken_by[cluster] - 1
        if held:
            self._taken_by[cluster] = held
        else:
            del self._taken_by[cluster]
        if self.waiting:
            self._schedule_pass()

    def _end_turn(self) -> None:
        self._turn_is_open = False

    def _schedule_pass(self) -> None:
        if not self._pass_scheduled and self.taken < self.seats:
            self._pass_scheduled = True
            asyncio.get_running_loop().call_soon(self._pass_seats)

    def _pass_seats(self) -> None:
        """Give free seats to those who wait, a cluster at a time; the rest in the loop's next turn."""
        self._pass_scheduled = False
        passed = 0
        for _ in range(min(self._options.turn_requests, self.waiting, self.seats - self.taken)):
            cluster = next((each for each in self._queues if self._taken_by.get(each, 0) < self._share), None)
            if cluster is None:
                break  # all who wait hold their share; they go on when one of their own is done
            passed += 1
            queue = self._queues.pop(cluster)
            seat = queue.popleft()
            if queue:
                self._queues[cluster] = queue
            self.waiting -= 1
            if not seat.done():  # or its request was cancelled and has not run since
                self.taken += 1
                self._taken_by[cluster] = self._taken_by.get(cluster, 0) + 1
                seat.set_result(None)
        if self.waiting and passed:
            self._schedule_pass()

    def _give_up(self, cluster: str, queue: deque[asyncio.Future[None]], seat: asyncio.Future[None]) -> None:
        if not seat.cancelled() and seat.exception() is None:
            self.release(cluster)  # it was given a seat in the very moment in which it left
            return
        if seat not in queue:  # passed over already
            return
        queue.remove(seat)
        self.waiting -= 1
        if not queue:
            del self._queues[cluster]

    def _refuse(self) -> TooManyRequests:
        self.rejected += 1
        return _too_many()


class Flow:
    """Asked once per request: `try_take`, and only if that says no, `await wait`; then `release`. Or `admit`."""

    def __init__(self, options: FlowOptions, monotonic: Callable[[], float] = perf_counter) -> None:
        self.options = options
        self._readonly = _Queues(options.max_readonly, options, monotonic)
        self._mutating = _Queues(options.max_mutating, options, monotonic)
        self._watches: dict[str, int] = {}
        self._watch_count = 0

    def try_take(self, cluster: str, lane: Lane) -> bool:
        """Take a seat if that needs no waiting. Raises TooManyRequests for a watch too many."""
        if lane is _READONLY:
            return self._readonly.try_take(cluster)
        if lane is _MUTATING:
            return self._mutating.try_take(cluster)
        self._take_watch(cluster)
        return True

    async def wait(self, cluster: str, lane: Lane) -> None:
        """Wait for a seat. Raises TooManyRequests."""
        await (self._readonly if lane is _READONLY else self._mutating).wait(cluster)

    def release(self, cluster: str, lane: Lane) -> None:
        """Give back what `try_take` or `wait` gave."""
        if lane is _READONLY:
            self._readonly.release(cluster)
        elif lane is _MUTATING:
            self._mutating.release(cluster)
        else:
            self._release_watch(cluster)

    def admit(self, cluster: str, lane: Lane) -> Admission:
        """`async with flow.admit(cluster, lane): ...`"""
        return Admission(self, cluster, lane)

    def in_flight(self, lane: Lane) -> int:
        if lane is _WATCH:
            return self._watch_count
        return (self._readonly if lane is _READONLY else self._mutating).taken

    def queued(self, lane: Lane) -> int:
        if lane is _WATCH:
            return 0
        return (self._readonly if lane is _READONLY else self._mutating).waiting

    def _take_watch(self, cluster: str) -> None:
        count = self._watches.get(cluster, 0)
        if count >= self.options.max_watches_per_cluster or self._watch_count >= self.options.max_watches:
            raise _too_many()
        self._watches[cluster] = count + 1
        self._watch_count += 1

    def _release_watch(self, cluster: str) -> None:
        self._watch_count -= 1
        count = self._watches[cluster] - 1
        if count:
            self._watches[cluster] = count
        else:
            del self._watches[cluster]


class Admission:
    """A seat for the length of a block."""

    __slots__ = ("_cluster", "_flow", "_lane")

    def __init__(self, flow: Flow, cluster: str, lane: Lane) -> None:
        self._flow, self._cluster, self._lane = flow, cluster, lane

    async def __aenter__(self) -> None:
        if not self._flow.try_take(self._cluster, self._lane):
            await self._flow.wait(self._cluster, self._lane)

    async def __aexit__(self, *exc: object) -> None:
        self._flow.release(self._cluster, self._lane)


def _too_many() -> TooManyRequests:
    return TooManyRequests("Too many requests, please try again later.", _RETRY_AFTER_SECONDS)
