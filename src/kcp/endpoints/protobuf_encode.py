"""Objects to protobuf messages, byte for byte as the generated Go code writes them.

Each message becomes a closure when it is first needed. Go's rules: fields in the order of their numbers, maps in the
order of their keys, a plain field always (an empty string takes two bytes), a pointer only if it is set.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from kcp.endpoints.protobuf_wire import BYTES, PREFIX, Field, load_table, message_of, wire_type_of, write_varint
from kcp.meta import clock, codec

if TYPE_CHECKING:
    from kcp.meta.codec import Object

Append = Callable[[bytes], None]
Body = Callable[[Any], bytes]  # the value's bytes without tag and length
Put = Callable[[Any, Append], None]  # tag, length and bytes of a field that is there
Head = Callable[[int], bytes]  # tag and length, from the length

_KEY_TAG: Final = 1 << 3 | BYTES  # of the entry of a map, as is the next
_VALUE_TAG: Final = 2 << 3 | BYTES
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_ZEROS: Final[dict[str, Any]] = {
    "bool": False,
    "int32": 0,
    "int64": 0,
    "double": 0.0,
    "string": "",
    "bytes": "",
    "quantity": "0",
    "strings": [],
    "time": None,
    "microTime": None,
    "json": None,
    "rawExtension": None,
}


@cache
def encoder_for(message: str) -> Body:
    """What turns an object into the bytes of the message. Cached before it is complete, as schemas hold schemas."""
    union = _UNIONS.get(message)
    if union is not None:
        return union
    plan: list[tuple[str, Put, bytes | None]] | None = None
    inlined: list[Put] = []

    def make_plan() -> list[tuple[str, Put, bytes | None]]:
        rows = []
        for field in load_table()[1][message]:
            if field.name:
                rows.append((field.name, _put(field), _absent(field)))
            else:
                inlined.append(_put_single(field))
        return rows

    def encode(obj: Object) -> bytes:
        nonlocal plan
        if plan is None:
            plan = make_plan()
        parts: list[bytes] = []
        append = parts.append
        get = obj.get
        for name, put, absent in plan:
            value = get(name)
            if value is not None:
                put(value, append)
            elif absent is not None:
                append(absent)
        for put in inlined:  # always the message's last field
            put(obj, append)
        return b"".join(parts)

    return encode


def encode_envelope(obj: Object) -> bytes:
    """`k8s\\0` and a runtime.Unknown around the object. Raises KeyError if its kind has no protobuf."""
    api_version, kind = obj["apiVersion"], obj["kind"]
    message = message_of(api_version, kind)
    if message is None:
        raise KeyError(f"{api_version}, Kind={kind}")
    return envelope(api_version, kind, encoder_for(message)(obj))


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """The last two fields of the Unknown, encoding and content type, are always there and always empty."""
    return b"".join((_envelope_start(api_version, kind), write_varint(len(raw)), raw, b"\x1a\x00\x22\x00"))


@lru_cache(maxsize=256)
def _envelope_start(api_version: str, kind: str) -> bytes:
    type_meta = _write_each(1, [api_version.encode()]) + _write_each(2, [kind.encode()])
    return PREFIX + _write_each(1, [type_meta]) + b"\x12"


@cache
def head_for(tag: int) -> Head:
    """Writes a tag and a length; the usual lengths are ready-made."""
    prefix, short = write_varint(tag), _short_heads(tag)

    def head(length: int) -> bytes:
        if length < 0x80:
            return short[length]
        if length < 0x4000:
            return prefix + bytes((length & 0x7F | 0x80, length >> 7))
        return prefix + write_varint(length)

    return head


@cache
def _short_heads(tag: int) -> tuple[bytes, ...]:
    """The tag with each of the lengths that take one byte. Looking one up takes half as long as a call."""
    return tuple(write_varint(tag) + write_varint(length) for length in range(0x80))


def _put(field: Field) -> Put:
    if field.shape == "[]":
        return _put_list(field)
    if field.shape == "map[string]":
        return _put_map(field)
    return _put_single(field)


def _put_single(field: Field) -> Put:
    body = _body(field.element)
    if wire_type_of(field.element) != BYTES:
        prefix = write_varint(field.tag)
        return lambda value, append: append(prefix + body(value))
    head, short = head_for(field.tag), _short_heads(field.tag)

    def put(value: Any, append: Append) -> None:  # noqa: ANN401 - a field's value, here and below
        raw = body(value)
        length = len(raw)
        append(short[length] if length < 0x80 else head(length))
        append(raw)

    return put


def _put_list(field: Field) -> Put:
    body, head, zero = _body(field.element), head_for(field.tag), _ZEROS.get(field.element, {})

    def put(values: Any, append: Append) -> None:  # noqa: ANN401
        for value in values:
            raw = body(zero if value is None else value)
            append(head(len(raw)))
            append(raw)

    return put


def _put_map(field: Field) -> Put:
    head, head_value, short_value = head_for(field.tag), head_for(_VALUE_TAG), _short_heads(_VALUE_TAG)
    body, zero = _body(field.element), _ZEROS.get(field.element, {})
    nil_bytes = field.element == "bytes"

    def put(entries: Any, append: Append) -> None:  # noqa: ANN401
        for key in sorted(entries):
            value = entries[key]
            entry = _write_key(key)
            if value is not None or not nil_bytes:
                raw = body(zero if value is None else value)
                length = len(raw)
                entry += (short_value[length] if length < 0x80 else head_value(length)) + raw
            append(head(len(entry)))
            append(entry)

    return put


@lru_cache(maxsize=2048)
def _write_key(key: str) -> bytes:
    """Objects of a kind share most of their labels, annotations and keys."""
    raw = key.encode()
    return head_for(_KEY_TAG)(len(raw)) + raw


def _absent(field: Field) -> bytes | None:
    """What is written for a field that the object does not have."""
    if field.shape not in ("", "?") or field.element == "bytes":  # a slice can be nil
        return None
    parts: list[bytes] = []
    _put_single(field)(_ZEROS.get(field.element, {}), parts.append)
    return b"".join(parts)


def _body(element: str) -> Body:
    return _SCALARS.get(element) or encoder_for(element)


def _write_strings(values: list[str]) -> bytes:
    head = head_for(1 << 3 | BYTES)
    return b"".join(head(len(raw)) + raw for raw in map(str.encode, values))


def _write_raw(value: bytes) -> bytes:
    return head_for(1 << 3 | BYTES)(len(value)) + value


def _write_json(value: Any) -> bytes:  # noqa: ANN401
    return b"" if value is None else _write_raw(codec.dumps(value))


def _write_extension(value: Any) -> bytes:  # noqa: ANN401
    """An embedded object: in an envelope of its own, or as JSON if there is no protobuf for it."""
    if isinstance(value, dict) and message_of(value.get("apiVersion", ""), value.get("kind", "")) is not None:
        return _write_raw(encode_envelope(value))
    return _write_json(value)


def _write_quantity(value: Any) -> bytes:  # noqa: ANN401
    return _write_raw(str(value).encode())


@lru_cache(maxsize=4096)
def _write_time(value: str | None) -> bytes:
    return b"" if value is None else _write_timestamp(clock.parse_time(value), nanos=False)


@lru_cache(maxsize=4096)
def _write_micro_time(value: str | None) -> bytes:
    return b"" if value is None else _write_timestamp(clock.parse_micro_time(value), nanos=True)


def _write_timestamp(moment: datetime, *, nanos: bool) -> bytes:
    if moment == _ZERO_TIME:  # Go's zero Time
        return b""
    seconds = (moment - _EPOCH) // _SECOND
    fraction = moment.microsecond * 1000 if nanos else 0
    return b"\x08" + write_varint(seconds) + b"\x10" + write_varint(fraction)


def _write_schema_or_array(value: Any) -> bytes:  # noqa: ANN401
    schema = encoder_for(_SCHEMA)
    if isinstance(value, list):
        return _write_each(2, [schema({} if item is None else item) for item in value])
    return _write_each(1, [schema(value)])


def _write_schema_or_bool(value: Any) -> bytes:  # noqa: ANN401
    if isinstance(value, dict):
        return b"\x08\x01" + _write_each(2, [encoder_for(_SCHEMA)(value)])
    return b"\x08\x01" if value else b"\x08\x00"


def _write_schema_or_strings(value: Any) -> bytes:  # noqa: ANN401
    if isinstance(value, list):
        return _write_each(2, [item.encode() for item in value])
    return _write_each(1, [encoder_for(_SCHEMA)(value)])


def _write_each(number: int, bodies: list[bytes]) -> bytes:
    head = head_for(number << 3 | BYTES)
    return b"".join(head(len(body)) + body for body in bodies)


_SCALARS: Final[dict[str, Body]] = {
    "bool": lambda value: b"\x01" if value else b"\x00",
    "int32": write_varint,
    "int64": write_varint,
    "double": struct.Struct("<d").pack,
    "string": str.encode,
    "bytes": partial(a2b_base64, strict_mode=True),
    "quantity": _write_quantity,
    "strings": _write_strings,
    "time": _write_time,
    "microTime": _write_micro_time,
    "fieldsV1": _write_json,
    "json": _write_json,
    "rawExtension": _write_extension,
}
_SCHEMA: Final = "apiextensions.v1.JSONSchemaProps"
_UNIONS: Final[dict[str, Body]] = {
    f"{_SCHEMA}OrArray": _write_schema_or_array,
    f"{_SCHEMA}OrBool": _write_schema_or_bool,
    f"{_SCHEMA}OrStringArray": _write_schema_or_strings,
}
