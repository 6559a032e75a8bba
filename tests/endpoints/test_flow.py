"""Seats, queues and turns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.endpoints.flow import Flow, FlowOptions, Lane
from kcp.meta.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable


class Requests:
    """Requests that note when they run and end when told."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.ran: list[str] = []
        self.refused: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def arrive(self, *names: str, lane: Lane = Lane.READONLY, holds: bool = True) -> None:
        """Each name's first letter is its cluster."""
        for name in names:
            self._ends[name] = asyncio.Event()
            if not holds:
                self._ends[name].set()
            self.tasks[name] = asyncio.create_task(self._request(name, lane))
        await turns(2)

    async def _request(self, name: str, lane: Lane) -> None:
        try:
            async with self.flow.admit(name[0], lane):
                self.ran.append(name)
                await self._ends[name].wait()
        except TooManyRequests:
            self.refused.append(name)

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
        await turns(20)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def frozen() -> float:
    """A clock on which no turn is ever over."""
    return 0.0


def make_flow(monotonic: Callable[[], float] = frozen, /, **bounds: float) -> Flow:
    return Flow(FlowOptions(**{"cluster_share": 1, **bounds}), monotonic)  # type: ignore[arg-type]


async def test_free_seats_are_taken_without_waiting() -> None:
    flow = make_flow(max_readonly=2)
    assert flow.try_take("a", Lane.READONLY)
    assert flow.try_take("a", Lane.READONLY)
    assert not flow.try_take("a", Lane.READONLY)
    assert flow.in_flight(Lane.READONLY) == 2
    flow.release("a", Lane.READONLY)
    assert flow.try_take("b", Lane.READONLY)


async def test_readers_and_writers_do_not_take_each_others_seats() -> None:
    requests = Requests(make_flow(max_readonly=1, max_mutating=1))
    await requests.arrive("a1", "a2")
    await requests.arrive("b1", "b2", lane=Lane.MUTATING)
    assert requests.ran == ["a1", "b1"]
    assert [requests.flow.queued(lane) for lane in Lane] == [1, 1, 0]
    assert [requests.flow.in_flight(lane) for lane in Lane] == [1, 1, 0]
    await requests.end("a1", "a2", "b1", "b2")
    assert requests.ran == ["a1", "b1", "a2", "b2"]
    assert [requests.flow.in_flight(lane) for lane in Lane] == [0, 0, 0]


async def test_clusters_that_wait_are_served_in_turn() -> None:
    requests = Requests(make_flow(max_readonly=1))
    await requests.arrive("a1", "a2", "a3", "a4", "b1", "c1", "c2")
    for name in ("a1", "a2", "b1", "c1", "a3", "c2", "a4"):
        assert requests.ran[-1] == name
        await requests.end(name)
    assert requests.ran == ["a1", "a2", "b1", "c1", "a3", "c2", "a4"]


async def test_a_newcomer_does_not_overtake_those_who_wait() -> None:
    requests = Requests(make_flow(max_readonly=1))
    await requests.arrive("a1", "a2")
    requests.flow.release("a", Lane.READONLY)  # a seat is free, but it is promised
    assert not requests.flow.try_take("b", Lane.READONLY)
    await turns(3)
    assert requests.ran == ["a1", "a2"]
    requests.flow._readonly.taken += 1
    await requests.end("a1", "a2")


async def test_a_flood_of_requests_that_never_wait_lets_others_take_turns() -> None:
    time = iter(range(1_000_000))
    flow = make_flow(lambda: next(time), turn_seconds=1.5, turn_requests=2)
    requests = Requests(flow)
    flood = [f"a{number}" for number in range(10)]
    await requests.arrive(*flood, "b0", holds=False)
    await turns(20)
    assert len(requests.ran) == 11
    assert requests.ran.index("b0") <= 3


async def test_a_turn_ends_when_the_loop_goes_on() -> None:
    now = [0.0]
    flow = make_flow(lambda: now[0], turn_seconds=1)
    assert flow.try_take("a", Lane.READONLY)
    now[0] = 2.0
    assert not flow.try_take("a", Lane.READONLY)
    await turns(1)
    assert flow.try_take("a", Lane.READONLY)


@pytest.mark.parametrize(
    ("bounds", "refused"),
    [({"max_queued_per_cluster": 2}, ["a4", "a5"]), ({"max_queued": 3}, ["a5", "b1"])],
    ids=["of one cluster", "of all"],
)
async def test_queues_are_bounded(bounds: dict[str, int], refused: list[str]) -> None:
    requests = Requests(Flow(FlowOptions(max_readonly=1, cluster_share=1, **bounds), frozen))
    await requests.arrive("a1", "a2", "a3", "a4", "a5", "b1")
    assert requests.refused == refused
    await requests.end(*requests.tasks)
    assert sorted(requests.ran + refused) == ["a1", "a2", "a3", "a4", "a5", "b1"]


async def test_waiting_is_bounded_and_the_refusal_says_when_to_come_back() -> None:
    flow = make_flow(max_readonly=1, queue_timeout=0.0)
    assert flow.try_take("a", Lane.READONLY)
    with pytest.raises(TooManyRequests, match=r"^Too many requests, please try again later\.$") as refusal:
        await flow.wait("a", Lane.READONLY)
    assert refusal.value.retry_after_seconds == 1
    assert refusal.value.code == 429
    assert flow.queued(Lane.READONLY) == 0
    assert flow._readonly._queues == {}


async def test_a_cancelled_request_gives_its_place_up() -> None:
    requests = Requests(make_flow(max_readonly=1))
    await requests.arrive("a1", "a2", "a3")
    requests.tasks["a2"].cancel()
    await turns(2)
    assert requests.flow.queued(Lane.READONLY) == 1
    await requests.end("a1")
    assert requests.ran == ["a1", "a3"]
    await requests.end("a3")
    assert requests.flow.in_flight(Lane.READONLY) == 0


@pytest.mark.parametrize("when", ["just before", "just after"])
async def test_a_request_cancelled_while_it_gets_its_seat_loses_none(when: str) -> None:
    requests = Requests(make_flow(max_readonly=1))
    await requests.arrive("a1", "a2", "b1")
    queues = requests.flow._readonly
    if when == "just before":
        requests.tasks["a2"].cancel()
        queues.release("a")
        queues._pass_seats()
    else:
        queues.release("a")
        queues._pass_seats()
        requests.tasks["a2"].cancel()
    await turns(5)
    assert requests.ran == ["a1", "b1"]
    requests.flow._readonly.taken += 1  # what was released for a1 above
    requests.flow._readonly._taken_by["a"] = 1
    await requests.end("a1", "b1")
    assert (queues.taken, queues.waiting) == (0, 0)


async def test_watches_take_no_seat_but_are_bounded() -> None:
    flow = make_flow(max_readonly=1, max_watches=3, max_watches_per_cluster=2)
    for cluster in ("a", "a", "b"):
        assert flow.try_take(cluster, Lane.WATCH)
    assert flow.in_flight(Lane.WATCH) == 3
    with pytest.raises(TooManyRequests):
        flow.try_take("c", Lane.WATCH)
    flow.release("b", Lane.WATCH)
    with pytest.raises(TooManyRequests):
        flow.try_take("a", Lane.WATCH)
    assert flow.try_take("c", Lane.WATCH)
    assert flow.in_flight(Lane.READONLY) == 0


async def test_nothing_is_remembered_of_idle_clusters() -> None:
    flow = make_flow(max_readonly=1)
    requests = Requests(flow)
    await requests.arrive("a1", "b1", "c1")
    await requests.arrive("w1", lane=Lane.WATCH)
    await requests.end("a1", "b1", "c1", "w1")
    assert (flow._readonly._queues, flow._mutating._queues, flow._watches) == ({}, {}, {})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["arrive", "end", "cancel"]), st.integers(0, 30)), max_size=60))
def test_no_seat_is_lost_or_given_twice(steps: list[tuple[str, int]]) -> None:
    async def play() -> None:
        requests = Requests(make_flow(max_readonly=2, turn_requests=1))
        queues = requests.flow._readonly
        for action, number in steps:
            name = f"{'abc'[number % 3]}{number}"
            if action == "arrive" and name not in requests.tasks:
                await requests.arrive(name)
            elif action == "end" and name in requests.tasks:
                await requests.end(name)
            elif action == "cancel" and name in requests.tasks:
                requests.tasks[name].cancel()
            assert 0 <= queues.taken <= 2
        await requests.end(*requests.tasks)
        await asyncio.gather(*requests.tasks.values(), return_exceptions=True)
        assert (queues.taken, queues.waiting, queues._queues) == (0, 0, {})

    asyncio.run(play())


async def test_one_cluster_holds_its_share_of_the_seats_and_no_more() -> None:
    requests = Requests(make_flow(max_readonly=4, cluster_share=2))
    await requests.arrive("a1", "a2", "a3", "a4", "b1")
    assert requests.ran == ["a1", "a2", "b1"], "a waits for its own, and keeps nobody else out"
    await requests.arrive("c1", "b2")
    assert requests.ran == ["a1", "a2", "b1", "c1"]
    await requests.end("a1")
    assert requests.ran[4:] == ["a3"]
    await requests.end("a2", "c1")
    assert sorted(requests.ran[5:]) == ["a4", "b2"]
    await requests.end("a3", "a4", "b1", "b2")
    assert requests.flow.in_flight(Lane.READONLY) == 0
