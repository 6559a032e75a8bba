"""How the metadata of resources embedded in custom resources is read and judged: as that of any object."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from kcp.apis.types import type_table
from kcp.meta.validation import check_path_segment_name
from kcp.registry.metadata import check_path_segment_prefix, validate_object_meta
from kcp.schema.structural.objectmeta import MetadataRules
from kcp.schema.typed import Typed, UnmarshalError

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_GO_TYPES: Final = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}


@functools.cache
def object_meta() -> Typed:
    return Typed(type_table(), _OBJECT_META)


def decode_object_meta(metadata: Any, unknown: list[str] | None) -> Object:  # noqa: ANN401 - any JSON value
    """Read metadata on its own. A missing creation time stays missing, as in every custom resource."""
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        found = _GO_TYPES[metadata.__class__]
        raise UnmarshalError(f"json: cannot unmarshal {found} into Go value of type v1.ObjectMeta")
    decoded = object_meta().decode(metadata, unknown)
    if decoded.get("creationTimestamp", "") is None:
        del decoded["creationTimestamp"]
    return decoded


def _validate(metadata: Object, path: FieldPath) -> list[FieldError]:
    return validate_object_meta(
        metadata,
        namespaced=bool(metadata.get("namespace")),
        check_name=check_path_segment_name,
        check_generate_name=check_path_segment_prefix,
        path=path,
    )


EMBEDDED_METADATA: Final = MetadataRules(decode_object_meta, _validate)
