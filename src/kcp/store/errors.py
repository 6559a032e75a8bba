"""What can go wrong in the store, in the store's own words; `registry/errors.py` turns these into Status errors.

StoreError
├── Conflict         a commit's expectation did not hold; nothing of it was written
├── Compacted        the revision asked for is no longer in the log
├── FutureRevision   the revision asked for has not happened yet
├── InvalidCommit    the commit can never succeed as it is written
│   └── TooLarge     a key, a value or a whole commit is over the limit
├── Unavailable      no answer now, and nothing was written; try again
│   ├── Closed       the store was closed
│   └── NoSpace      the disk (or etcd's quota) is full; reads still work
├── OutcomeUnknown   the write may or may not have happened; read before trying again
├── InUse            another process has the store open for writing
└── Damaged          the file is not one of ours, or is torn
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcp.store.keys import ObjectKey
    from kcp.store.value import Record


class StoreError(Exception):
    """Anything the store refuses or cannot do."""


class Conflict(StoreError):
    """A commit expected `key` at another revision; `current` is what is there now, None if nothing is."""

    def __init__(self, key: ObjectKey, current: Record | None) -> None:
        found = "absent" if current is None else f"at revision {current.revision}"
        super().__init__(f"{key} is {found}, not at the revision the commit expected")
        self.key = key
        self.current = current


class Compacted(StoreError):
    """The history before `compacted` is gone, and `revision` lies in it."""

    def __init__(self, revision: int, compacted: int) -> None:
        super().__init__(f"revision {revision} has been compacted; the oldest one kept is {compacted}")
        self.revision = revision
        self.compacted = compacted


class FutureRevision(StoreError):
    """The store has only reached `current`."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is in the future; the current one is {current}")
        self.revision = revision
        self.current = current


class InvalidCommit(StoreError):
    """Malformed whatever the state of the store: a bad key, a key twice, no operations."""


class TooLarge(InvalidCommit):
    """Over one of the limits in `limits.py`; the message names the limit."""


class Unavailable(StoreError):
    """The store cannot answer now. Nothing was written."""


class Closed(Unavailable):
    """The store was closed."""

    def __init__(self) -> None:
        super().__init__("the store is closed")


class NoSpace(Unavailable):
    """No room for the write. Reads go on, and so do writes once there is room."""


class OutcomeUnknown(StoreError):
    """The connection broke, or time ran out, between asking for a write and hearing of it."""


class InUse(StoreError):
    """Another process writes to this store."""


class Damaged(StoreError):
    """The database file is foreign, torn or of a newer format. It was not changed."""
