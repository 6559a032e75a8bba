"""The bottom of protobuf: varints, tags, the table of messages and the error; must not know what a message means."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from kcp.meta import codec

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
_START_GROUP: Final = 3
_END_GROUP: Final = 4
_FIXED32: Final = 5

# What every enveloped object begins with.
PREFIX: Final = b"k8s\0"

# How deep messages may nest. A schema's level is one message and two levels of JSON, of which codec allows 254.
MAX_DEPTH: Final = 128

# Kinds that belong to every group and version besides v1.
_EVERYWHERE: Final = frozenset(
    ("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent")
)

_SCALAR_WIRE_TYPES: Final = {"bool": VARINT, "int32": VARINT, "int64": VARINT, "double": FIXED64}


class ProtobufError(ValueError):
    """The bytes are no object, or the object is not for protobuf. The message is for the client who sent it."""


class Field(NamedTuple):
    """One row of the table: `[7, "generation", "?int64"]`."""

    number: int
    name: str  # in JSON; empty if the fields of the message stand among those of its parent
    element: str  # the type without its marks
    shape: str  # "": plain, "?": plain and left out of JSON if zero, "*": pointer, "[]": list, "map[string]"

    @property
    def tag(self) -> int:
        wire_type = BYTES if self.shape == "map[string]" else wire_type_of(self.element)
        return self.number << 3 | wire_type


@cache
def load_table() -> tuple[dict[str, str], dict[str, list[Field]]]:
    """The messages of kinds, as `apiVersion/kind`, and the fields of messages."""
    document = codec.loads((files("kcp") / "apis" / "data" / "zz_protobuf.json").read_bytes())
    messages: dict[str, list[list[Any]]] = document["messages"]
    return document["kinds"], {name: [_field(*row) for row in rows] for name, rows in messages.items()}


def message_of(api_version: str, kind: str) -> str | None:
    """The message of a kind; None if there is no protobuf for it."""
    kinds = load_table()[0]
    message = kinds.get(f"{api_version}/{kind}")
    if message is None and kind in _EVERYWHERE and "/" in api_version:
        message = kinds[f"v1/{kind}"]
    return message


def wire_type_of(element: str) -> int:
    return _SCALAR_WIRE_TYPES.get(element, BYTES)


def write_varint(number: int) -> bytes:
    """`number` in groups of seven bits, lowest first; negative numbers as 64-bit two's complement."""
    if 0 <= number < 0x80:
        return _ONE_BYTE[number]
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at this place and where it ends. Raises ProtobufError."""
    number = shift = 0
    while True:
        if shift >= 64:
            raise ProtobufError("proto: integer overflow")
        if at >= end:
            raise ProtobufError("unexpected EOF")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def read_span(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where the bytes behind a length begin and end. Raises ProtobufError if they go beyond the message."""
    if at < end and data[at] < 0x80:  # nearly all lengths are short
        length, at = data[at], at + 1
    else:
        length, at = read_varint(data, at, end)
    if length >= 1 << 63:
        raise ProtobufError("proto: negative length found during unmarshaling")
    if at + length > end:
        raise ProtobufError("unexpected EOF")
    return at, at + length


def skip(data: bytes, at: int, end: int, wire_type: int) -> int:
    """Where the value of an unknown field ends. Groups may nest; they cost no recursion. Raises ProtobufError."""
    depth = 0
    while True:
        if wire_type == VARINT:
            _, at = read_varint(data, at, end)
        elif wire_type == FIXED64:
            at += 8
        elif wire_type == BYTES:
            _, at = read_span(data, at, end)
        elif wire_type == _START_GROUP:
            depth += 1
        elif wire_type == _END_GROUP:
            depth -= 1  # never of a group that was not begun: refuse_tag has seen to that
        elif wire_type == _FIXED32:
            at += 4
        else:
            raise ProtobufError(f"proto: illegal wireType {wire_type}")
        if at > end:
            raise ProtobufError("unexpected EOF")
        if depth == 0:
            return at
        tag, at = read_varint(data, at, end)
        wire_type = tag & 7


def refuse_tag(message: str, tag: int, known: dict[int, str]) -> None:
    """Raise ProtobufError if a tag that the message does not list is wrong rather than unknown; worded as gogo does."""
    wire_type, number = tag & 7, tag >> 3 & 0xFFFFFFFF
    if number >= 1 << 31:
        number -= 1 << 32
    if wire_type == _END_GROUP:
        raise ProtobufError(f"proto: {message}: wiretype end group for non-group")
    if number <= 0:
        raise ProtobufError(f"proto: {message}: illegal tag {number} (wire type {tag})")
    if number in known:
        name = known[number]
        raise ProtobufError(f"proto: wrong wireType = {wire_type} for field {name[:1].upper()}{name[1:]}")


def _field(number: int, name: str, spelled: str) -> Field:
    for shape in ("?", "*", "[]", "map[string]"):
        if spelled.startswith(shape):
            return Field(number, name, spelled.removeprefix(shape), shape)
    return Field(number, name, spelled, "")


_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(0x80))
