"""Hot backup: a consistent snapshot of a running store in one file, readable by any kind of store.

A backup is a gzip stream, so its end carries a checksum and a torn file is noticed:

    {"format":"kcp-backup","version":1,"revision":1234,"created":"2024-01-01T00:00:00Z"}\\n
    lengths (2+2+4 bytes)  resource  tail  stored bytes          for each object, in key order
    lengths all 0, number of objects (8 bytes)                   the end

Writing one needs nothing but the store's directory: it is opened read-only, by this or another process, and read in a
single view. Nothing waits for it.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from kcp.meta import codec
from kcp.meta.clock import format_time
from kcp.store import layout
from kcp.store.errors import Damaged, StoreError
from kcp.store.keys import ObjectKey, Revision, decode_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from kcp.store.engine import Engine

_FORMAT = "kcp-backup"
_VERSION = 1
_RECORD = struct.Struct(">HHI")
_END = struct.Struct(">Q")
_PROGRESS_EVERY = 10_000


class BackupHeader(NamedTuple):
    revision: Revision
    created: str


def write_backup(
    engine: Engine, path: Path, now: datetime, progress: Callable[[int, int], None] | None = None
) -> tuple[BackupHeader, int]:
    """Write all objects of the engine as they are now, and return how many there were.

    The file appears under its name only when it is complete and on the disk. `progress(done, total)` is told now and
    then.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "wb") as file:
            with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0, filename="") as stream:
                header, count = _write_objects(engine, stream, now, progress)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise StoreError(f"the backup {path} could not be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
    return header, count


def _write_objects(
    engine: Engine, stream: gzip.GzipFile, now: datetime, progress: Callable[[int, int], None] | None
) -> tuple[BackupHeader, int]:
    with engine.view() as view:
        header = BackupHeader(view.revision, format_time(now))
        stream.write(codec.dumps({"format": _FORMAT, "version": _VERSION, **header._asdict()}) + b"\n")
        total = view.object_count()
        count = 0
        for count, (key, stored) in enumerate(view.scan(), 1):
            resource = layout.pack_resource_name(engine.resource_of(key[: layout.RESOURCE_BYTES]))
            tail = key[layout.RESOURCE_BYTES :]
            stream.write(_RECORD.pack(len(resource), len(tail), len(stored)))
            stream.write(resource + tail + stored)
            if progress is not None and count % _PROGRESS_EVERY == 0:
                progress(count, total)
        stream.write(_RECORD.pack(0, 0, 0) + _END.pack(count))
        return header, count


@contextlib.contextmanager
def open_backup(path: Path) -> Iterator[tuple[BackupHeader, Iterator[tuple[ObjectKey, bytes]]]]:
    """The header of a backup, and its objects as (key, stored bytes). Raises Damaged for any other file."""
    try:
        with gzip.open(path, "rb") as stream:
            yield _read_header(stream, path), _read_objects(stream, path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Damaged(f"{path} is not a whole backup: {error}") from error


def _read_header(stream: gzip.GzipFile, path: Path) -> BackupHeader:
    line = stream.readline(4096)
    try:
        header = codec.loads(line)
        if header["format"] != _FORMAT:
            raise ValueError
        version, revision, created = header["version"], header["revision"], header["created"]
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{path} is not a kcp backup") from error
    if version != _VERSION:
        raise Damaged(f"{path} has backup version {version}; this version of kcp reads {_VERSION}")
    return BackupHeader(Revision(revision), created)


def _read_objects(stream: gzip.GzipFile, path: Path) -> Iterator[tuple[ObjectKey, bytes]]:
    count = 0
    while True:
        lengths = _RECORD.unpack(_read_exactly(stream, _RECORD.size))
        if not any(lengths):
            break
        resource, tail, stored = (_read_exactly(stream, length) for length in lengths)
        yield decode_tail(layout.unpack_resource_name(resource), tail), stored
        count += 1
    if _END.unpack(_read_exactly(stream, _END.size))[0] != count or stream.read(1):
        raise Damaged(f"{path} is not a whole backup: it does not have the objects it says it has")


def _read_exactly(stream: gzip.GzipFile, length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise EOFError("it ends in the middle of an object")
    return data
