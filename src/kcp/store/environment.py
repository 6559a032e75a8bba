"""The only door to LMDB: opening and checking the file, its tables, growth, and LMDB's errors in the store's words.

It must not know what the tables mean.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import TYPE_CHECKING, Final

import lmdb
import lmdb.verify

from kcp.store.errors import Damaged, InUse, NoSpace, StoreError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Transaction = lmdb.Transaction[bytes]

MapFull = lmdb.MapFullError
KeyTooLong = lmdb.BadValsizeError

_TABLES: Final = ("now", "log", "trail", "counts", "resources", "meta")
_DATA: Final = "data.mdb"
_MARKER: Final = "KCP-STORE"
_MARKER_TEXT: Final = "This directory is a kcp store. Back it up with `kcp backup`, never by copying its files.\n"
_LOCK: Final = "writer.lock"
_SMALLEST_MAP: Final = 1 << 30
_READERS: Final = 1022  # open read transactions, over all processes

_BROKEN = (
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.IncompatibleError,
)
# EFBIG: a file-size limit (ulimit -f) is met; EDQUOT: a disk quota.
_FULL = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class Environment:
    """One database directory, open in this process."""

    def __init__(self, path: Path, *, map_bytes: int, durable: bool = True, readonly: bool = False) -> None:
        self.path = path
        self._readonly = readonly
        with contextlib.ExitStack() as undo:
            if not readonly:
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
                undo.enter_context(_writer_lock(path))
            _check_present(path, readonly=readonly)
            with translated(path):
                self._env = _open(path, map_bytes, durable, readonly)
                undo.callback(self._env.close)
                _check_length(self._env, path)
                self._env.reader_check()  # frees the slots of readers that were killed
                if readonly:
                    self.now, self.log, self.trail, self.counts, self.resources, self.meta = self._open_existing()
                else:
                    self.now, self.log, self.trail, self.counts, self.resources, self.meta = (
                        self._env.open_db(name.encode()) for name in _TABLES
                    )
            self._undo = undo.pop_all()
        if not readonly:
            _write_marker(path)

    def _open_existing(self) -> list[lmdb._Database]:
        try:
            return [self._env.open_db(name.encode(), create=False) for name in _TABLES]
        except (lmdb.NotFoundError, lmdb.ReadonlyError) as error:
            raise Damaged(f"{self.path} is an LMDB database, but not a kcp store") from error

    def read(self) -> Transaction:
        """A read transaction on `now`. It sees one moment of the store; never keep it across an await."""
        try:
            return self._env.begin(self.now)
        except lmdb.MapResizedError:
            # The writing process has grown the map: adopt its size.
            self._env.set_mapsize(0)
            return self._env.begin(self.now)

    def write(self) -> Transaction:
        return self._env.begin(self.now, write=True)

    @property
    def map_bytes(self) -> int:
        return int(self._env.info()["map_size"])

    def grow(self) -> None:
        """Double the map. No transaction of this process may be open."""
        with translated(self.path):
            self._env.set_mapsize(self.map_bytes * 2)

    def used_bytes(self) -> int:
        """How far the file is in use, free pages inside it included."""
        return (int(self._env.info()["last_pgno"]) + 1) * int(self._env.stat()["psize"])

    def flush(self) -> None:
        with translated(self.path):
            self._env.sync(True)

    def clear_dead_readers(self) -> None:
        with translated(self.path):
            self._env.reader_check()

    def close(self) -> None:
        self._undo.close()


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """LMDB's errors as StoreErrors. MapFull passes: the writer answers it by growing the map."""
    try:
        yield
    except MapFull:
        raise
    except lmdb.ReadersFullError as error:
        raise Unavailable(f"{path}: too many processes read this store at once") from error
    except _BROKEN as error:
        raise Damaged(f"{path} cannot be used: {error}. Restore a backup with `kcp restore`.") from error
    except lmdb.Error as error:
        if any(text in str(error) for text in _FULL):
            raise NoSpace(f"no space left to write {path}: free some, then try again ({error})") from error
        raise StoreError(f"{path}: {error}") from error


def _open(path: Path, map_bytes: int, durable: bool, readonly: bool) -> lmdb.Environment:
    # Address space can be limited (ulimit -v); a smaller map grows later.
    while True:
        try:
            return lmdb.open(
                str(path),
                map_size=0 if readonly else map_bytes,
                max_dbs=len(_TABLES),
                max_readers=_READERS,
                readonly=readonly,
                sync=durable,
                metasync=durable,
                mode=0o600,
            )
        except lmdb.MemoryError:
            if readonly or map_bytes // 2 < _SMALLEST_MAP:
                raise
            map_bytes //= 2


def _check_present(path: Path, *, readonly: bool) -> None:
    data, marker = path / _DATA, path / _MARKER
    empty = not data.exists() or data.stat().st_size == 0
    if empty and (readonly or marker.exists()):
        # LMDB would quietly begin a new database here.
        raise Damaged(f"{data} is {'empty' if data.exists() else 'missing'}: there is no kcp store in {path}")
    if not empty and data.stat().st_size < 2 * 4096:
        raise Damaged(f"{data} is cut short: it has {data.stat().st_size} bytes")


def _check_length(env: lmdb.Environment, path: Path) -> None:
    """A file shorter than its pages would kill the process at the first missing one, so look before reading."""
    needed = (int(env.info()["last_pgno"]) + 1) * int(env.stat()["psize"])
    found = (path / _DATA).stat().st_size
    if found >= needed:
        return
    # Pages at the end may have been allocated and freed without ever being written. That is no damage, and only
    # a walk through the file can tell.
    try:
        problems = lmdb.verify.verify(str(path))  # type: ignore[no-untyped-call]
    except lmdb.verify.VerifyError as error:
        problems = [error]
    if problems:
        raise Damaged(f"{path / _DATA} is cut short: {found} bytes of {needed}. Restore a backup with `kcp restore`.")


def _write_marker(path: Path) -> None:
    marker = path / _MARKER
    if marker.exists():
        return
    with open(marker, "w", encoding="utf-8") as file:
        file.write(_MARKER_TEXT)
        file.flush()
        os.fsync(file.fileno())
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def _writer_lock(path: Path) -> Iterator[None]:
    """LMDB lets two processes take turns at writing; two servers would each miss the other's events."""
    with open(path / _LOCK, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise InUse(f"{path} is in use by process {owner}: stop it, or choose another directory") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
