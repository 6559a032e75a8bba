"""The annotation of client-side `kubectl apply`, for objects that move on to server-side apply.

What the annotation says that kubectl applied, and what is still so, kubectl may overwrite without force; and as long as
the annotation is there, a server-side apply by kubectl keeps it up to date. Must not touch it for other managers.
"""

from typing import Any, Final

from kcp.meta.codec import DecodeError, Object, loads
from kcp.meta.gotext import marshal_json
from kcp.patch.comparison import SchemaError, compare, owned_fields
from kcp.patch.field_set import Node, difference
from kcp.patch.managers import ManagerKey
from kcp.patch.merge_schema import MergeSchema
from kcp.patch.typed_value import find_type_errors

MANAGER: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS_BYTES: Final = 256 * 1024


def without_allowed(
    conflicts: dict[ManagerKey, Node], live: Object, api_version: str, schema: MergeSchema
) -> dict[ManagerKey, Node]:
    """The conflicts that remain when what kubectl applied before server-side apply is taken out."""
    allowed = _allowed(live, api_version, schema)
    if not allowed:
        return conflicts
    remaining = {key: difference(fields, allowed) for key, fields in conflicts.items()}
    return {key: fields for key, fields in remaining.items() if fields}


def renew(applied: Object, config: Object) -> None:
    """Bring the annotation of an applied object up to date, if it has it."""
    annotations = _annotations(applied)
    if not annotations.get(ANNOTATION):
        return
    config = {**config}
    if isinstance(config.get("metadata"), dict) and "annotations" in config["metadata"]:
        others = {name: value for name, value in _annotations(config).items() if name != ANNOTATION}
        config["metadata"] = {**config["metadata"], "annotations": others}
    annotations[ANNOTATION] = marshal_json(config) + "\n"
    if (
        sum(len(name.encode()) + len(str(value).encode()) for name, value in annotations.items())
        > _MAX_ANNOTATIONS_BYTES
    ):
        del annotations[ANNOTATION]


def _allowed(live: Object, api_version: str, schema: MergeSchema) -> Node:
    """The fields that kubectl applied and nobody changed since; none if the annotation does not help."""
    try:
        last: Any = loads(_annotations(live).get(ANNOTATION) or "")
    except (DecodeError, TypeError):
        return {}
    if not isinstance(last, dict) or not last.get("kind") or last.get("apiVersion") != api_version:
        return {}
    if find_type_errors(schema, live, allow_duplicates=False) or find_type_errors(schema, last, allow_duplicates=False):
        return {}
    try:
        fields = owned_fields(schema, last)
        for changed in compare(schema, last, live):
            fields = difference(fields, changed)
    except SchemaError:
        return {}
    return fields


def _annotations(obj: Object) -> Object:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
