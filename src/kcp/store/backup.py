"""Hot backup: a consistent snapshot of a running store in one file, readable by any kind of store.

A backup is a gzip stream, so its end carries a checksum and a torn file is noticed:

    {"format":"kcp-backup","version":1,"revision":1234,"created":"2024-01-01T00:00:00Z"}\\n
    lengths (2+2+4 bytes)  resource  tail  stored bytes          for each object, in key order
    lengths all 0, number of objects (8 bytes)                   the end

Key order is by resource, in whatever order, and then by tail: each resource is in one piece, so nothing can be there
twice. A backup holds every Secret, so only its owner may read the file.

Writing one takes an engine: the server's own, or one that another process has opened read-only on the same directory
(LMDB does not let one process open it twice). All is read in a single view, and nothing waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import secrets
import struct
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple

from kcp.meta import codec
from kcp.meta.clock import format_time
from kcp.store import layout
from kcp.store.check import MAX_REVISION, find_flaw, is_mirror
from kcp.store.environment import translated
from kcp.store.errors import Damaged, InvalidCommit, NoSpace, StoreError, Unavailable
from kcp.store.files import sync_directory
from kcp.store.keys import MAX_TAIL_BYTES, ObjectKey, ResourceKey, Revision, decode_tail, encode_tail
from kcp.store.limits import MAX_COMMIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from kcp.store.engine import Engine
    from kcp.store.view import View

_FORMAT = "kcp-backup"
_VERSION = 1
_RECORD = struct.Struct(">HHI")
_END = struct.Struct(">Q")
_PROGRESS_EVERY = 10_000

# No object comes near, even if etcd was set to take larger requests; a scrambled length would ask for gigabytes.
_MAX_LENGTHS = (MAX_TAIL_BYTES, MAX_TAIL_BYTES, 16 * MAX_COMMIT_BYTES)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class BackupHeader(NamedTuple):
    revision: Revision
    created: str


def write_backup(
    engine: Engine, path: Path, now: datetime, progress: Callable[[int, int], None] | None = None
) -> tuple[BackupHeader, int]:
    """Write all objects of the engine as they are now, and return how many there were.

    The file appears under its name only when it is complete and on the disk. `progress(done, total)` is told now and
    then. Raises Unavailable for a mirror that is still being filled, Damaged for a store with an object that could not
    be restored, and StoreError, or NoSpace, if the file cannot be written.
    """
    refusal = f"the backup {path} could not be written"
    if os.path.exists(path) and not os.path.isfile(path):
        raise StoreError(f"{refusal}: it exists, and is not a file")
    try:
        with (
            _appearing(path) as file,
            gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0, filename="") as stream,
        ):
            return _write_objects(engine, stream, now, progress)
    except OSError as error:
        raise (NoSpace if error.errno in _FULL else StoreError)(f"{refusal}: {error.strerror or error}") from error


@contextlib.contextmanager
def _appearing(path: Path) -> Iterator[IO[bytes]]:
    """A new file for its owner's eyes only, that gets its name when it is complete and on the disk, or is removed."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    sync_directory(path.parent)


def _write_objects(
    engine: Engine, stream: gzip.GzipFile, now: datetime, progress: Callable[[int, int], None] | None
) -> tuple[BackupHeader, int]:
    with _open_view(engine) as view:
        header = BackupHeader(view.revision, format_time(now))
        stream.write(codec.dumps({"format": _FORMAT, "version": _VERSION, **header._asdict()}) + b"\n")
        total = view.object_count()
        count = 0
        for count, (resource, tail, stored) in enumerate(_objects(engine, view), 1):
            stream.write(_RECORD.pack(len(resource), len(tail), len(stored)))
            stream.write(resource + tail + stored)
            if progress is not None and count % _PROGRESS_EVERY == 0:
                progress(count, total)
        stream.write(_RECORD.pack(0, 0, 0) + _END.pack(count))
        return header, count


def _open_view(engine: Engine) -> View:
    try:
        view = engine.view()
    except struct.error as error:
        raise Damaged(f"{engine.env.path} has no readable revision: look at it with `kcp check`") from error
    if view.revision > MAX_REVISION:
        view.close()
        raise Damaged(f"{engine.env.path} says that it is at revision {view.revision}, which cannot be")
    # A new mirror is filled in steps, and gets its revision with the last one; etcd itself begins at 1.
    if view.revision == 0 and (view.object_count() > 0 or is_mirror(engine, view)):
        view.close()
        raise Unavailable(f"{engine.env.path} is still being filled: try again when the server is ready")
    return view


def _objects(engine: Engine, view: View) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Each object as (resource name, tail, stored bytes). Better no backup than one that cannot be restored."""
    with translated(engine.env.path):
        for key, stored in view.scan():
            try:
                object_key = view.key_of(key)
                resource, tail = layout.pack_resource_name(object_key.resource), encode_tail(object_key)
                flaw = find_flaw(stored, view.revision)
            except (StoreError, ValueError, TypeError) as error:
                flaw = str(error)
            if flaw:
                raise Damaged(f"{engine.env.path}: the object {key!r} cannot be backed up: {flaw}")
            yield resource, tail, stored


@contextlib.contextmanager
def open_backup(path: Path) -> Iterator[tuple[BackupHeader, Iterator[tuple[ObjectKey, bytes]]]]:
    """The header of a backup, and its objects as (key, stored bytes), each one that a store can take.

    Raises Damaged for any other file, at the latest when the last object is asked for, and StoreError for a file that
    cannot be read.
    """
    with contextlib.ExitStack() as opened:
        with _reading(path):
            stream = opened.enter_context(gzip.open(path, "rb"))
            header = _read_header(stream, path)
        yield header, _read_objects(stream, path, header.revision)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, InvalidCommit, ValueError) as error:
        raise Damaged(f"{path} is not a whole kcp backup: {error}") from error
    except OSError as error:
        raise StoreError(f"the backup {path} cannot be read: {error.strerror or error}") from error


def _read_header(stream: gzip.GzipFile, path: Path) -> BackupHeader:
    line = stream.readline(4096)
    try:
        header = codec.loads(line)
        if header["format"] != _FORMAT or not line.endswith(b"\n"):
            raise ValueError
        version, revision, created = header["version"], header["revision"], header["created"]
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{path} is not a kcp backup") from error
    # Of a bool, `type` says what `isinstance` does not.
    if type(version) is not int or version != _VERSION:
        raise Damaged(f"{path} has backup version {version}; this version of kcp reads {_VERSION}")
    if type(revision) is not int or not 0 <= revision <= MAX_REVISION or not isinstance(created, str):
        raise Damaged(f"{path} is not a kcp backup: it says it is of revision {revision}, created {created}")
    return BackupHeader(Revision(revision), created)


def _read_objects(stream: gzip.GzipFile, path: Path, newest: Revision) -> Iterator[tuple[ObjectKey, bytes]]:
    seen: set[bytes] = set()
    name, tail = b"", b""
    resource = ResourceKey("", "")
    count = 0
    with _reading(path):
        while any(lengths := _RECORD.unpack(_read_exactly(stream, _RECORD.size))):
            if any(length > limit for length, limit in zip(lengths, _MAX_LENGTHS, strict=True)):
                raise ValueError("it has an object that is too large")
            before = name, tail
            name, tail, stored = (_read_exactly(stream, length) for length in lengths)
            if name != before[0] or not seen:
                if name in seen:
                    raise ValueError("its objects are not in order")
                seen.add(name)
                resource = _parse_resource(name)
            elif tail <= before[1]:
                raise ValueError("its objects are not in order")
            yield _parse_key(resource, tail), _checked(stored, newest)
            count += 1
        if _END.unpack(_read_exactly(stream, _END.size))[0] != count or stream.read(1):
            raise ValueError("it does not have the objects it says it has")


def _parse_resource(name: bytes) -> ResourceKey:
    if name.count(b"/") != 2:
        raise ValueError(f"{name!r} is not a resource")
    resource = layout.unpack_resource_name(name)
    layout.pack_resource_name(resource)  # refuses what the store could not have had
    return resource


def _parse_key(resource: ResourceKey, tail: bytes) -> ObjectKey:
    key = decode_tail(resource, tail)
    encode_tail(key)
    return key


def _checked(stored: bytes, newest: Revision) -> bytes:
    if flaw := find_flaw(stored, newest):
        raise ValueError(f"it has an object that no store could have: {flaw}")
    return stored


def _read_exactly(stream: gzip.GzipFile, length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise EOFError("it ends in the middle of an object")
    return data
