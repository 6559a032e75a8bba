"""Shortening the log: which revision to compact to, and removing entries in steps that fit between commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store import layout
from kcp.store.keys import Revision

if TYPE_CHECKING:
    from datetime import datetime

    from kcp.store.options import StoreOptions
    from kcp.store.transaction import Group
    from kcp.store.view import View


def choose_revision(view: View, options: StoreOptions, now: datetime) -> Revision:
    """The revision that the options allow to compact to: old enough, or too many."""
    old_enough = view.revision_before(int((now.timestamp() - options.compact_age) * 1000))
    by_age = min(old_enough, view.revision - options.compact_min_revisions)
    return Revision(max(by_age, view.revision - options.compact_max_revisions, view.compacted))


def remove_step(group: Group, limit: int) -> bool:
    """Remove up to `limit` log entries that are out of reach, with their trail. False when none are left.

    And as many again as this group has added so far, twice over: under a flood the log must not grow faster than it is
    shortened.
    """
    env = group.engine.env
    limit += 2 * len(group.events)
    with group.txn.cursor(env.log) as cursor:
        if not cursor.first():
            return False
        for _ in range(limit):
            log_key, entry = cursor.item()
            if not log_key or layout.unpack_log_key(log_key)[0] > group.compacted:
                return False
            group.is_changed = True
            group.txn.delete(layout.trail_key(layout.log_entry_key(entry), log_key), db=env.trail)
            cursor.delete()  # and moves on to the next
    return True
