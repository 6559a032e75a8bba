"""The memory of a tree of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.api.memory import tree_bytes

if TYPE_CHECKING:
    from pathlib import Path


def add_process(proc: Path, pid: int, parent: int, kibibytes: int, name: str = "kcp") -> None:
    directory = proc / str(pid)
    directory.mkdir()
    (directory / "stat").write_text(f"{pid} ({name}) S {parent} 0 0")
    (directory / "status").write_text(f"Name:\t{name}\nRssAnon:\t{kibibytes} kB\nRssFile:\t999 kB\n")


def test_children_and_their_children_count_and_others_do_not(tmp_path: Path) -> None:
    add_process(tmp_path, 10, 1, 100)
    add_process(tmp_path, 11, 10, 20, name="a) S 77 (b")
    add_process(tmp_path, 12, 11, 3)
    add_process(tmp_path, 13, 1, 5000)
    (tmp_path / "14").mkdir()  # it has just ended
    assert tree_bytes([10], tmp_path) == 123 * 1024
    assert tree_bytes([10, 11], tmp_path) == 123 * 1024
    assert tree_bytes([99], tmp_path) == 0
