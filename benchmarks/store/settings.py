"""How much each benchmark does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# What the store was asked for.
GETS_GOAL = 500_000
COMMITS_GOAL = 8_000
WORKSPACES_GOAL = 5_000
# Anonymous memory should not grow with the number of keys; this much is the noise of a memory allocator.
MEMORY_NOISE_MEBIBYTES = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults take a few minutes together."""

    directory: Path
    """Where stores are made; the disk that is measured."""

    rounds: int = 3
    """Measurements of the same thing, of which the best counts."""

    objects: int = 100_000
    """Objects to read from: more than the processor's caches hold."""

    busy_objects: int = 1_000
    """Those of them that are read often."""

    gets: int = 300_000
    """Reads in one round."""

    pages: int = 200
    """Ranges in one round."""

    commits: int = 20_000
    """Concurrent commits in one round; single ones are a tenth."""

    load_seconds: float = 3.0
    """How long readers and writers run side by side."""

    watchers: int = 1_000
    """The larger fan-out."""

    fan_out_events: int = 1_000_000
    """Events delivered in one round, over all watchers."""

    history: int = 10_000
    """Revisions of its own that a watcher resumes behind, and changes since a list began."""

    noise: int = 100_000
    """Revisions of others among them."""

    workspaces: int = 200_000
    """Workspaces of five keys each."""

    def shrunk(self) -> Settings:
        """Enough to see that everything works."""
        return replace(
            self,
            rounds=1,
            objects=2_000,
            gets=20_000,
            pages=20,
            commits=1_000,
            load_seconds=0.3,
            watchers=100,
            fan_out_events=20_000,
            history=500,
            noise=5_000,
            workspaces=min(self.workspaces, 2_000),
        )
