"""The loop that runs one controller: follow changes, queue keys, reconcile, back off, note how far it got.

A checkpoint says: everything up to this revision has been taken care of. After a restart the loop goes on from there;
where there is none, or the changes since are forgotten, it looks at all objects once, in steps.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from kcp.controller.controller import Later
from kcp.controller.queue import ShutDown, WorkQueue
from kcp.meta import errors
from kcp.registry.changes import Ended, Lost

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from kcp.controller.controller import AnyController, Periodic, Watch
    from kcp.meta.clock import Clock
    from kcp.registry.changes import Change, ChangeFeed, ChangeStream, ObjectKey

_log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
_REVISION: Final = "revision"


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """How a loop treats its queue and its checkpoint."""

    queue_limit: int = 10_000
    """Keys that may wait before changes are left in the log: it bounds the memory, not the work."""

    scan_step: int = 500
    """Objects looked at in one go when all have to be: about a millisecond of the event loop."""

    checkpoint_seconds: float = 5.0
    """The least time between two checkpoints. What came after the last one is looked at again after a crash."""

    checkpoint_revisions: int = 2500
    """A controller without work notes its progress this often, so that its checkpoint stays in the store's log."""

    quiet_failures: int = 5
    """Lost races of a key before they are worth a warning."""


class Observer(Protocol):
    """Told what happens, for metrics."""

    def reconciled(self, controller: str, seconds: float, *, failed: bool) -> None:
        """A reconcile ended."""
        ...

    def queued(self, controller: str, length: int) -> None:
        """The queue has this many keys now."""
        ...


class _Nobody:
    def reconciled(self, controller: str, seconds: float, *, failed: bool) -> None:
        pass

    def queued(self, controller: str, length: int) -> None:
        pass


class Loop:
    """Runs once."""

    def __init__(
        self,
        controller: AnyController,
        feed: ChangeFeed,
        clock: Clock,
        *,
        options: LoopOptions | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.controller = controller
        self.queue = WorkQueue(clock)
        self._feed = feed
        self._clock = clock
        self._options = options or LoopOptions()
        self._observer = observer or _Nobody()
        self._streams: dict[Watch[Any], ChangeStream] = {}
        self._saved = 0
        self._has_worked = False
        self._in_background = 0  # periodics and checkpoints that are at work

    @property
    def is_idle(self) -> bool:
        """Whether all changes were taken care of, but for keys that wait for their time."""
        is_busy = len(self.queue) or self.queue.running or self._in_background
        return not is_busy and self._followed() >= self._feed.revision

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until told to stop, then finish what is running. Raises nothing but cancellation."""
        note = self._feed.load(self.controller.name) or {}
        start = self._saved = int(note.get(_REVISION, 0))
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(self.queue.run_delays()),
                tasks.create_task(self._keep_checkpoint()),
                *(tasks.create_task(self._follow(watch, start or None)) for watch in self.controller.watches),
                *(tasks.create_task(self._repeat(periodic)) for periodic in self.controller.periodics),
            ]
            for _ in range(self.controller.workers):
                tasks.create_task(self._work())
            await stopping.wait()
            progress = self._progress()
            for task in background:
                task.cancel()
            self.queue.shut_down()
        if progress is not None:
            # Workers may have done more meanwhile; that is looked at again, which is safe.
            await self._save(progress)

    # -- changes to keys ------------------------------------------------------

    async def _follow(self, watch: Watch[Any], after: int | None) -> None:
        while True:
            try:
                if after is None:
                    after = await self._look_at_all(watch)
                with self._feed.watch(watch.resource, after, watch.wants) as stream:
                    self._streams[watch] = stream
                    while True:
                        self._offer(watch, await stream.next())
                        await self.queue.wait_for_room(self._options.queue_limit)
            except Lost:
                _log.info("%s: changes were missed, looking at all objects", self.controller.name)
                after = None
            except Ended:
                return
            except Exception:
                _log.exception("%s: following changes failed, again in %g s", self.controller.name, RETRY_SECONDS)
                after = None
                await self._clock.sleep(RETRY_SECONDS)
            finally:
                self._streams.pop(watch, None)

    async def _look_at_all(self, watch: Watch[Any]) -> int:
        """Make keys of everything there is; returns the revision from which on to follow changes."""
        revision = self._feed.revision
        after: ObjectKey | None = None
        while True:
            page = self._feed.scan(watch.resource, after, self._options.scan_step)
            self._offer(watch, [change for change in page.changes if watch.wants is None or watch.wants(change)])
            after = page.next_after
            if after is None:
                return revision
            await asyncio.sleep(0)
            await self.queue.wait_for_room(self._options.queue_limit)

    def _offer(self, watch: Watch[Any], changes: Iterable[Change]) -> None:
        for change in changes:
            for key in watch.make_keys(change):
                if isinstance(key, Later):
                    self.queue.add_after(key.key, key.seconds, change.revision)
                else:
                    self.queue.add(key, change.revision)
        self._observer.queued(self.controller.name, len(self.queue))

    async def _repeat(self, periodic: Periodic[Any]) -> None:
        while True:
            await self._clock.sleep(periodic.seconds)
            self._in_background += 1
            try:
                await periodic.run(self._enqueue)
            except Exception as error:
                _log.warning("%s: %s, again in %g s", self.controller.name, _explain(error), periodic.seconds)
            finally:
                self._in_background -= 1

    async def _enqueue(self, key: Hashable) -> None:
        await self.queue.wait_for_room(self._options.queue_limit)
        self.queue.add(key, self._feed.revision)

    # -- keys to deeds --------------------------------------------------------

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            started = self._clock.monotonic()
            failed = await self._reconcile(key)
            self.queue.done(key)
            self._has_worked = True
            self._observer.reconciled(self.controller.name, self._clock.monotonic() - started, failed=failed)
            self._observer.queued(self.controller.name, len(self.queue))

    async def _reconcile(self, key: Hashable) -> bool:
        """True if it failed, and will be tried again."""
        try:
            outcome = await self.controller.reconcile(key)
        except Exception as error:
            delay = self.queue.retry(key)
            is_race = isinstance(error, errors.Conflict) and self.queue.failures(key) <= self._options.quiet_failures
            level = logging.DEBUG if is_race else logging.WARNING
            where = None if isinstance(error, errors.StatusError) else error
            _log.log(
                level,
                "%s: %s: %s, again in %g s",
                self.controller.name,
                _show(key),
                _explain(error),
                delay,
                exc_info=where,
            )
            return True
        self.queue.forget(key)
        since = self.queue.since(key)
        for other in outcome.keys:
            self.queue.add(other, since)
        if outcome.after is not None:
            # It has been taken care of up to now; what it waits for is in the present state.
            self.queue.add_after(key, outcome.after, self._feed.revision)
        return False

    # -- how far it got -------------------------------------------------------

    def _followed(self) -> int:
        """Up to which revision all changes were made keys of."""
        if len(self._streams) < len(self.controller.watches):
            return -1
        return min((stream.revision for stream in self._streams.values()), default=self._feed.revision)

    def _progress(self) -> int | None:
        followed, oldest = self._followed(), self.queue.oldest
        if followed < 0:
            return None
        return followed if oldest is None else min(followed, oldest - 1)

    async def _keep_checkpoint(self) -> None:
        while True:
            await self._clock.sleep(self._options.checkpoint_seconds)
            progress = self._progress()
            if progress is None:
                continue
            # Without work there is nothing to save, and a note that nothing happened would itself be a change.
            if self._has_worked or progress - self._saved >= self._options.checkpoint_revisions:
                await self._save(progress)

    async def _save(self, progress: int) -> None:
        if progress <= self._saved or not self.controller.watches:
            return
        self._has_worked = False
        self._in_background += 1
        try:
            await self._feed.save(self.controller.name, {_REVISION: progress})
        except errors.StatusError as error:
            _log.warning("%s: the checkpoint was not written: %s", self.controller.name, error)
        else:
            self._saved = progress
        finally:
            self._in_background -= 1


def _explain(error: Exception) -> str:
    return str(error) if isinstance(error, errors.StatusError) else f"{type(error).__name__}: {error}"


def _show(key: Hashable) -> str:
    return " ".join(map(str, key)) if type(key) is tuple else str(key)
