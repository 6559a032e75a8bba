"""Protobuf messages to objects, with the fields that their JSON would have; trusts nothing it reads.

Each message becomes a table from tag to a closure when it is first needed. Fields may come in any order, scalars may
be repeated (the last one wins) and messages too (they merge), as the generated Go code has it.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from kcp.endpoints.protobuf_wire import (
    BYTES,
    FIXED64,
    MAX_DEPTH,
    PREFIX,
    VARINT,
    Field,
    ProtobufError,
    load_table,
    message_of,
    read_span,
    read_varint,
    refuse_tag,
    skip,
    wire_type_of,
)
from kcp.meta import clock, codec, gotext

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind

# (data, start, end, depth, what an earlier field of the same name gave) -> the value
Parse = Callable[[bytes, int, int, int, Any], Any]
# (data, place behind the tag, end of the message, its depth, the object so far) -> the place behind the field
Read = Callable[[bytes, int, int, int, "Object"], int]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Which wire type a field number has, in the small messages that are read by hand.
_ONE_TEXT: Final = {1: BYTES}
_TWO_TEXTS: Final = {1: BYTES, 2: BYTES}
_TWO_NUMBERS: Final = {1: VARINT, 2: VARINT}
_DOUBLE: Final = struct.Struct("<d")
_SCHEME: Final = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"


@cache
def decoder_for(message: str) -> Parse:
    """What turns the bytes of the message into an object."""
    reads: dict[int, Read] | None = None
    names: dict[int, str] = {}
    short_name = message.rpartition(".")[2]

    def make_reads() -> dict[int, Read]:
        fields = load_table()[1][message]
        names.update((field.number, field.name) for field in fields)
        return {field.tag: _read(field) for field in fields}

    def decode(data: bytes, at: int, end: int, depth: int, into: Any) -> Object:  # noqa: ANN401
        nonlocal reads
        if reads is None:
            reads = make_reads()
        if depth > MAX_DEPTH:
            raise ProtobufError(f"exceeded max depth of {MAX_DEPTH}")
        obj: Object = {} if into is None else into
        while at < end:
            tag = data[at]
            at += 1
            if tag >= 0x80:
                tag, at = read_varint(data, at - 1, end)
            read = reads.get(tag)
            if read is None:
                refuse_tag(short_name, tag, names)
                at = skip(data, at, end, tag & 7)
            else:
                at = read(data, at, end, depth, obj)
        return obj

    return decode


def decode_envelope(data: bytes, *, default: GroupVersionKind | None = None, depth: int = 0) -> Object:
    """The object in `k8s\\0` and a runtime.Unknown; `default` names its kind if it does not itself.

    Raises ProtobufError.
    """
    if not data:
        raise ProtobufError("empty data")
    if not data.startswith(PREFIX):
        shown = " ".join(map(str, PREFIX))
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{shown}]")
    if len(data) == len(PREFIX):
        raise ProtobufError("empty body")
    unknown = _read_fields("Unknown", data, len(PREFIX), len(data), _TWO_TEXTS)
    api_version, kind = _parse_type_meta(unknown[1][-1] if unknown[1] else b"", default)
    message = message_of(api_version, kind)
    if message is None:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"')
    raw = unknown[2][-1] if unknown[2] else b""
    try:
        obj: Object = decoder_for(message)(raw, 0, len(raw), depth, None)
    except IndexError:
        raise ProtobufError("unexpected EOF") from None
    return {"kind": kind, "apiVersion": api_version, **obj}


@lru_cache(maxsize=1024)
def _parse_type_meta(raw: bytes, default: GroupVersionKind | None) -> tuple[str, str]:
    fields = _read_fields("TypeMeta", raw, 0, len(raw), _TWO_TEXTS)
    api_version, kind = (str(fields[n][-1], "utf-8", "replace") if fields[n] else "" for n in (1, 2))
    shown = f"runtime.TypeMeta{{APIVersion:{gotext.quote(api_version)}, Kind:{gotext.quote(kind)}}}"
    if default is not None:
        api_version, kind = api_version or default.api_version, kind or default.kind
    if not kind:
        raise ProtobufError(f"Object 'Kind' is missing in '{shown}'")
    if not api_version:
        raise ProtobufError(f"Object 'apiVersion' is missing in '{shown}'")
    return api_version, kind


def _read(field: Field) -> Read:
    if field.shape == "[]":
        return _read_list(field)
    if field.shape == "map[string]":
        return _read_map(field)
    if not field.name:
        return _read_inlined(field)
    if field.element == "string":
        return _read_string(field)
    wire_type = wire_type_of(field.element)
    if wire_type == BYTES:
        return _read_bytes(field)
    return _read_double(field) if wire_type == FIXED64 else _read_varint(field)


def _read_varint(field: Field) -> Read:
    name, omit_zero = field.name, field.shape == "?"
    convert = _VARINTS[field.element]

    def read(data: bytes, at: int, end: int, depth: int, obj: Object) -> int:
        number, at = read_varint(data, at, end)
        value = convert(number)
        if value or not omit_zero:
            obj[name] = value
        else:
            obj.pop(name, None)
        return at

    return read


def _read_double(field: Field) -> Read:
    def read(data: bytes, at: int, end: int, depth: int, obj: Object) -> int:
        if at + 8 > end:
            raise ProtobufError("unexpected EOF")
        (obj[field.name],) = _DOUBLE.unpack_from(data, at)
        return at + 8

    return read


def _read_bytes(field: Field) -> Read:
    name, omit_zero, parse = field.name, field.shape == "?", _parse(field.element)

    def read(data: bytes, at: int, end: int, depth: int, obj: Object) -> int:
        start, stop = read_span(data, at, end)
        value = parse(data, start, stop, depth + 1, obj.get(name))
        if value is None or (omit_zero and not value):
            obj.pop(name, None)
        else:
            obj[name] = value
        return stop

    return read


def _read_string(field: Field) -> Read:
    name, omit_zero = field.name, field.shape == "?"

    def read(data: bytes, at: int, end: int, depth: int, obj: Object) -> int:
        # As read_span does, but strings are most of what there is and a call less makes a third.
        stop = at + 1 + data[at]
        if data[at] >= 0x80:
            at, stop = read_span(data, at, end)
        else:
            at += 1
        if stop > end:
            raise ProtobufError("unexpected EOF")
        if at < stop or not omit_zero:
            obj[name] = str(data[at:stop], "utf-8", "replace")
        else:
            obj.pop(name, None)
        return stop

    return read


def _read_inlined(field: Field) -> Read:
    parse = _parse(field.element)

    def read(data: bytes, at: int, end: int, depth: int, obj: Object) -> int:
        start, stop = read_span(data, at, end)
        parse(data, start, stop, depth + 1, obj)
        return stop

    return read


def _read_list(field: Field) -> Read:
    name, parse = field.name, _parse(field.element)

    def read(data: bytes, at: int, end: int, depth: int, obj: Object) -> int:
        start, stop = read_span(data, at, end)
        value = parse(data, start, stop, depth + 1, None)
        values = obj.get(name)
        if values is None:
            obj[name] = [value]
        else:
            values.append(value)
        return stop

    return read


def _read_map(field: Field) -> Read:
    name, parse = field.name, _parse(field.element)
    key_tag, value_tag = 1 << 3 | BYTES, 2 << 3 | BYTES

    def read(data: bytes, at: int, end: int, depth: int, obj: Object) -> int:
        at, stop = read_span(data, at, end)
        key, value_start, value_stop = "", stop, stop
        while at < stop:
            tag = data[at]
            at += 1
            if tag == key_tag:
                start, at = read_span(data, at, stop)
                key = str(data[start:at], "utf-8", "replace")
            elif tag == value_tag:
                value_start, value_stop = read_span(data, at, stop)
                at = value_stop
            else:
                tag, at = read_varint(data, at - 1, stop)
                refuse_tag("Entry", tag, {1: "key", 2: "value"})
                at = skip(data, at, stop, tag & 7)
        entries = obj.get(name)
        if entries is None:
            entries = obj[name] = {}
        entries[key] = parse(data, value_start, value_stop, depth + 1, None)
        return stop

    return read


def _parse(element: str) -> Parse:
    return _SPECIAL.get(element) or decoder_for(element)


def _parse_string(data: bytes, start: int, end: int, depth: int, into: Any) -> str:  # noqa: ANN401
    # Go keeps what is not UTF-8 and puts U+FFFD in its place in JSON.
    return str(data[start:end], "utf-8", "replace")


def _parse_bytes(data: bytes, start: int, end: int, depth: int, into: Any) -> str:  # noqa: ANN401
    return b64encode(data[start:end]).decode()


def _read_fields(message: str, data: bytes, at: int, end: int, wire_types: dict[int, int]) -> dict[int, list[Any]]:
    """The numbers and byte strings of a small message, by field number."""
    found: dict[int, list[Any]] = {number: [] for number in wire_types}
    while at < end:
        tag, at = read_varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if wire_types.get(number) != wire_type:
            refuse_tag(message, tag, dict.fromkeys(wire_types, "value"))
            at = skip(data, at, end, wire_type)
        elif wire_type == BYTES:
            start, at = read_span(data, at, end)
            found[number].append(data[start:at])
        else:
            value, at = read_varint(data, at, end)
            found[number].append(value)
    return found


def _parse_quantity(data: bytes, start: int, end: int, depth: int, into: Any) -> str:  # noqa: ANN401
    texts = _read_fields("Quantity", data, start, end, _ONE_TEXT)[1]
    return str(texts[-1], "utf-8", "replace") if texts else "0"


def _parse_strings(data: bytes, start: int, end: int, depth: int, into: Any) -> list[str]:  # noqa: ANN401
    texts = _read_fields("ExtraValue", data, start, end, _ONE_TEXT)[1]
    return [*(into or ()), *(str(text, "utf-8", "replace") for text in texts)]


def _parse_json(data: bytes, start: int, end: int, depth: int, into: Any) -> Any:  # noqa: ANN401
    texts = _read_fields("JSON", data, start, end, _ONE_TEXT)[1]
    if not texts or not texts[-1]:
        return None
    try:
        return codec.loads(texts[-1])
    except codec.DecodeError as error:
        raise ProtobufError(str(error)) from None


def _parse_time(data: bytes, start: int, end: int, depth: int, into: Any) -> str | None:  # noqa: ANN401
    return _format_time(data[start:end])


@lru_cache(maxsize=1024)
def _format_time(raw: bytes) -> str | None:
    """Times repeat: those of an object's managers are often that of its creation."""
    moment = _parse_timestamp(raw, 0, len(raw))
    return None if moment is None else clock.format_time(moment)


def _parse_micro_time(data: bytes, start: int, end: int, depth: int, into: Any) -> str | None:  # noqa: ANN401
    moment = _parse_timestamp(data, start, end)
    return None if moment is None else clock.format_micro_time(moment)


def _parse_timestamp(data: bytes, start: int, end: int) -> datetime | None:
    if start == end:  # Go's zero Time
        return None
    numbers = _read_fields("Timestamp", data, start, end, _TWO_NUMBERS)
    seconds = _as_int64(numbers[1][-1]) if numbers[1] else 0
    nanos = _as_int32(numbers[2][-1]) if numbers[2] else 0
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=int(nanos / 1000))
    except OverflowError:
        raise ProtobufError(f"timestamp of {seconds} seconds is outside of the years 1 to 9999") from None


def _as_int64(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _as_int32(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def _parse_schema_or_array(data: bytes, start: int, end: int, depth: int, into: Any) -> Any:  # noqa: ANN401
    found = _read_fields("JSONSchemaPropsOrArray", data, start, end, _TWO_TEXTS)
    if found[2]:
        return [_parse_schema(raw, depth) for raw in found[2]]
    return _parse_schema(found[1][-1], depth) if found[1] else None


def _parse_schema_or_bool(data: bytes, start: int, end: int, depth: int, into: Any) -> Any:  # noqa: ANN401
    found = _read_fields("JSONSchemaPropsOrBool", data, start, end, {1: VARINT, 2: BYTES})
    if found[2]:
        return _parse_schema(found[2][-1], depth)
    return bool(found[1] and found[1][-1])


def _parse_schema_or_strings(data: bytes, start: int, end: int, depth: int, into: Any) -> Any:  # noqa: ANN401
    found = _read_fields("JSONSchemaPropsOrStringArray", data, start, end, _TWO_TEXTS)
    if found[2]:
        return [str(raw, "utf-8", "replace") for raw in found[2]]
    return _parse_schema(found[1][-1], depth) if found[1] else None


def _parse_schema(raw: bytes, depth: int) -> Object:
    schema: Object = decoder_for(_SCHEMA)(raw, 0, len(raw), depth + 1, None)
    return schema


def _parse_extension(data: bytes, start: int, end: int, depth: int, into: Any) -> Any:  # noqa: ANN401
    raws = _read_fields("RawExtension", data, start, end, _ONE_TEXT)[1]
    if raws and raws[-1].startswith(PREFIX):
        return decode_envelope(raws[-1], depth=depth + 1)
    return _parse_json(data, start, end, depth, into)


_VARINTS: Final[dict[str, Callable[[int], int]]] = {"bool": bool, "int32": _as_int32, "int64": _as_int64}
_SCHEMA: Final = "apiextensions.v1.JSONSchemaProps"
_SPECIAL: Final[dict[str, Parse]] = {
    "string": _parse_string,
    "bytes": _parse_bytes,
    "quantity": _parse_quantity,
    "strings": _parse_strings,
    "time": _parse_time,
    "microTime": _parse_micro_time,
    "fieldsV1": _parse_json,
    "json": _parse_json,
    "rawExtension": _parse_extension,
    f"{_SCHEMA}OrArray": _parse_schema_or_array,
    f"{_SCHEMA}OrBool": _parse_schema_or_bool,
    f"{_SCHEMA}OrStringArray": _parse_schema_or_strings,
}
