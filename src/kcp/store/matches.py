"""Which keys of a scope have certain bytes in them: remembered, and brought up to date by what changed since.

A list with a label selector wants few of many objects, and the same few again and again. The first one walks the whole
scope; what it found is kept as keys, with the revision it is true at:

    (configmaps of root in default, "\\x01app\\x02web\\x01")   at 40: [a, c]
    r41 puts b with app=web, r42 deletes a                  the trail of the scope since 40: b, a
                                                            at 42: [b, c]

so the next one looks at two changes and reads two objects, not thousands. The memory is bounded by the number of keys,
the least used answers go first, and whatever cannot be brought up to date is found anew.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcp.store.keys import Scope
    from kcp.store.view import Bounds, View

MAX_KEYS = 100_000  # of all answers together; a key takes about 100 bytes
MAX_CHANGES = 1_000  # looking at more takes longer than a walk over what a cluster mostly has


class _Answer:
    __slots__ = ("keys", "revision")

    def __init__(self, revision: int, keys: list[bytes]) -> None:
        self.revision = revision
        self.keys = keys


class Matches:
    """Belongs to the thread of the loop, like the views it is used with."""

    def __init__(self, max_keys: int = MAX_KEYS, max_changes: int = MAX_CHANGES) -> None:
        self._max_keys = max_keys
        self._max_changes = max_changes
        self._answers: OrderedDict[tuple[Scope, bytes], _Answer] = OrderedDict()
        self._total = 0

    def find(self, view: View, scope: Scope, bounds: Bounds, contains: bytes) -> list[bytes]:
        """The engine's keys of the scope, in order, whose stored bytes contain these. The list must not be changed."""
        answer = self._answers.pop((scope, contains), None)
        if answer is not None:
            self._total -= len(answer.keys)
            if not self._bring_up(answer, view, scope, bounds, contains):
                answer = None
        if answer is None:
            found = [key for key, stored in view.scan(bounds) if contains in stored]
            answer = _Answer(view.revision, found)
        self._keep((scope, contains), answer)
        return answer.keys

    def _bring_up(self, answer: _Answer, view: View, scope: Scope, bounds: Bounds, contains: bytes) -> bool:
        """Whether the answer is now true at the view's revision."""
        if answer.revision == view.revision:
            return True
        if not view.compacted <= answer.revision < view.revision:
            return False
        changed: set[bytes] = set()
        for _, key in view.log_keys(scope, answer.revision):
            changed.add(key)
            if len(changed) > self._max_changes:
                return False
        keys = answer.keys
        for key in changed:
            if not bounds[0] <= key < bounds[1]:
                continue
            stored = view.txn.get(key)
            at = bisect_left(keys, key)
            is_known = at < len(keys) and keys[at] == key
            if stored is not None and contains in stored:
                if not is_known:
                    insort(keys, key)
            elif is_known:
                del keys[at]
        answer.revision = view.revision
        return True

    def _keep(self, name: tuple[Scope, bytes], answer: _Answer) -> None:
        if len(answer.keys) > self._max_keys:
            return
        self._answers[name] = answer
        self._total += len(answer.keys)
        while self._total > self._max_keys or len(self._answers) > self._max_keys // 100:
            _, dropped = self._answers.popitem(last=False)
            self._total -= len(dropped.keys)
