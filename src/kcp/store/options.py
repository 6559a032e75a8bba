"""What can be tuned in a store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Defaults suit a laptop and a busy server alike."""

    map_bytes: int = 1 << 40
    """Address space for the database, in bytes. It costs nothing until used, and doubles when it is full."""

    group_jobs: int = 1024
    """The most commits that share one transaction and one fsync. More would make the first of them wait too long."""

    compact_interval: float = 30.0
    """Seconds between looks at whether the log can be shortened."""

    compact_age: float = 600.0
    """Seconds of history to keep: how long a disconnected watcher may stay away."""

    compact_min_revisions: int = 10_000
    """History that is kept whatever its age, so that a watcher of a quiet store need not start anew."""

    compact_max_revisions: int = 500_000
    """History above this is dropped whatever its age, to bound the disk under a flood of writes."""

    compact_step: int = 256
    """Log entries removed in one transaction: about a millisecond of the writer's time."""

    watch_buffer_events: int = 2048
    """Events that wait for one slow watcher before it has to catch up from the log. More than a group has,
    so that a watcher that was idle takes any burst in its stride."""

    watch_buffer_bytes: int = 4 << 20
    """The same in bytes."""

    catch_up_events: int = 512
    """Log entries read at a time for a watcher that catches up: about a millisecond of the event loop."""
