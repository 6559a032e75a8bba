"""The process that tests/store/test_crash.py kills: 32 writers, a watcher, and a log that is compacted all the time.

    python -m tests.store.crash_writer write DIRECTORY AFTER SEED    writes until it is killed
    python -m tests.store.crash_writer read DIRECTORY                says what it sees for each line it is sent

Each writer counts its commits, and each commit puts the count into all keys it touches, so that a state says which
commits it is made of:

    ledger w     count n, and how many times writer w has counted on the shared counter
    members w    three objects in three resources and two clusters: all with n, or all deleted where `has_members(n)`
                 says so
    kept w-n     a new object that stays, where `keeps(n)` says so
    counter      the sum of what the ledgers say, in the same commit as the ledger that counted on

Reports are lines of JSON on standard output, each written with one call before anything else is done:

    ["opening"]  ["open", revision]  ["acknowledged", w, n, revision]  ["seen", revision, [[revision, key, text], …]]
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kcp.meta import codec
from kcp.store import Conflict, Delete, EmbeddedStore, ObjectKey, Put, Revision, StoreOptions
from kcp.store.check import find_problems
from kcp.store.engine import Engine
from tests.store.objects import EVERYTHING, SECRETS, WIDGETS, key, text_of, value

if TYPE_CHECKING:
    from kcp.store import Operation

WRITERS = 32
CLUSTERS = ("root", "other")

# Small enough to reach every limit in a second, and to remove entries while the next ones are written.
OPTIONS = StoreOptions(
    map_bytes=1 << 20,
    group_jobs=20,
    compact_interval=0.005,
    compact_age=0.0,
    compact_min_revisions=400,
    compact_step=9,
    watch_buffer_events=40,
    catch_up_events=50,
)

COUNTER = key("counter")


def ledger(writer: int) -> ObjectKey:
    return key(f"ledger-{writer}")


def members(writer: int) -> list[ObjectKey]:
    return [
        key(f"member-{writer}", cluster="other"),
        key(f"member-{writer}", resource=SECRETS),
        key(f"member-{writer}", resource=WIDGETS, namespace="", cluster=CLUSTERS[writer % 2]),
    ]


def kept(writer: int, number: int) -> ObjectKey:
    return key(f"kept-{writer}-{number}", namespace="kept", cluster=CLUSTERS[number % 2])


def has_members(number: int) -> bool:
    return number % 3 != 2


def keeps(number: int) -> bool:
    return number % 8 == 7


def report(*parts: Any) -> None:  # noqa: ANN401 - any JSON
    os.write(1, codec.dumps(parts) + b"\n")


def read_ledger(store: EmbeddedStore, writer: int) -> tuple[int, int]:
    """The writer's count, and its share of the counter."""
    record = store.get(ledger(writer))
    count, share = (text_of(record) or "").split(":") if record else ("0", "0")
    return int(count), int(share)


async def write(store: EmbeddedStore, writer: int, rng: random.Random) -> None:
    number, share = read_ledger(store, writer)
    while True:
        number += 1
        operations: list[Operation] = []
        for member in members(writer):
            text = str(number).ljust(rng.choice((1, 50, 3000, 9000)))
            operations.append(Put(member, value(text)) if has_members(number) else Delete(member))
        if keeps(number):
            operations.append(Put(kept(writer, number), value(str(number))))
        counts_on = rng.random() < 0.2
        revision = await (commit_counting if counts_on else commit)(store, writer, f"{number}:{share}", operations)
        share += counts_on
        report("acknowledged", writer, number, revision)


async def commit(store: EmbeddedStore, writer: int, text: str, operations: list[Operation]) -> Revision:
    return await store.commit([*operations, Put(ledger(writer), value(text))])


async def commit_counting(store: EmbeddedStore, writer: int, text: str, operations: list[Operation]) -> Revision:
    """The same, and one more on the counter that all writers share."""
    number, share = text.split(":")
    while True:
        record = store.get(COUNTER)
        total = int(text_of(record) or "") if record else 0
        count_on = Put(COUNTER, value(str(total + 1)), expect=record.revision if record else Revision(0))
        try:
            return await commit(store, writer, f"{number}:{int(share) + 1}", [*operations, count_on])
        except Conflict:
            continue


async def watch(store: EmbeddedStore, after: Revision) -> None:
    async for batch in store.watch(EVERYTHING, after):
        events = [[event.revision, str(event.key), (text_of(event.new) or "").strip()] for event in batch.events]
        report("seen", batch.revision, events)


async def write_until_killed(directory: Path, after: Revision, seed: int) -> None:
    report("opening")
    async with await EmbeddedStore.open(directory, options=OPTIONS) as store, asyncio.TaskGroup() as tasks:
        report("open", store.revision)
        tasks.create_task(watch(store, after))
        for writer in range(WRITERS):
            tasks.create_task(write(store, writer, random.Random(seed * WRITERS + writer)))


def read_on_demand(directory: Path) -> None:
    """Stays open over the death of any number of writers."""
    with Engine(directory, readonly=True) as engine:
        report("open")
        for _ in sys.stdin:
            with engine.view() as view:
                revision, objects = view.revision, view.object_count()
            report(revision, objects, list(find_problems(engine)))


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read_on_demand(Path(sys.argv[2]))
    else:
        asyncio.run(write_until_killed(Path(sys.argv[2]), Revision(int(sys.argv[3])), int(sys.argv[4])))
