"""The only door to LMDB: opening and checking the file, its tables, growth, and LMDB's errors in the store's words.

It must not know what the tables mean.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import resource
from typing import TYPE_CHECKING, Final

import lmdb
import lmdb.verify

from kcp.store.errors import Damaged, NoSpace, OutcomeUnknown, StoreError, Unavailable
from kcp.store.files import write_whole, writer_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    Transaction = lmdb.Transaction[bytes]

MapFull = lmdb.MapFullError
KeyTooLong = lmdb.BadValsizeError

_TABLES: Final = ("now", "log", "trail", "counts", "resources", "meta")
_DATA: Final = "data.mdb"
_LOCK_TABLE: Final = "lock.mdb"
_MARKER: Final = "KCP-STORE"
_MARKER_TEXT: Final = "This directory is a kcp store. Back it up with `kcp backup`, never by copying its files.\n"
_SMALLEST_MAP: Final = 1 << 30
_READERS: Final = 1022  # open read transactions, over all processes
_LOCK_TABLE_BYTES: Final = 1 << 17  # more than that many readers need
_HARDLY_ANY_SPACE: Final = 1 << 18
_READ_ATTEMPTS: Final = 10

_BROKEN = (
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.IncompatibleError,
)
# EFBIG: a file-size limit (ulimit -f) is met; EDQUOT: a disk quota.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Environment:
    """One database directory, open in this process."""

    def __init__(
        self,
        path: Path,
        begin: Callable[[Environment, Transaction], None] | None = None,
        *,
        map_bytes: int,
        durable: bool = True,
    ) -> None:
        """Open to read; or to write, and then `begin` is called in the transaction that creates a new database."""
        self.path = path
        with translated(path), contextlib.ExitStack() as undo:
            if begin is not None:
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
                undo.enter_context(writer_lock(path))
            is_new = _check_present(path, readonly=begin is None)
            if begin is not None:
                _reserve_lock_table(path)
            # Translated inside, because what is removed makes room on a full disk.
            with contextlib.ExitStack() as undo_new, translated(path):
                if is_new:
                    undo_new.callback(_remove_new, path)
                self._env = _open(path, map_bytes, durable, begin is None)
                undo.callback(self._env.close)
                _check_length(self._env, path)
                self._env.reader_check()  # frees the slots of readers that were killed
                self._open_tables(begin)
                if begin is not None:
                    _mark(path)
                undo_new.pop_all()
            self._undo = undo.pop_all()

    def _open_tables(self, begin: Callable[[Environment, Transaction], None] | None) -> None:
        names = [name.encode() for name in _TABLES]
        if begin is not None and self._env.stat()["entries"] == 0 and not (self.path / _MARKER).exists():
            # All tables and what they begin with in one transaction: a store is there, or it is not.
            with self._env.begin(write=True) as txn:
                self._name(self._env.open_db(name, txn=txn) for name in names)
                begin(self, txn)
            return
        try:
            self._name(self._env.open_db(name, create=False) for name in names)
        except (lmdb.NotFoundError, lmdb.ReadonlyError) as error:
            raise Damaged(f"{self.path} is an LMDB database, but not a kcp store") from error

    def _name(self, tables: Iterable[lmdb._Database]) -> None:
        self.now, self.log, self.trail, self.counts, self.resources, self.meta = tables

    def read(self) -> Transaction:
        """A read transaction on `now`. It sees one moment of the store; never keep it across an await."""
        try:
            return self._env.begin(self.now)
        except (lmdb.MapResizedError, lmdb.ReadersFullError):
            return self._read_after_all()
        except lmdb.Error as error:
            raise _translate(self.path, error) from error

    def _read_after_all(self) -> Transaction:
        """Adopt the size of a map that the writing process has grown, and the places of readers that were killed."""
        for _ in range(_READ_ATTEMPTS):
            try:
                self._env.reader_check()
                return self._env.begin(self.now)
            except lmdb.MapResizedError:
                self._env.set_mapsize(0)
            except lmdb.Error as error:
                raise _translate(self.path, error) from error
        raise Unavailable(f"{self.path} grows faster than it can be read")

    def write(self) -> Transaction:
        return self._env.begin(self.now, write=True)

    @property
    def map_bytes(self) -> int:
        return int(self._env.info()["map_size"])

    def grow(self) -> None:
        """Double the map. No transaction of this process may be open."""
        size = self.map_bytes
        try:
            # LMDB gives up the old map before it knows whether it gets one that is twice as large, so ask first.
            mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self.path} is full, and there is no address space for a larger map") from error
        with translated(self.path):
            self._env.set_mapsize(size * 2)

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
    """LMDB's errors and the system's as StoreErrors. MapFull passes: the writer answers it by growing the map."""
    try:
        yield
    except MapFull:
        raise
    except lmdb.Error as error:
        raise _translate(path, error) from error
    except OSError as error:
        if error.errno in _FULL:
            raise NoSpace(f"no space left to write {path}: free some, then try again") from error
        raise StoreError(f"{path} cannot be used: {error.strerror or error}") from error


def _translate(path: Path, error: lmdb.Error) -> StoreError:
    if isinstance(error, lmdb.ReadersFullError):
        return Unavailable(f"{path}: too many processes read this store at once")
    if isinstance(error, lmdb.PanicError):
        return Unavailable(f"{path}: the disk failed in the middle of a write. Restart kcp; nothing is lost ({error})")
    if isinstance(error, _BROKEN):
        return Damaged(f"{path} cannot be used: {error}. Restore a backup with `kcp restore`.")
    if any(os.strerror(code) in str(error) for code in _FULL) or _is_full(path):
        return NoSpace(f"no space left to write {path}: free some, then try again ({error})")
    if "mdb_txn_commit" in str(error):
        # Most of these happen before anything is valid on the disk, but not all.
        return OutcomeUnknown(f"{path} could not be written: {error}")
    return Unavailable(f"{path}: {error}")


def _is_full(path: Path) -> bool:
    """LMDB calls a write that was cut short an I/O error, so look at whether there is room."""
    try:
        disk = os.statvfs(path)
        size = (path / _DATA).stat().st_size
    except OSError:
        return False
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    is_limited = limit != resource.RLIM_INFINITY and size + _HARDLY_ANY_SPACE >= limit
    return is_limited or disk.f_bavail * disk.f_frsize < _HARDLY_ANY_SPACE


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


def _check_present(path: Path, *, readonly: bool) -> bool:
    """Whether the database has yet to be created."""
    data, marker = path / _DATA, path / _MARKER
    is_empty = not data.exists() or data.stat().st_size == 0
    if is_empty and (readonly or marker.exists()):
        # LMDB would quietly begin a new database here.
        raise Damaged(f"{data} is {'empty' if data.exists() else 'missing'}: there is no kcp store in {path}")
    if not is_empty and data.stat().st_size < 2 * 4096:
        raise Damaged(f"{data} is cut short: it has {data.stat().st_size} bytes")
    return is_empty


def _reserve_lock_table(path: Path) -> None:
    """LMDB maps this file without making sure that the disk has room for it, and would die at the first access."""
    file = os.open(path / _LOCK_TABLE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, _LOCK_TABLE_BYTES)
    finally:
        os.close(file)


def _remove_new(path: Path) -> None:
    """What a failed beginning leaves would later be taken for a torn store."""
    for name in (_MARKER, f"{_MARKER}.new", _DATA, _LOCK_TABLE):
        (path / name).unlink(missing_ok=True)


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


def _mark(path: Path) -> None:
    if not (path / _MARKER).exists():
        write_whole(path / _MARKER, _MARKER_TEXT)
