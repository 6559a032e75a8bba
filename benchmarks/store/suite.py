"""The benchmarks by name, each run in a process of its own so that none inherits the memory of another."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING

from benchmarks.measure import progress
from benchmarks.store.commits import measure_commits
from benchmarks.store.history import measure_history
from benchmarks.store.reads import measure_reads
from benchmarks.store.watches import measure_watches
from benchmarks.store.workspaces import measure_workspaces
from kcp.server import loop

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from benchmarks.report import Section
    from benchmarks.store.settings import Settings

BENCHMARKS = {
    "reads": measure_reads,
    "commits": measure_commits,
    "watches": measure_watches,
    "history": measure_history,
    "workspaces": measure_workspaces,
}


class BenchmarkFailed(Exception):
    """The process of a benchmark ended without a result; what it said is on stderr."""


def run_alone(name: str, settings: Settings) -> Section:
    """Run one benchmark to its end. Raises BenchmarkFailed."""
    progress(f"{name}: starting")
    start = time.monotonic()
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_run, args=(name, settings, sender))
    process.start()
    sender.close()
    try:
        section: Section = receiver.recv()
    except EOFError:
        raise BenchmarkFailed(f"the benchmark {name!r} did not end well") from None
    finally:
        process.terminate()
        process.join()
    progress(f"{name}: {time.monotonic() - start:.0f} s")
    return section


def _run(name: str, settings: Settings, sender: Connection) -> None:
    sender.send(loop.run(BENCHMARKS[name](settings)))
