"""Kubernetes' protobuf in both directions, for the built-in kinds; custom resources have none.

k8s\\0 Unknown{typeMeta{apiVersion, kind}, raw: the object's own message, contentEncoding, contentType}
"""

from __future__ import annotations

import binascii
import struct
from typing import TYPE_CHECKING, Final

from kcp.endpoints.protobuf_decode import decode_envelope
from kcp.endpoints.protobuf_encode import encode_envelope, encoder_for, envelope, head_for
from kcp.endpoints.protobuf_wire import BYTES, ProtobufError, load_table, message_of
from kcp.meta import codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind

__all__ = ["ProtobufError", "can_encode", "decode", "encode", "encode_list", "encode_watch_frame", "make_watch_frame"]

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
WATCH_CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf;stream=watch"

# What an object that does not have the shape of its kind makes the encoder raise.
_MISFITS: Final = (AttributeError, TypeError, KeyError, ValueError, binascii.Error, struct.error, RecursionError)
_FRAME: Final = struct.Struct(">I")


def can_encode(gvk: GroupVersionKind) -> bool:
    return message_of(gvk.api_version, gvk.kind) is not None


def encode(obj: Object) -> bytes:
    """The enveloped object; its apiVersion and kind must be set. Raises ProtobufError."""
    try:
        return encode_envelope(obj)
    except _MISFITS as error:
        raise _misfit(obj.get("apiVersion"), obj.get("kind"), error) from None


def encode_list(
    kind: str, api_version: str, resource_version: str, cont: str, remaining: int | None, items: Iterable[Object]
) -> bytes:
    """A list such as ConfigMapList; its items need no apiVersion and kind. Raises ProtobufError."""
    message = message_of(api_version, kind)
    if message is None:
        raise _misfit(api_version, kind, "no such message")
    meta_field, items_field = load_table()[1][message]
    metadata = {"resourceVersion": resource_version, "continue": cont, "remainingItemCount": remaining}
    head, encode_item = head_for(items_field.tag), encoder_for(items_field.element)
    raw = encoder_for(meta_field.element)(metadata)
    parts = [head_for(meta_field.tag)(len(raw)), raw]
    try:
        for item in items:
            raw = encode_item(item)
            parts += (head(len(raw)), raw)
    except _MISFITS as error:
        raise _misfit(api_version, kind, error) from None
    return envelope(api_version, kind, b"".join(parts))


def encode_watch_frame(event_type: str, obj: Object) -> bytes:
    """One event of a watch stream. Raises ProtobufError."""
    return make_watch_frame(event_type, encode(obj))


def make_watch_frame(event_type: str, enveloped: bytes) -> bytes:
    """A frame around an object that is encoded already: its length, then a bare WatchEvent without envelope."""
    raw_type = event_type.encode()
    extension = head_for(1 << 3 | BYTES)(len(enveloped)) + enveloped
    event = b"".join((head_for(1 << 3 | BYTES)(len(raw_type)), raw_type, head_for(2 << 3 | BYTES)(len(extension))))
    return _FRAME.pack(len(event) + len(extension)) + event + extension


def decode(data: bytes, default: GroupVersionKind | None = None) -> Object:
    """The object as its JSON would have it. `default` is its kind if the envelope names none. Raises ProtobufError."""
    obj = decode_envelope(data, default=default)
    try:
        codec.dumps(obj)  # embedded JSON may be deep and lie deep: nothing must come in that cannot go out
    except TypeError:
        raise ProtobufError(f"exceeded max depth of {codec.MAX_DEPTH}") from None
    return obj


def _misfit(api_version: object, kind: object, why: object) -> ProtobufError:
    return ProtobufError(f"{api_version}, Kind={kind} cannot be encoded to a protobuf message: {why}")
