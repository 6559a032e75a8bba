"""Telling a person how far long work has come."""

from __future__ import annotations

import sys


class Progress:
    """A line on standard error that counts up, written only if a person is looking."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._is_shown = sys.stderr.isatty()
        self.done = 0

    def update(self, done: int, total: int | None = None) -> None:
        self.done = done
        if self._is_shown:
            share = f" of {total:,} ({100 * done // total}%)" if total else ""
            sys.stderr.write(f"\r{self._verb} {done:,}{share} objects ")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r" + " " * 70 + "\r")
            sys.stderr.flush()
