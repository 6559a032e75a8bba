"""Who belongs to whom, read from the headers of stored objects.

There is no graph. To find the dependents of a deleted object, the headers of its logical cluster are read, in small
steps. Most deleted objects never owned anything, so the owners' uids of the clusters looked at last are remembered, as
one set for each:

    find_dependents(c1, {u1})   reads all headers of c1, finds a1 and a2 owned by u1, and b owned by u2
                                remembered: c1 -> {u1, u2}
    may_own(c1, u7)             False, without a look at the store
    note(b2 owned by u3 in c1)  remembered: c1 -> {u1, u2, u3}

A remembered set may hold uids that own nothing any more, never miss one that does: every change with owners is noted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from kcp.store import ObjectKey, Record, ResourceKey, Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from kcp.store import Store

SCAN_STEP: Final = 500  # headers read at a time: about half a millisecond of the event loop
MAX_UIDS: Final = 200_000  # remembered in all: about 25 MiB
# A remembered cluster costs its set, also when it is empty.
_SET_COST: Final = 4
_NO_KEY: Final = ObjectKey(ResourceKey("", ""), "", "", "")  # of records of which only the header is asked


async def owned_records(store: Store, cluster: str) -> AsyncIterator[Record]:
    """Every object of the cluster that has an owner."""
    for resource in store.counts(cluster):
        after: ObjectKey | None = None
        while True:
            page = store.range(Scope(resource, cluster), after=after, limit=SCAN_STEP)
            for record in page.records() if _any_owned(page.pairs) else ():
                if record.owners:
                    yield record
            after = page.next_after
            if after is None:
                break
            await asyncio.sleep(0)


def _any_owned(pairs: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(Record(_NO_KEY, stored).owners for _, stored in pairs)


async def find_dependents(store: Store, cluster: str, uids: frozenset[str]) -> list[Record]:
    """The objects of the cluster that name one of the uids as an owner."""
    return [record async for record in owned_records(store, cluster) if not uids.isdisjoint(record.owners)]


class OwnerIndex:
    """`find_dependents`, with a memory of bounded size. Fed with every change, in order."""

    def __init__(self, store: Store, ignored: frozenset[ResourceKey] = frozenset(), max_uids: int = MAX_UIDS) -> None:
        self._store = store
        self._ignored = ignored
        self._max_uids = max_uids
        self._known: OrderedDict[str, set[str]] = OrderedDict()
        self._cost = 0
        self._scanning: dict[str, list[set[str]]] = {}

    def note(self, cluster: str, owners: Iterable[str]) -> None:
        """An object with these owners was written."""
        known = self._known.get(cluster)
        if known is not None:
            before = len(known)
            known.update(owners)
            self._cost += len(known) - before
            self._evict()
        for fresh in self._scanning.get(cluster, ()):
            fresh.update(owners)

    def may_own(self, cluster: str, uid: str) -> bool:
        known = self._known.get(cluster)
        return known is None or uid in known

    async def find_dependents(self, cluster: str, uids: frozenset[str]) -> list[Record]:
        known = self._known.get(cluster)
        if known is not None:
            self._known.move_to_end(cluster)
            if known.isdisjoint(uids):
                return []
        fresh: set[str] = set()
        # What is written behind the scan's back is noted in the set that it makes.
        self._scanning.setdefault(cluster, []).append(fresh)
        try:
            found = []
            async for record in owned_records(self._store, cluster):
                if record.key.resource in self._ignored:
                    continue
                owners = record.owners
                fresh.update(owners)
                if not uids.isdisjoint(owners):
                    found.append(record)
        finally:
            scans = self._scanning[cluster]
            scans[:] = [each for each in scans if each is not fresh]
            if not scans:
                del self._scanning[cluster]
        self._remember(cluster, fresh)
        return found

    def _remember(self, cluster: str, uids: set[str]) -> None:
        self._forget(cluster)
        self._known[cluster] = uids
        self._cost += len(uids) + _SET_COST
        self._evict()

    def _forget(self, cluster: str) -> None:
        known = self._known.pop(cluster, None)
        if known is not None:
            self._cost -= len(known) + _SET_COST

    def _evict(self) -> None:
        while self._cost > self._max_uids and self._known:
            self._forget(next(iter(self._known)))
