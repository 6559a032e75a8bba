"""Printer columns, selectable fields and subresources of a definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta import field
from kcp.meta.field import FieldPath
from kcp.meta.gotext import marshal_json
from kcp.registry.gostruct import GoStruct
from kcp.schema.structural.fieldpaths import FieldPathError, find_field
from kcp.schema.structural.nodes import StructuralError, make_node

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.schema.structural.nodes import Node

MAX_SELECTABLE_FIELDS: Final = 8
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")


def validate_columns(columns: list[Object], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, column in enumerate(columns):
        where = path.index(index)
        kind, form, json_path = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
        if not column.get("name"):
            errors.append(field.required(where.child("name")))
        if kind not in _COLUMN_TYPES:
            why = f"must be one of {','.join(_COLUMN_TYPES)}"
            at = where.child("type")
            errors.append(field.invalid(at, kind, why) if kind else field.required(at, why))
        if form and form not in _COLUMN_FORMATS:
            errors.append(field.invalid(where.child("format"), form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
        if json_path:
            errors += _validate_json_path(json_path, where.child("JSONPath"))
        else:
            errors.append(field.required(where.child("JSONPath")))
    return errors


def validate_selectable_fields(
    fields: list[Object], schema: Object, path: FieldPath, *, allows_many: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    root: Node | None = None
    try:
        root = make_node(schema)
    except StructuralError as error:
        errors.append(
            field.invalid(FieldPath(f"{path.text.rpartition('.')[0]}.schema.openAPIV3Schema"), "", str(error))
        )
    seen: set[str] = set()
    for index, each in enumerate(fields):
        where = path.index(index).child("jsonPath")
        json_path = each.get("jsonPath") or ""
        if not json_path:
            errors.append(field.required(where))
            continue
        try:
            found = find_field(json_path, root, allow_brackets=False)
        except FieldPathError as error:
            errors.append(field.invalid(where, json_path, f"is an invalid path: {error}"))
            continue
        if found.path.text.partition(".")[0].partition("[")[0] == "metadata":
            errors.append(field.invalid(where, json_path, "must not point to fields in metadata"))
        if found.node is None or found.node.type not in _SELECTABLE_TYPES:
            why = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(field.invalid(where, json_path, why))
        if found.path.text in seen:
            errors.append(field.duplicate(where, json_path))
        seen.add(found.path.text)
    if len(seen) > MAX_SELECTABLE_FIELDS and not allows_many:
        errors.append(field.too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
    return errors


def validate_subresources(subresources: Object | None, path: FieldPath) -> list[FieldError]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    errors: list[FieldError] = []
    for name, below in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        errors += _validate_replicas_path(scale.get(name), path.child(f"scale.{name}"), below)
    selector = scale.get("labelSelectorPath")
    if selector:
        where = path.child("scale.labelSelectorPath")
        problems = _validate_json_path(selector, where)
        if not problems and not selector.startswith((".spec.", ".status.")):
            shown = GoStruct(marshal_json(selector))
            problems = [field.invalid(where, shown, "should be a json path under either .spec or .status")]
        errors += problems
    return errors


def _validate_replicas_path(json_path: str | None, path: FieldPath, below: str) -> list[FieldError]:
    if not json_path:
        return [field.required(path)]
    errors = _validate_json_path(json_path, path)
    if not errors and not json_path.startswith(f"{below}."):
        errors = [field.invalid(path, json_path, f"should be a json path under {below}")]
    return errors


def _validate_json_path(json_path: str, path: FieldPath) -> list[FieldError]:
    if json_path.startswith("."):
        return []
    return [field.invalid(path, json_path, "must be a simple json path starting with .")]
