"""The memory of a server's processes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROC = Path("/proc")


def tree_bytes(pids: Iterable[int], proc: Path = _PROC) -> int:
    """Anonymous memory of these processes and their descendants; mapped files are the kernel's to give back."""
    children: dict[int, list[int]] = {}
    for path in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            # The command's name, in parentheses, may hold anything; the parent is the second word after it.
            parent = int((path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.name))
    waiting, seen = list(pids), set[int]()
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            waiting += children.get(pid, ())
    return sum(_anonymous_bytes(proc / str(pid)) for pid in seen)


def _anonymous_bytes(process: Path) -> int:
    with contextlib.suppress(OSError):
        for line in (process / "status").read_text(encoding="utf-8").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0
