"""Events end an hour after their last change.

Watches: nothing; looks at the clock.
Writes: deletes Events.
Steps: note now and then which revision the store has; delete the Events whose last change is not newer than the
revision of an hour ago, a bounded number at a time.

When an object was changed is not written on it, but its revision is, and revisions grow with time. So a few dozen notes
serve all Events of all logical clusters:

    10:00 revision 500 · 10:01 revision 740 · … · 11:00 revision 9000
    at 11:01 the Events up to revision 740 are an hour old or more
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kcp.controller.controller import DONE, Controller, Outcome, Periodic
from kcp.registry.changes import ChangeFeed, ResourceKey
from kcp.registry.stored import count_stored
from kcp.registry.sweep import expire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kcp.meta.codec import Object
    from kcp.registry.changes import ObjectKey
    from kcp.registry.registry import Registry

NAME: Final = "event-expiry"
EVENTS: Final = ResourceKey("", "events")
_NOTES: Final = "notes"


@dataclass(frozen=True, slots=True)
class ExpiryOptions:
    ttl_seconds: float = 3600.0
    """How long Events live after their last change."""

    notes: int = 60
    """Notes in one such time: Events may live longer by this part of it."""

    tick_seconds: float = 10.0
    """Between two looks."""

    parts_per_tick: int = 20
    """Parts of 500 Events that one look may take."""


@dataclass(frozen=True, slots=True)
class Deps:
    now: Callable[[], float]
    """Seconds since the epoch."""

    revision: Callable[[], int]
    count: Callable[[], int]
    expire: Callable[[int, ObjectKey | None], Awaitable[tuple[int, ObjectKey | None]]]
    load: Callable[[], Object | None]
    save: Callable[[Object], Awaitable[None]]
    options: ExpiryOptions


@dataclass(slots=True)
class Progress:
    """What is known of the past, and how far the present round got."""

    notes: list[tuple[float, int]] | None = None
    """Times and revisions, oldest first; None until they were read."""

    swept: int = 0
    """The revision up to which all Events are gone."""

    target: int = 0
    after: ObjectKey | None = field(default=None)


async def tick(progress: Progress, deps: Deps) -> None:
    if progress.notes is None:
        note = deps.load() or {}
        progress.notes = [(float(when), int(revision)) for when, revision in note.get(_NOTES, ())]
    if not deps.count():
        return
    await reconcile_notes(progress.notes, deps)
    if not progress.target:
        progress.target = choose_target(progress.notes, deps.now() - deps.options.ttl_seconds)
        if progress.target <= progress.swept:
            progress.target = 0
            return
    await reconcile_events(progress, deps)


async def reconcile_notes(notes: list[tuple[float, int]], deps: Deps) -> None:
    now, ttl = deps.now(), deps.options.ttl_seconds
    if notes and now - notes[-1][0] < ttl / deps.options.notes:
        return
    notes.append((now, deps.revision()))
    # One that is older than the time to live is enough.
    while len(notes) > 1 and notes[1][0] <= now - ttl:
        del notes[0]
    await deps.save({_NOTES: [list(note) for note in notes]})


def choose_target(notes: list[tuple[float, int]], before: float) -> int:
    """The newest revision known to be from before a time; 0 if none is."""
    return max((revision for when, revision in notes if when <= before), default=0)


async def reconcile_events(progress: Progress, deps: Deps) -> None:
    for _ in range(deps.options.parts_per_tick):
        _, progress.after = await deps.expire(progress.target, progress.after)
        if progress.after is None:
            progress.swept, progress.target = progress.target, 0
            return


async def _never(key: str) -> Outcome:
    return DONE


def new(registry: Registry, options: ExpiryOptions | None = None) -> Controller[str]:
    options = options or ExpiryOptions()
    feed = ChangeFeed(registry.store)
    deps = Deps(
        now=lambda: registry.clock.now().timestamp(),
        revision=lambda: feed.revision,
        count=lambda: count_stored(registry.store, EVENTS),
        expire=lambda before, after: expire(registry.store, EVENTS, before, after),
        load=lambda: feed.load(NAME),
        save=lambda note: feed.save(NAME, note),
        options=options,
    )
    progress = Progress()
    return Controller(
        NAME,
        _never,
        periodics=(Periodic(options.tick_seconds, lambda enqueue: tick(progress, deps)),),
        workers=1,
    )
