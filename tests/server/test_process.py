"""Settings of the whole process; in a process of their own, because they cannot be taken back."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from kcp.server.process import GC_THRESHOLDS, tune_process
kept = [[] for _ in range(1000)]
tune_process()
assert gc.get_threshold() == GC_THRESHOLDS, gc.get_threshold()
assert gc.get_freeze_count() > 1000, gc.get_freeze_count()
print("tuned")
"""


def test_what_is_loaded_is_not_looked_at_again() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("tuned\n", "")
