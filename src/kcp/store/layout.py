"""How the engine's tables are laid out, byte by byte.

    resources   group/resource/identity            -> number (4 bytes); number -> the same text
    now         number tail                        -> stored bytes
    log         revision (8) index (4)             -> time, key, old stored bytes, new stored bytes
    trail       cluster/ number revision index     -> nothing
    counts      cluster/ number                    -> how many objects;  "/" number -> over all clusters
    meta        a name                             -> revision, compacted, next resource number, format, origin

A worked example: an empty store, then revision 1 creates `a` in cluster `c1`, revision 2 updates it and creates `b` in
`c2`, revision 3 deletes `a`. With resource number 1 and values written as letters:

    now     1 c2//b -> Y2
    log     1.0 -> a, none, X1     2.0 -> a, X1, Z2     2.1 -> b, none, Y2     3.0 -> a, Z2, none
    trail   c1/1 1.0   c1/1 2.0   c1/1 3.0   c2/1 2.1
    counts  c2/1 -> 1   /1 -> 1

The log is what watchers resume from and how the past is found: `now` with the log undone down to a revision. The trail
leads to the log entries of one resource in one cluster, so that a tenant who resumes a watch or pages through a list
pays for its own changes and not for everyone's. It begins with the cluster, so that what one commit writes for a new
workspace, of several resources, lands on one page and not on many. compact(2) removes log 1.0, 2.0 and 2.1 and their
trail.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kcp.store.errors import InvalidCommit
from kcp.store.keys import MAX_TAIL_BYTES, ResourceKey

FORMAT = b"1"

META_FORMAT = b"format"
META_ORIGIN = b"origin"
META_REVISION = b"revision"
META_COMPACTED = b"compacted"
META_NEXT_RESOURCE = b"next-resource"

_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")
_LOG_KEY = struct.Struct(">QI")
_LOG_HEADER = struct.Struct(">QHI")

RESOURCE_BYTES = _U32.size
LOG_KEY_BYTES = _LOG_KEY.size


class LogEntry(NamedTuple):
    time_ms: int
    key: bytes  # as in `now`
    old: bytes | None
    new: bytes | None


pack_u64 = _U64.pack
pack_resource = _U32.pack


def unpack_u64(data: bytes | None) -> int:
    return int(_U64.unpack(data)[0]) if data is not None else 0


def unpack_u32(data: bytes) -> int:
    return int(_U32.unpack(data)[0])


def pack_log_key(revision: int, index: int = 0) -> bytes:
    return _LOG_KEY.pack(revision, index)


def unpack_log_key(data: bytes) -> tuple[int, int]:
    revision, index = _LOG_KEY.unpack(data)
    return revision, index


def pack_log_entry(time_ms: int, key: bytes, old: bytes | None, new: bytes | None) -> bytes:
    # Stored bytes are never empty, so an empty part says "none".
    return b"".join((_LOG_HEADER.pack(time_ms, len(key), len(old or b"")), key, old or b"", new or b""))


def unpack_log_entry(data: bytes) -> LogEntry:
    time_ms, key_bytes, old_bytes = _LOG_HEADER.unpack_from(data)
    old_at = _LOG_HEADER.size + key_bytes
    new_at = old_at + old_bytes
    return LogEntry(time_ms, data[_LOG_HEADER.size : old_at], data[old_at:new_at] or None, data[new_at:] or None)


def log_entry_key(data: bytes) -> bytes:
    """Only the key of a log entry: most entries are passed over."""
    _, key_bytes, _ = _LOG_HEADER.unpack_from(data)
    return data[_LOG_HEADER.size : _LOG_HEADER.size + key_bytes]


def log_entry_time(data: bytes) -> int:
    return int(_LOG_HEADER.unpack_from(data)[0])


def cluster_of(key: bytes) -> bytes:
    """The cluster of a `now` key."""
    return key[RESOURCE_BYTES : key.index(b"/", RESOURCE_BYTES)]


def trail_prefix(cluster: bytes, resource_number: bytes) -> bytes:
    """What the trail of one resource in one cluster begins with."""
    return cluster + b"/" + resource_number


def trail_key(key: bytes, log_key: bytes) -> bytes:
    """The step that leads to the log entry of a `now` key's change."""
    return trail_prefix(cluster_of(key), key[:RESOURCE_BYTES]) + log_key


def count_key(cluster: bytes, resource_number: bytes) -> bytes:
    return cluster + b"/" + resource_number


def pack_resource_name(resource: ResourceKey) -> bytes:
    name = "/".join(resource)
    if name.count("/") != 2 or len(name) > MAX_TAIL_BYTES or not name.isascii() or "_" in resource:
        raise InvalidCommit(f"{resource!r} is not a usable resource: a part contains '/' or is '_', or it is too long")
    return name.encode()


def unpack_resource_name(name: bytes) -> ResourceKey:
    return ResourceKey(*name.decode().split("/"))
