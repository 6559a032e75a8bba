"""Bodies of requests: bytes to objects of the kind that an endpoint takes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from kcp.endpoints import negotiation
from kcp.meta import codec, errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind
    from kcp.registry.resource import Decode

T = TypeVar("T")

_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
LARGE_YAML_BYTES = 64 * 1024
_SHOWN_BYTES = 30
_SCHEME = "pkg/api/legacyscheme/scheme.go:30"
_BODY_TYPES = (negotiation.JSON, negotiation.YAML, negotiation.PROTOBUF)


class Parsed:
    """A body as JSON values, with what a strict reader would object to."""

    __slots__ = ("objections", "value", "yaml_objections")

    def __init__(self, value: Any, objections: list[str], *, yaml_objections: bool = False) -> None:  # noqa: ANN401
        self.value = value
        self.objections = objections
        self.yaml_objections = yaml_objections


def unsupported(accepted: tuple[str, ...] = _BODY_TYPES) -> errors.UnsupportedMediaType:
    return errors.UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    )


def parse_body(data: bytes, content_type: str, gvk: GroupVersionKind, *, strict: bool) -> Parsed:
    """The body of a request to write this kind. `strict` also looks for fields that are given twice.

    Raises BadRequest and UnsupportedMediaType.
    """
    kind = gvk.kind
    if content_type in ("", negotiation.JSON):
        try:
            value = codec.loads(data)
        except codec.DecodeError as error:
            raise unrecognized(kind, f"json parse error: {error}", data) from error
        objections: list[str] = []
        if strict and _may_have_duplicates(data, value):
            objections = [f'duplicate field "{path}"' for path in codec.find_duplicate_fields(data)]
        return Parsed(value, objections)
    if content_type == negotiation.YAML:
        return _parse_yaml(data, kind, strict=strict)
    if content_type == negotiation.PROTOBUF:
        from kcp.endpoints import protobuf

        try:
            return Parsed(protobuf.decode(data, gvk), [])
        except ValueError as error:
            raise errors.BadRequest(f"the object provided is unrecognized (must be of type {kind}): {error}") from error
    raise unsupported()


async def read_body(data: bytes, content_type: str, gvk: GroupVersionKind, *, strict: bool) -> Parsed:
    """`parse_body`, without holding up others for long."""
    if content_type != negotiation.YAML:
        return parse_body(data, content_type, gvk, strict=strict)
    return await read_yaml(data, partial(parse_body, content_type=content_type, gvk=gvk, strict=strict))


def _may_have_duplicates(data: bytes, value: Any) -> bool:  # noqa: ANN401
    """A field that was given twice is once in the value: written again, it has fewer quotes. Quotes that are escaped
    may be counted wrong, so what has any is looked at. This takes a tenth of the time of a real look."""
    return b"\\" in data or data.count(b'"') != codec.dumps(value).count(b'"')


def _parse_yaml(data: bytes, kind: str, *, strict: bool) -> Parsed:
    try:
        value = codec.loads_yaml(data)
    except codec.DecodeError as error:
        raise unrecognized(kind, f"yaml parse error: {error}", data) from error
    if strict:
        try:
            codec.loads_yaml(data, strict=True)
        except codec.DecodeError as error:
            return Parsed(value, [str(error)], yaml_objections=True)
    return Parsed(value, [])


def unrecognized(kind: str, why: str, data: bytes) -> errors.BadRequest:
    intro = f"the object provided is unrecognized (must be of type {kind})"
    return errors.BadRequest(f"{intro}: couldn't get version/kind; {why} ({_summary(data)})")


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    rest = " ..." if len(data) > _SHOWN_BYTES else ""
    shown = data[:_SHOWN_BYTES]
    return (shown.decode("utf-8", "replace") if data[:1] == b"{" else shown.hex()) + rest


def check_custom_type(obj: Any, gvk: GroupVersionKind, data: bytes) -> Object:  # noqa: ANN401
    """As `check_type`, for custom resources: a wrong kind is left to validation."""
    if not isinstance(obj, dict):
        raise unrecognized(gvk.kind, not_an_object(obj), data)
    given = obj.get("apiVersion") or ""
    if obj.get("kind") and given != gvk.api_version:
        raise errors.BadRequest(
            f"the API version in the data ({given}) does not match the expected API version ({gvk.api_version})"
        )
    if not obj.get("kind"):
        intro = f"the object provided is unrecognized (must be of type {gvk.kind})"
        text = data.decode("utf-8", "replace")
        raise errors.BadRequest(f"{intro}: Object 'Kind' is missing in '{text}' ({_summary(data)})")
    return obj


def check_type(obj: Any, gvk: GroupVersionKind, data: bytes, known: frozenset[str]) -> Object:  # noqa: ANN401
    """An object of the kind the endpoint takes; what it does not say of its kind is filled in."""
    if not isinstance(obj, dict):
        raise unrecognized(gvk.kind, not_an_object(obj), data)
    for name in ("apiVersion", "kind"):
        if name in obj and not isinstance(obj[name], str) and obj[name] is not None:
            why = f"json: cannot unmarshal {_json_name(obj[name])} into Go struct field .{name} of type string"
            raise unrecognized(gvk.kind, f"json parse error: {why}", data)
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    if api_version in ("", gvk.api_version) and kind in ("", gvk.kind):
        obj["apiVersion"], obj["kind"] = gvk.api_version, gvk.kind
        return obj
    version = api_version or gvk.api_version
    named = kind or gvk.kind
    if f"{version}/{named}" in known:
        why = f"converting ({_go_package(version)}.{named}) to ({_go_internal(gvk)}.{gvk.kind}): unknown conversion"
    else:
        why = not_registered(named, version)
    raise cannot_handle(named, version, gvk.kind, why)


def not_registered(kind: str, version: str) -> str:
    return f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'


def not_an_object(value: Any) -> str:  # noqa: ANN401
    return f"json parse error: {cannot_unmarshal(value, _META)}"


def cannot_handle(kind: str, version: str, wanted: str, why: object) -> errors.BadRequest:
    return errors.BadRequest(f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a {wanted}: {why}')


def _go_package(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _go_internal(gvk: GroupVersionKind) -> str:
    return gvk.group.partition(".")[0] or "core"


def cannot_unmarshal(value: Any, into: str) -> str:  # noqa: ANN401
    return f"json: cannot unmarshal {_json_name(value)} into Go value of type {into}"


def _json_name(value: Any) -> str:  # noqa: ANN401
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def decode(
    parsed: Parsed, obj: Object, gvk: GroupVersionKind, decode_kind: Decode, mode: str
) -> tuple[Object, list[str]]:
    """The object, and warnings for what it should not have had. Raises BadRequest when `mode` is Strict."""
    unknown: list[str] | None = None if mode == "Ignore" else []
    try:
        decoded = decode_kind(obj, unknown)
    except ValueError as error:
        raise cannot_handle(gvk.kind, gvk.api_version, gvk.kind, error) from error
    objections = [*parsed.objections, *(unknown or ())]
    if mode == "Ignore":
        return decoded, []
    if objections and mode == "Strict":
        text = ", ".join(objections)
        raise cannot_handle(gvk.kind, gvk.api_version, gvk.kind, f"strict decoding error: {text}")
    if parsed.yaml_objections:
        return decoded, [*yaml_warnings(parsed.objections[0]), *(unknown or ())]
    return decoded, objections


async def read_yaml(data: bytes, read: Callable[..., T], *more: Any) -> T:  # noqa: ANN401
    """`read(data, *more)`, beside the loop if it takes long: YAML of megabytes takes seconds, JSON milliseconds."""
    if len(data) <= LARGE_YAML_BYTES or data[:1] == b"{":
        return read(data, *more)
    return await asyncio.to_thread(read, data, *more)


def yaml_warnings(objection: str) -> list[str]:
    """What a strict YAML reader objects to, one by one: it tells all in one error, a line each below a heading."""
    return [line.strip() for line in objection.splitlines()[1:]] or [objection]
