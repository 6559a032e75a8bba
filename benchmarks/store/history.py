"""The past: a watch resumed from the log and a list continued at an older revision, alone and among other tenants.

Neither should cost a tenant anything for what the others did meanwhile.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measure import Timed, best, progress, rate, rate_async
from benchmarks.report import Section, rate_row
from benchmarks.store import objects
from kcp.store import EmbeddedStore, Put, Revision, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.store.settings import Settings
    from kcp.store import Operation

_OWN = "tenant"
_OTHERS = 1_000
_LIMIT = 500
_WRITERS = 256


class _Measured(NamedTuple):
    catch_up: Timed
    present: Timed
    past: Timed


async def measure_history(settings: Settings) -> Section:
    """One tenant's history of `history` revisions, with and without `noise` revisions of others between them."""
    quiet = await _measure_store(settings, 0)
    noisy = await _measure_store(settings, settings.noise)
    own, noise = f"{settings.history:,}", f"{settings.noise:,}"
    slower = f"{noisy.catch_up.per_second / quiet.catch_up.per_second:.2f} of the rate without the others"
    older = f"{noisy.past.per_second / noisy.present.per_second:.2f} of the rate now"
    return Section(
        f"history, {own} revisions of one tenant",
        [
            rate_row(f"catch-up of {own} events", quiet.catch_up),
            rate_row(f"catch-up of {own} events among {noise}", noisy.catch_up, note=slower),
            rate_row(f"page of {_LIMIT} now", noisy.present),
            rate_row(f"page of {_LIMIT}, {own} changes of others ago", noisy.past, note=older),
        ],
    )


async def _measure_store(settings: Settings, noise: int) -> _Measured:
    progress(f"writing {settings.history:,} revisions, and {noise:,} of others between them")
    async with await EmbeddedStore.open(settings.directory / f"history-{noise}") as store:
        start = store.revision
        await objects.commit_all(store, _commits(settings.history, noise), writers=_WRITERS)
        listed = store.revision
        await objects.commit_all(store, _noise(settings.history), writers=_WRITERS)
        progress("catching up, and listing the past")
        return _Measured(
            best([await _catch_up(store, start, settings.history) for _ in range(settings.rounds)]),
            best(_list_pages(store, None) for _ in range(settings.rounds)),
            best(_list_pages(store, listed) for _ in range(settings.rounds)),
        )


def _commits(own: int, noise: int) -> Iterator[list[Operation]]:
    """The tenant's commits, each followed by its share of the others'."""
    others = _noise(noise)
    packed = objects.value()
    for number in range(own):
        yield [Put(objects.key(number, _OWN), packed)]
        yield from itertools.islice(others, noise // own)


def _noise(count: int) -> Iterator[list[Operation]]:
    packed = objects.value()
    for number in range(count):
        yield [Put(objects.key(number, f"other-{number % _OTHERS}"), packed)]


async def _catch_up(store: Store, start: Revision, events: int) -> Timed:
    async def receive() -> int:
        received = 0
        with store.watch(objects.in_cluster(_OWN), start) as watcher:
            while received < events:
                received += len((await watcher.next()).events)
        return received

    return await rate_async(receive)


def _list_pages(store: Store, revision: Revision | None) -> Timed:
    """The tenant's whole list in pages, as a client follows `continue`."""

    def follow() -> int:
        after, pages = None, 0
        while True:
            page = store.range(objects.in_cluster(_OWN), after=after, limit=_LIMIT, revision=revision)
            after, pages = page.next_after, pages + 1
            if after is None:
                return pages

    return rate(follow)
