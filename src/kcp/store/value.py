"""The bytes of an object in the store: a short header that filters need, then the JSON that goes out.

A *value* is what a caller commits; `pack` makes it:

    byte  0       1      2        6          10      18          22          26      ..      ..
          version flags  body-at  splice-at  schema  labels-len  owners-len  labels  owners  {"kind":…,"metadata":{…}}
                                                                                     splice-at is here ───────────^

Both offsets count in the *stored* form, where readers use them.

*Stored* bytes are a value behind its revision (8 bytes), with `"resourceVersion":"<revision>",` written in at the
splice point. The stamp is put in once, when the revision is known and the bytes are written anyway, so that reading an
object is look up, slice, send. A splice point of 0 marks a value that takes no stamp.

Labels are packed as `\\x01key\\x02value\\x01key\\x02value\\x01`, so that `app=web` is one substring search for
`\\x01app\\x02web\\x01` and neither a list nor a watch with a selector parses JSON. Owner uids are joined by `\\x01`.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from kcp.meta import codec
from kcp.store.errors import InvalidCommit
from kcp.store.keys import ObjectKey, Revision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kcp.meta.codec import Object

FORMAT = 1

DELETING = 1  # metadata.deletionTimestamp is set
FINALIZERS = 2  # metadata.finalizers is not empty

_HEADER = struct.Struct(">BBIIQII")
_HEADER_BYTES = _HEADER.size
_REVISION = struct.Struct(">Q")
_REVISION_BYTES = _REVISION.size
_STORED_HEADER = struct.Struct(">QBBIIQII")
_BODY_AT = struct.Struct(">I")
_BODY_AT_OFFSET = _REVISION_BYTES + 2
_SPLICE_AT = struct.Struct(">I")
_SPLICE_AT_OFFSET = _BODY_AT_OFFSET + 4

_LABELS = re.compile(rb"\x01(?:[^\x01\x02]*\x02[^\x01\x02]*\x01)+")


def pack(
    body: bytes,
    *,
    splice: int = 0,
    labels: Mapping[str, str] | None = None,
    owners: Sequence[str] = (),
    flags: int = 0,
    schema: int = 0,
) -> bytes:
    """A value with `body`; `splice` counts from the body's start, 0 for a body that takes no resource version.

    `schema` names the schema the body was written under, so that a reader knows whether it has to convert; 0 is none.
    """
    packed_labels = pack_labels(labels) if labels else b""
    packed_owners = _pack_owners(owners) if owners else b""
    body_at = _STORED_HEADER.size + len(packed_labels) + len(packed_owners)
    splice_at = body_at + splice if splice else 0
    header = _HEADER.pack(FORMAT, flags, body_at, splice_at, schema, len(packed_labels), len(packed_owners))
    return b"".join((header, packed_labels, packed_owners, body))


def pack_object(obj: Object, *, schema: int = 0) -> bytes:
    """A value for a Kubernetes object, its resource version left out; the object itself is not changed."""
    metadata = {name: field for name, field in obj["metadata"].items() if name != "resourceVersion"}
    if not metadata:
        raise InvalidCommit("an object needs metadata: the resource version is written into it")
    head = codec.dumps({name: obj[name] for name in ("kind", "apiVersion") if name in obj})
    rest = codec.dumps({name: field for name, field in obj.items() if name not in ("kind", "apiVersion", "metadata")})
    # `{"kind":…` + `,"metadata":{` + `"name":…}` + `,"spec":…}`
    opening = (head[:-1] + b"," if len(head) > 2 else b"{") + b'"metadata":{'
    body = opening + codec.dumps(metadata)[1:] + (b"," + rest[1:] if len(rest) > 2 else b"}")
    flags = (DELETING if metadata.get("deletionTimestamp") else 0) | (FINALIZERS if metadata.get("finalizers") else 0)
    owners = [reference["uid"] for reference in metadata.get("ownerReferences") or ()]
    return pack(body, splice=len(opening), labels=metadata.get("labels"), owners=owners, flags=flags, schema=schema)


def pack_labels(labels: Mapping[str, str]) -> bytes:
    text = "\x01" + "".join(f"{name}\x02{label}\x01" for name, label in labels.items())
    if text.count("\x01") != len(labels) + 1 or text.count("\x02") != len(labels):
        raise InvalidCommit("a label contains a control character")
    return _encode(text)


def _pack_owners(owners: Sequence[str]) -> bytes:
    if not all(owners) or any("\x01" in owner for owner in owners):
        raise InvalidCommit("the uid of an owner is empty or contains a control character")
    return _encode("\x01".join(owners))


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidCommit(f"{text!r} is not valid Unicode") from error


def check_value(value: bytes) -> None:
    """Raise InvalidCommit unless `pack` could have made these bytes; a bad header must never reach a reader."""
    if len(value) < _HEADER_BYTES or value[0] != FORMAT:
        raise InvalidCommit("not a packed value: make it with pack() or pack_object()")
    _, _, body_at, splice_at, _, labels, owners = _HEADER.unpack_from(value)
    end = len(value) + _REVISION_BYTES
    well_placed = splice_at == 0 or body_at <= splice_at < end
    if body_at != _STORED_HEADER.size + labels + owners or body_at > end or not well_placed:
        raise InvalidCommit("not a packed value: its header does not fit its length")
    if labels or owners:
        _check_packed(
            value[_HEADER_BYTES : _HEADER_BYTES + labels], value[_HEADER_BYTES + labels : body_at - _REVISION_BYTES]
        )


def _check_packed(labels: bytes, owners: bytes) -> None:
    if labels and not _LABELS.fullmatch(labels):
        raise InvalidCommit("not a packed value: its labels cannot be read")
    try:
        labels.decode()
        owners.decode()
    except UnicodeDecodeError as error:
        raise InvalidCommit("not a packed value: its labels or owners are not valid Unicode") from error


def is_usable(value: bytes) -> bool:
    """Whether kcp could have written this value."""
    try:
        check_value(value)
    except InvalidCommit:
        return False
    return True


def stamp(value: bytes, revision: int) -> bytes:
    """The stored bytes of a value committed at `revision`."""
    stored = _REVISION.pack(revision) + value
    splice_at = _SPLICE_AT.unpack_from(stored, _SPLICE_AT_OFFSET)[0]
    return b'%b"resourceVersion":"%d",%b' % (stored[:splice_at], revision, stored[splice_at:]) if splice_at else stored


def unstamp(stored: bytes) -> bytes:
    """The value that `stored` was made from."""
    splice_at = _SPLICE_AT.unpack_from(stored, _SPLICE_AT_OFFSET)[0]
    if not splice_at:
        return stored[_REVISION_BYTES:]
    stamp_bytes = len(b'"resourceVersion":"",') + len(str(revision_of(stored)))
    return stored[_REVISION_BYTES:splice_at] + stored[splice_at + stamp_bytes :]


def revision_of(stored: bytes) -> Revision:
    return Revision(_REVISION.unpack_from(stored)[0])


def body_of(stored: bytes) -> bytes:
    return stored[_BODY_AT.unpack_from(stored, _BODY_AT_OFFSET)[0] :]


def bodies_of(pairs: Iterable[tuple[bytes, bytes]], skip: int = 0) -> list[bytes]:
    """The body of each (key, stored bytes) pair, less `skip` bytes: what a list of thousands spends its time on."""
    body_at = _BODY_AT.unpack_from
    if not skip:
        return [stored[body_at(stored, _BODY_AT_OFFSET)[0] :] for _, stored in pairs]
    return [stored[body_at(stored, _BODY_AT_OFFSET)[0] + skip :] for _, stored in pairs]


def labels_of(stored: bytes) -> bytes:
    """The packed labels, for substring searches."""
    length = _STORED_HEADER.unpack_from(stored)[6]
    start = _STORED_HEADER.size
    return stored[start : start + length]


class Record:
    """One object as it is stored: its key, its revision and what its header says, each read when asked for."""

    __slots__ = ("key", "stored")

    def __init__(self, key: ObjectKey, stored: bytes) -> None:
        self.key = key
        self.stored = stored

    @property
    def revision(self) -> Revision:
        return revision_of(self.stored)

    @property
    def body(self) -> bytes:
        """The JSON, resource version included."""
        return body_of(self.stored)

    @property
    def value(self) -> bytes:
        """What was committed."""
        return unstamp(self.stored)

    @property
    def flags(self) -> int:
        return self.stored[_REVISION_BYTES + 1]

    @property
    def schema(self) -> int:
        return int(_STORED_HEADER.unpack_from(self.stored)[5])

    @property
    def labels(self) -> dict[str, str]:
        pairs = labels_of(self.stored)[1:-1]
        return dict(pair.split("\x02") for pair in pairs.decode().split("\x01")) if pairs else {}

    @property
    def owners(self) -> list[str]:
        *_, labels, owners = _STORED_HEADER.unpack_from(self.stored)
        start = _STORED_HEADER.size + labels
        return self.stored[start : start + owners].decode().split("\x01") if owners else []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.key == other.key and self.stored == other.stored

    def __hash__(self) -> int:
        return hash((self.key, self.stored))

    def __repr__(self) -> str:
        return f"Record({self.key}, revision={self.revision}, {len(self.stored)} bytes)"
