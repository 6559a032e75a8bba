"""Remembering, from page to page, what has changed since a revision that someone is paging through.

A range in the past is the present with later changes undone, so each page needs to know all of them. Walking the log
anew for every page would make paging through a busy cluster quadratic, on an event loop that all tenants share. So the
walk is kept and continued:

    page 1 at r100   nothing has changed yet
    page 2 at r100   log r101..r180 is walked: {a: r103, d: r150}       a was last seen before r103, d before r150
    page 3 at r100   log r181..r190 is walked: {a: r103, d: r150, f: r185}

Only keys and places in the log are kept, never values, and a bounded number of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kcp.store import layout
from kcp.store.errors import Compacted
from kcp.store.keys import Revision

if TYPE_CHECKING:
    from kcp.store.keys import Scope
    from kcp.store.view import View

_MOST_WALKS = 64


class _Walk(NamedTuple):
    reached: Revision
    changed: dict[bytes, bytes]  # key to the log key of its first change


class Past:
    """Belongs to one engine; the least recently used walks are forgotten first."""

    def __init__(self, *, most_keys: int = 200_000, most_steps: int = 20_000) -> None:
        """`most_keys` bounds memory, to about 40 MB; `most_steps` is what one range may walk, in about 50 ms."""
        self._most_keys = most_keys
        self._most_steps = most_steps
        self._walks: dict[tuple[Scope, Revision], _Walk] = {}

    def changed_since(self, view: View, scope: Scope, revision: Revision) -> dict[bytes, bytes]:
        """The scope's keys that changed after a revision, each with the log key of its first change since.

        Raises Compacted if there are too many to find in one go: whoever asks has waited too long to go on.
        """
        reached, changed = self._walks.pop((scope, revision), _Walk(revision, {}))
        number = b"" if scope.resource is None else view.number_of(scope.resource) or b"none"
        for steps, (log_key, key) in enumerate(view.log_keys(scope, reached)):
            if steps >= self._most_steps:
                # What was walked is kept, so that asking again gets further.
                whole = Revision(layout.unpack_log_key(log_key)[0] - 1)
                self._walks[scope, revision] = _Walk(max(reached, whole), changed)
                self._forget_some()
                raise Compacted(revision, view.revision)
            if key.startswith(number):
                changed.setdefault(key, log_key)
        self._walks[scope, revision] = _Walk(view.revision, changed)
        self._forget_some()
        return changed

    def clear(self) -> None:
        self._walks.clear()

    def _forget_some(self) -> None:
        kept = sum(len(walk.changed) for walk in self._walks.values())
        while kept > self._most_keys or len(self._walks) > _MOST_WALKS:
            oldest = next(iter(self._walks))
            kept -= len(self._walks.pop(oldest).changed)
