"""The worker loop."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from kcp.controller.controller import DONE, Controller, Outcome, Periodic, Watch
from kcp.controller.loop import Loop, LoopOptions
from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from kcp.meta.gvk import GroupResource
from kcp.registry.changes import CHECKPOINTS, ChangeFeed
from kcp.store import Delete, EmbeddedStore, ObjectKey, Put, ResourceKey, Scope, pack_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from pathlib import Path

    from kcp.registry.changes import Change

WIDGETS = ResourceKey("example.io", "widgets")
GADGETS = ResourceKey("example.io", "gadgets")


def key(name: str, resource: ResourceKey = WIDGETS) -> ObjectKey:
    return ObjectKey(resource, "root", "", name)


class Bench:
    """A store, a clock, and one loop after the other."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.feed = ChangeFeed(store)
        self.clock = FakeClock()
        self.seen: list[str] = []
        self.reconcile: Callable[[str], Awaitable[Outcome]] = self.note
        self.observed: list[tuple[Any, ...]] = []
        self._task: asyncio.Task[None] | None = None

    async def note(self, name: str) -> Outcome:
        self.seen.append(name)
        return DONE

    def reconciled(self, controller: str, seconds: float, *, failed: bool) -> None:
        self.observed.append((controller, seconds, failed))

    def queued(self, controller: str, length: int) -> None:
        self.observed.append((controller, length))

    def start(self, *, options: LoopOptions | None = None, **fields: Any) -> Loop:  # noqa: ANN401 - Controller's
        fields.setdefault("watches", (Watch(WIDGETS, name_of),))
        controller: Controller[str] = Controller("test", lambda name: self.reconcile(name), workers=1, **fields)
        self.loop = Loop(controller, self.feed, self.clock, options=options, observer=self)
        self.stopping = asyncio.Event()
        self.start_revision = self.store.revision
        self._task = asyncio.create_task(self.loop.run(self.stopping))
        return self.loop

    async def stop(self) -> None:
        if self._task is not None:
            self.stopping.set()
            await self._task
            self._task = None

    async def settle(self) -> None:
        assert self._task is not None
        for _ in range(2):
            await asyncio.sleep(0)
            while not self.loop.is_idle:
                assert not self._task.done()
                await asyncio.sleep(0)

    async def put(self, *names: str, resource: ResourceKey = WIDGETS) -> None:
        for name in names:
            await self.store.commit([Put(key(name, resource), pack_object({"metadata": {"name": name}}))])

    async def pass_time(self, seconds: float) -> None:
        await self.settle()
        self.clock.advance(seconds)
        for _ in range(10):
            await asyncio.sleep(0)
        await self.settle()

    async def wait_for_checkpoint(self) -> int:
        with self.store.watch(Scope(CHECKPOINTS), self.start_revision) as watcher:
            return (await watcher.next()).revision


def name_of(change: Change) -> Iterable[str]:
    yield change.key.name


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        bench = Bench(store)
        yield bench
        await bench.stop()


async def test_what_is_there_and_what_comes_is_reconciled(bench: Bench) -> None:
    await bench.put("a", "b")
    await bench.put("other", resource=GADGETS)
    bench.start()
    await bench.settle()
    await bench.put("c")
    await bench.store.commit([Delete(key("a"))])
    await bench.settle()
    assert bench.seen == ["a", "b", "c", "a"]


async def test_unwanted_changes_make_no_keys(bench: Bench) -> None:
    await bench.put("a")
    bench.start(watches=(Watch(WIDGETS, name_of, lambda change: change.key.name != "a"),))
    await bench.put("b")
    await bench.settle()
    assert bench.seen == ["b"]


async def test_all_resources_can_be_followed(bench: Bench) -> None:
    await bench.put("a")
    bench.start(watches=(Watch(None, name_of),))
    await bench.put("b", resource=GADGETS)
    await bench.settle()
    assert sorted(bench.seen) == ["a", "b"]


async def test_failures_are_retried_and_told_once_each(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    failures = [errors.Conflict(GroupResource("", "x"), "x", "lost"), RuntimeError("broken"), errors.Expired("old")]

    async def fail(name: str) -> Outcome:
        bench.seen.append(name)
        if failures:
            raise failures.pop(0)
        return DONE

    bench.reconcile = fail
    bench.start()
    await bench.put("a")
    with caplog.at_level(logging.INFO, "kcp.controller.loop"):
        for delay in (0.005, 0.01, 0.02):
            await bench.settle()
            await bench.clock.wait_for_sleepers(2)
            await bench.pass_time(delay)
    assert bench.seen == ["a"] * 4
    assert [record.message for record in caplog.records] == [
        "test: a: RuntimeError: broken, again in 0.01 s",
        "test: a: old, again in 0.02 s",
    ]
    assert bench.loop.queue.failures("a") == 0
    assert [fields[2] for fields in bench.observed if len(fields) == 3] == [True, True, True, False]


async def test_an_outcome_may_ask_for_more(bench: Bench) -> None:
    async def ask(name: str) -> Outcome:
        bench.seen.append(name)
        return Outcome(after=60, keys=("b",)) if bench.seen == ["a"] else DONE

    bench.reconcile = ask
    bench.start()
    await bench.put("a")
    await bench.settle()
    assert bench.seen == ["a", "b"]
    await bench.clock.wait_for_sleepers(2)
    await bench.pass_time(60)
    assert bench.seen == ["a", "b", "a"]


async def test_periodics_run_again_also_after_a_failure(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    outcomes: list[Exception | None] = [ValueError("no"), None]

    async def run(enqueue: Callable[[str], Awaitable[None]]) -> None:
        error = outcomes.pop(0)
        if error:
            raise error
        await enqueue("tick")

    bench.start(watches=(), periodics=(Periodic(30, run),))
    for _ in range(2):
        await bench.clock.wait_for_sleepers(2)
        await bench.pass_time(30)
    assert bench.seen == ["tick"]
    assert [record.message for record in caplog.records] == ["test: ValueError: no, again in 30 s"]


# -- checkpoints --------------------------------------------------------------


async def test_a_restart_continues_from_the_checkpoint(bench: Bench) -> None:
    await bench.put("a", "b")
    bench.start()
    await bench.settle()
    await bench.stop()
    await bench.put("c")
    bench.start()
    await bench.settle()
    assert bench.seen == ["a", "b", "c"]


async def test_what_was_not_done_is_done_after_a_restart(bench: Bench) -> None:
    async def fail(name: str) -> Outcome:
        if name == "b":
            raise RuntimeError("broken")
        return await bench.note(name)

    bench.reconcile = fail
    bench.start()
    await bench.put("a", "b", "c")
    await bench.settle()
    await bench.stop()
    bench.reconcile = bench.note
    bench.start()
    await bench.settle()
    assert bench.seen[:2] == ["a", "c"]
    assert bench.seen[2:] == ["b", "c"], "from the oldest change that was not taken care of"


async def test_progress_is_noted_now_and_then(bench: Bench) -> None:
    bench.start()
    await bench.put("a")
    await bench.settle()
    await bench.clock.wait_for_sleepers(1)
    await bench.pass_time(5)
    revision = await bench.wait_for_checkpoint()
    for _ in range(5):
        await bench.clock.wait_for_sleepers(1)
        await bench.pass_time(5)
    assert bench.store.revision == revision, "nothing happened, so nothing is noted"


async def test_an_idle_controller_keeps_up_with_the_log(bench: Bench) -> None:
    bench.start(options=LoopOptions(checkpoint_revisions=3))
    await bench.settle()
    await bench.put("x", "y", "z", resource=GADGETS)
    await bench.clock.wait_for_sleepers(1)
    await bench.pass_time(5)
    await bench.wait_for_checkpoint()
    assert bench.seen == []


async def test_forgotten_changes_lead_to_a_look_at_everything(bench: Bench) -> None:
    await bench.put("a")
    bench.start()
    await bench.settle()
    await bench.stop()
    await bench.put("b")
    await bench.store.compact(bench.store.revision)
    bench.start()
    await bench.settle()
    assert bench.seen == ["a", "a", "b"]


async def test_a_checkpoint_from_the_future_leads_to_a_look_at_everything(bench: Bench) -> None:
    await bench.put("a")
    await bench.feed.save("test", {"revision": 1_000_000})
    bench.start()
    await bench.settle()
    assert bench.seen == ["a"]


async def test_a_checkpoint_that_cannot_be_written_is_no_disaster(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def save(name: str, note: object) -> None:
        raise errors.ServiceUnavailable("full")

    monkeypatch.setattr(bench.feed, "save", save)
    bench.start()
    await bench.put("a")
    await bench.settle()
    await bench.stop()
    assert [record.message for record in caplog.records] == ["test: the checkpoint was not written: full"]


# -- bounds and ends ----------------------------------------------------------


async def test_a_mass_of_objects_does_not_fill_the_queue(bench: Bench) -> None:
    longest = 0

    async def watch(name: str) -> Outcome:
        nonlocal longest
        longest = max(longest, len(bench.loop.queue))
        return await bench.note(name)

    bench.reconcile = watch
    names = [f"w{number:03}" for number in range(100)]
    await bench.put(*names)
    bench.start(options=LoopOptions(queue_limit=10, scan_step=10))
    await bench.settle()
    assert bench.seen == names
    assert longest < 20
    await bench.put(*(f"x{number}" for number in range(30)))
    await bench.settle()
    assert longest < 40


async def test_stopping_finishes_the_running_reconcile(bench: Bench) -> None:
    started, going = asyncio.Event(), asyncio.Event()

    async def linger(name: str) -> Outcome:
        started.set()
        await going.wait()
        return await bench.note(name)

    bench.reconcile = linger
    bench.start()
    await bench.put("a", "b")
    await started.wait()
    stop = asyncio.create_task(bench.stop())
    await asyncio.sleep(0)
    going.set()
    await stop
    assert bench.seen == ["a"]


async def test_a_failure_in_following_is_survived(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    broken = [True]

    def make_keys(change: Change) -> Iterable[str]:
        if broken:
            broken.clear()
            raise RuntimeError("broken")
        yield change.key.name

    await bench.put("a")
    bench.start(watches=(Watch(WIDGETS, make_keys),))
    await bench.clock.wait_for_sleepers(2)
    bench.clock.advance(1)
    await bench.settle()
    assert bench.seen == ["a"]
    assert "following changes failed" in caplog.text


async def test_a_closed_store_ends_the_following(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "closed")
    bench = Bench(store)
    bench.start()
    await bench.settle()
    assert store.count(Scope(WIDGETS)) == 0
    await store.aclose()
    await asyncio.sleep(0)
    await bench.stop()
