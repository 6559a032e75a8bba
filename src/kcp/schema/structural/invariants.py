"""What a schema must be like to be structural (apiextensions-apiserver's schema/validation.go and complete.go).

Everything a value consists of is specified outside of allOf, anyOf, oneOf and not; these only restrict it further.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from kcp.meta import field
from kcp.schema.structural.nodes import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    RULES,
)
from kcp.schema.structural.regexps import PatternError, compile_pattern

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath


class _Level(Enum):
    """Where a schema stands; the value is how a missing type is complained about."""

    ROOT = "must not be empty at the root"
    ITEM = "must not be empty for specified array items"
    FIELD = "must not be empty for specified object fields"


_INT_OR_STRING_CLAUSES: Final = [{"type": "integer"}, {"type": "string"}]
_EMPTY: Final = "must be empty to be structural"
_FALSE: Final = "must be false to be structural"
_UNDEFINED: Final = "must be undefined to be structural"
# What a schema inside of allOf and the like may not have, in the order in which Kubernetes looks.
_NOT_NESTED: Final = (
    ("type", _EMPTY),
    ("additionalProperties", _UNDEFINED),
    ("default", _UNDEFINED),
    ("title", _EMPTY),
    ("description", _EMPTY),
    ("nullable", _FALSE),
    (PRESERVE, _FALSE),
    (EMBEDDED, _FALSE),
    (INT_OR_STRING, _FALSE),
    (LIST_MAP_KEYS, _EMPTY),
    (LIST_TYPE, _UNDEFINED),
    (MAP_TYPE, _UNDEFINED),
    (RULES, _EMPTY),
)
# Set to zero or an empty string these still say something.
_POINTERS: Final = frozenset(
    {"maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems", "multipleOf", "maxProperties"}
    | {"minProperties", "default", "not", "items", LIST_TYPE, MAP_TYPE}
)
# Of the schema of the root's metadata these do not count; nor do the names of an object, which it may restrict.
_IGNORED_IN_METADATA: Final = frozenset({"type", "default", "properties", "example", "externalDocs"})
_RESTRICTABLE: Final = frozenset({"name", "generateName"})


def validate_structural(schema: Object, path: FieldPath) -> list[FieldError]:
    """Why a schema is not structural, in the order of the alphabet."""
    errors = _validate_node(schema, _Level.ROOT, path) + _validate_complete(schema, schema, path, path)
    return sorted(errors, key=str)


def _is_set(schema: Object, name: str) -> bool:
    value = schema.get(name)
    return value is not None if name in _POINTERS else bool(value)


def _validate_node(schema: Object, level: _Level, path: FieldPath) -> list[FieldError]:
    kind = schema.get("type") or ""
    errors: list[FieldError] = []
    if schema.get("items") is not None:
        errors += _validate_node(schema["items"], _Level.ITEM, path.child("items"))
    elif kind == "array":
        errors.append(field.required(path.child("items"), "must be specified"))
    properties: Object = schema.get("properties") or {}
    for name, child in properties.items():
        errors += _validate_node(child, _Level.FIELD, path.child("properties").key(name))
    if schema.get("additionalProperties") is not None:
        errors += _validate_additional(schema, level, path.child("additionalProperties"))
    errors += _validate_extensions(schema, path)
    clauses = schema.get("allOf") or [{}]
    errors += _validate_values(
        schema,
        path,
        skips_any_of=schema.get("anyOf") == _INT_OR_STRING_CLAUSES,
        skips_first=clauses[0].get("anyOf") == _INT_OR_STRING_CLAUSES,
    )
    errors += _validate_type(schema, kind, level, path)
    errors += _validate_meta_fields(schema, level, path)
    return errors


def _validate_additional(schema: Object, level: _Level, path: FieldPath) -> list[FieldError]:
    errors = []
    if level is _Level.ROOT:
        errors.append(field.forbidden(path, "must not be used at the root"))
    if isinstance(schema["additionalProperties"], dict):
        errors += _validate_node(schema["additionalProperties"], _Level.FIELD, path)
    if schema.get(EMBEDDED):
        errors.append(field.forbidden(path, f"must not be used if {EMBEDDED} is set"))
    return errors


def _validate_extensions(schema: Object, path: FieldPath) -> list[FieldError]:
    if not schema.get(INT_OR_STRING):
        return []
    why = f"must be false if {INT_OR_STRING} is true"
    return [field.invalid(path.child(name), True, why) for name in (PRESERVE, EMBEDDED) if schema.get(name)]


def _validate_type(schema: Object, kind: str, level: _Level, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    where = path.child("type")
    if schema.get(EMBEDDED) and kind != "object":
        why = f"must be object if {EMBEDDED} is true"
        errors.append(field.invalid(where, kind, why) if kind else field.required(where, why))
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        errors.append(field.required(where, level.value))
    if level is _Level.ROOT and kind and kind != "object":
        errors.append(field.invalid(where, kind, "must be object at the root"))
    return errors


def _validate_meta_fields(schema: Object, level: _Level, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    properties: Object = schema.get("properties") or {}
    is_resource = level is _Level.ROOT or bool(schema.get(EMBEDDED))
    where = path.child("properties")
    for name, expected in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        kind = (properties.get(name) or {}).get("type") or ""
        if is_resource and name in properties and kind != expected:
            errors.append(field.invalid(where.key(name).child("type"), kind, f"must be {expected}"))
    if level is _Level.ROOT and "metadata" in properties and not _restricts_names_only(properties["metadata"]):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(field.forbidden(where.key("metadata"), why))
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not properties:
        why = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        errors.append(field.required(where, why))
    return errors


def _restricts_names_only(metadata: Object) -> bool:
    others = [name for name in metadata if name not in _IGNORED_IN_METADATA and _is_set(metadata, name)]
    if others or metadata.get("additionalProperties") is not None:
        return False
    return set(metadata.get("properties") or ()) <= _RESTRICTABLE


def _validate_values(
    schema: Object, path: FieldPath, *, skips_any_of: bool = False, skips_first: bool = False
) -> list[FieldError]:
    """The value validations of a schema. An int-or-string may say so once more by types inside of anyOf."""
    errors: list[FieldError] = []
    for junctor in ("anyOf", "allOf", "oneOf"):
        for index, clause in enumerate(schema.get(junctor) or ()):
            if junctor == "anyOf" and skips_any_of:
                continue
            skips = junctor == "allOf" and skips_first and index == 0
            errors += _validate_nested(clause, path.child(junctor).index(index), skips_any_of=skips)
    if schema.get("not") is not None:
        errors += _validate_nested(schema["not"], path.child("not"))
    if pattern := schema.get("pattern"):
        try:
            compile_pattern(pattern)
        except PatternError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            errors.append(field.invalid(path.child("pattern"), pattern, why))
    return errors


def _validate_nested(schema: Object, path: FieldPath, *, skips_any_of: bool = False) -> list[FieldError]:
    errors = _validate_values(schema, path, skips_any_of=skips_any_of)
    if schema.get("items") is not None:
        errors += _validate_nested(schema["items"], path.child("items"))
    properties: Object = schema.get("properties") or {}
    for name, child in properties.items():
        errors += _validate_nested(child, path.child("properties").key(name))
    errors += [field.forbidden(path.child(name), why) for name, why in _NOT_NESTED if _is_set(schema, name)]
    # Even an empty one specifies something; only `false` does not.
    if schema.get("additionalProperties") == {}:
        errors.append(field.forbidden(path.child("additionalProperties"), _UNDEFINED))
    if "metadata" in properties:
        why = "must not be specified in a nested context"
        errors.append(field.forbidden(path.child("properties").key("metadata"), why))
    return errors


def _validate_complete(values: Object, schema: Any, path: FieldPath, values_path: FieldPath) -> list[FieldError]:  # noqa: ANN401
    """Every field and item that a value validation mentions has to be specified outside of it as well."""
    errors: list[FieldError] = []
    if values.get("not") is not None:
        errors += _validate_clause_complete(values["not"], schema, path, values_path.child("not"))
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, clause in enumerate(values.get(junctor) or ()):
            errors += _validate_clause_complete(clause, schema, path, values_path.child(junctor).index(index))
    return errors


def _validate_clause_complete(
    clause: Object,
    schema: Any,  # noqa: ANN401 - a schema or nothing
    path: FieldPath,
    clause_path: FieldPath,
) -> list[FieldError]:
    if schema is None:
        return [field.required(path, f"because it is defined in {clause_path}")]
    errors = _validate_complete(clause, schema, path, clause_path)
    if clause.get("items") is not None:
        where = clause_path.child("items")
        errors += _validate_clause_complete(clause["items"], schema.get("items"), path.child("items"), where)
    properties: Object = clause.get("properties") or {}
    for name, child in properties.items():
        where = clause_path.child("properties").key(name)
        specified = (schema.get("properties") or {}).get(name)
        errors += _validate_clause_complete(child, specified, path.child("properties").key(name), where)
    return errors
