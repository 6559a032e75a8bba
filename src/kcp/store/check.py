"""Looking for contradictions in a store: what must hold between its tables, whatever happened to the process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kcp.store import layout
from kcp.store.errors import InvalidCommit
from kcp.store.value import check_value, revision_of, unstamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kcp.store.engine import Engine
    from kcp.store.view import View


def find_problems(engine: Engine) -> Iterator[str]:
    """Each contradiction in words; none for a sound store. Reads everything, in one view."""
    with engine.view() as view:
        yield from _check_objects(engine, view)
        yield from _check_log(engine, view)


def _check_objects(engine: Engine, view: View) -> Iterator[str]:
    counted: Counter[bytes] = Counter()
    for key, stored in view.scan():
        try:
            name = engine.key_of(key)
            check_value(unstamp(stored))
        except (ValueError, InvalidCommit) as error:
            yield f"object {key!r} cannot be read: {error}"
            continue
        if not 0 < revision_of(stored) <= view.revision:
            yield f"{name} has revision {revision_of(stored)}, but the store is at {view.revision}"
        number = key[: layout.RESOURCE_BYTES]
        counted[layout.count_key(name.cluster.encode(), number)] += 1
        counted[layout.count_key(b"", number)] += 1
    with view.txn.cursor(engine.env.counts) as cursor:
        recorded = {key: layout.unpack_u64(count) for key, count in cursor}
    if recorded != counted:
        wrong = [key for key in recorded.keys() | counted.keys() if recorded.get(key) != counted.get(key)]
        yield f"{len(wrong)} object counts are wrong, for example that of {wrong[0]!r}"


def _check_log(engine: Engine, view: View) -> Iterator[str]:
    env = engine.env
    last_new: dict[bytes, bytes | None] = {}
    steps = set()
    with view.txn.cursor(env.log) as cursor:
        for log_key, entry in cursor:
            revision, _ = layout.unpack_log_key(log_key)
            change = layout.unpack_log_entry(entry)
            steps.add(layout.trail_prefix(change.key) + log_key)
            if revision > view.revision:
                yield f"the log has revision {revision}, but the store is at {view.revision}"
            if revision <= view.compacted:
                continue  # out of reach, and soon removed
            if change.key in last_new and last_new[change.key] != change.old:
                yield f"{engine.key_of(change.key)}: revision {revision} does not continue the one before it"
            last_new[change.key] = change.new
    for key, new in last_new.items():
        if view.txn.get(key) != new:
            yield f"{engine.key_of(key)} is not as its last change in the log left it"
    with view.txn.cursor(env.trail) as cursor:
        trail = set(cursor.iternext(keys=True, values=False))
    if trail != steps:
        yield f"the trail and the log differ in {len(trail ^ steps)} entries"
