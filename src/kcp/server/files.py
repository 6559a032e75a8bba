"""Files that only the owner may read, written as a whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Mode 0600, and never half of it, even if the machine stops."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)  # one that was left behind may have other permissions
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def read_or_make(path: Path, make: Callable[[], bytes]) -> bytes:
    """What the file holds; if there is none, what `make` gives, which is then kept."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        content = make()
        write_private(path, content)
        return content


def version_of(path: Path) -> tuple[int, int, int]:
    """Differs if the file does: it was written, or replaced by another."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
