"""Checking the openAPIV3Schema of a definition (apiextensions/validation/validation.go)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from kcp.meta import field
from kcp.meta.gotext import marshal_json
from kcp.registry.gostruct import GoStruct
from kcp.registry.strategies.crd_internal import GO_NAMES, show_items, show_schema
from kcp.schema.structural.default_values import validate_defaults
from kcp.schema.structural.fieldpaths import FieldPathError, find_field
from kcp.schema.structural.invariants import validate_structural
from kcp.schema.structural.nodes import (
    EMBEDDED,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    META_FIELDS,
    PRESERVE,
    RULES,
    StructuralError,
    make_node,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath
    from kcp.schema.structural.objectmeta import MetadataRules

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_BREAK: Final = re.compile(r"[\n\r]")
# Fields that do not get lost when the schema of the status is taken out of the whole.
_AT_ROOT: Final = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations]"
)
_ALLOWED_AT_ROOT: Final = frozenset(_AT_ROOT[1:-1].split())
_WITH_STATUS: Final = "at the root of the schema if the status subresource is enabled"
# Of these Go can tell a zero from nothing.
_POINTERS: Final = frozenset(
    {"$ref", "default", "maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems", "multipleOf"}
    | {"maxProperties", "minProperties", "additionalProperties", "additionalItems", PRESERVE, LIST_TYPE, MAP_TYPE}
)
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


class RuleCompiler(Protocol):
    """Compiles the CEL rules of a whole schema and says what is wrong with them, costs included."""

    def __call__(self, schema: Object, path: FieldPath, unchanged: bool) -> list[FieldError]: ...


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """What to insist on. An update does not insist on what the old definition got away with."""

    valid_types: bool = True
    structural: bool = True
    pruned_defaults: bool = True
    atomic_sets: bool = True
    map_keys: bool = True
    unchanged_versions: frozenset[str] = frozenset()
    compile_rules: RuleCompiler | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """What the schemas around one say about it."""

    forbids_defaults: str | None = None  # why
    inside_meta: bool = False


def validate_schema(
    schema: Object, path: FieldPath, rules: MetadataRules, options: SchemaOptions, *, has_status: bool, version: str
) -> list[FieldError]:
    """Everything wrong with the schema of one version, at `....openAPIV3Schema`."""
    errors = _validate_status_root(schema, path) if has_status else []
    if schema.get("nullable"):
        errors.append(field.forbidden(path.child("nullable"), "nullable cannot be true at the root"))
    unbuildable: list[FieldError] = []
    checks_rules = False
    if options.structural:
        try:
            root = make_node(schema)
        except StructuralError as error:
            unbuildable = [field.invalid(path, "", str(error))]
        else:
            problems = validate_structural(schema, path)
            if not problems:
                root.embedded = True
                problems = validate_defaults(root, path, rules, require_pruned=options.pruned_defaults)
            errors += problems
            checks_rules = not problems
    errors += _validate_props(schema, path, _Place(), options, is_root=True)
    if checks_rules and options.compile_rules is not None and not errors:
        errors += options.compile_rules(schema, path, version in options.unchanged_versions)
    return errors or unbuildable


def _validate_status_root(schema: Object, path: FieldPath) -> list[FieldError]:
    kind = schema.get("type") or ""
    for name, go_name in GO_NAMES.items():
        value = schema.get(name)
        if value is None or (name not in _POINTERS and value in ("", False)):
            continue
        if go_name == "Type":
            if kind != "object":
                why = f'only "object" is allowed as the type {_WITH_STATUS}'
                return [field.invalid(path.child("type"), kind, why)]
        elif go_name not in _ALLOWED_AT_ROOT:
            return [field.invalid(path, show_schema(schema), f"only {_AT_ROOT} fields are allowed {_WITH_STATUS}")]
    return []


def _validate_props(
    schema: Object, path: FieldPath, place: _Place, options: SchemaOptions, *, is_root: bool = False
) -> list[FieldError]:
    errors = _validate_standard(schema, path, place, options)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(field.forbidden(path.child("uniqueItems"), why))
    errors += _validate_additional(schema, path.child("additionalProperties"), place, options)
    properties: Object = schema.get("properties") or {}
    for name, child in properties.items():
        inner = place
        if (is_root or schema.get(EMBEDDED)) and name in META_FIELDS:
            inner = replace(place, inside_meta=True)
            if is_root:
                inner = replace(inner, forbids_defaults=f"in top-level {name}")
        errors += _validate_props(child, path.child("properties").key(name), inner, options)
    for child, where in _other_children(schema, path):
        errors += _validate_props(child, where, place, options)
    errors += _validate_extensions(schema, path, options)
    errors += _validate_rules(schema, path)
    return errors


def _validate_standard(schema: Object, path: FieldPath, place: _Place, options: SchemaOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schema.get("type") or ""
    if options.valid_types and kind and kind not in _TYPES:
        errors.append(field.not_supported(path.child("type"), kind, _TYPES))
    if schema.get("default") is not None and place.forbids_defaults is not None:
        errors.append(field.forbidden(path.child("default"), f"must not be set {place.forbids_defaults}"))
    for name in _UNSUPPORTED:
        value = schema.get(name)
        # Of these, Go can tell an empty pointer from none.
        if value or (name in ("$ref", "additionalItems", "dependencies") and value is not None):
            errors.append(field.forbidden(path.child(name), f"{name} is not supported"))
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        errors.append(field.forbidden(path.child("type"), why))
    if isinstance(schema.get("items"), list) and schema["items"]:
        errors.append(field.forbidden(path.child("items"), "items must be a schema object and not an array"))
    if place.inside_meta and schema.get(EMBEDDED):
        errors.append(field.forbidden(path.child(EMBEDDED), "must not be used inside of resource meta"))
    return errors


def _validate_additional(schema: Object, path: FieldPath, place: _Place, options: SchemaOptions) -> list[FieldError]:
    additional = schema.get("additionalProperties")
    if additional is None:
        return []
    errors: list[FieldError] = []
    if schema.get("properties") and additional is not True:
        errors.append(field.forbidden(path, "additionalProperties and properties are mutual exclusive"))
    if isinstance(additional, dict):
        if place.inside_meta:
            place = replace(place, forbids_defaults="inside additionalProperties applying to object metadata")
        errors += _validate_props(additional, path, place, options)
    return errors


def _other_children(schema: Object, path: FieldPath) -> Iterator[tuple[Object, FieldPath]]:
    if schema.get("not") is not None:
        yield schema["not"], path.child("not")
    for junctor in ("allOf", "oneOf", "anyOf"):
        for index, clause in enumerate(schema.get(junctor) or ()):
            yield clause, path.child(junctor).index(index)
    for name, child in (schema.get("definitions") or {}).items():
        yield child, path.child("definitions").key(name)
    items = schema.get("items")
    if isinstance(items, list):
        for index, child in enumerate(items):
            yield child, path.child("items").index(index)
    elif items is not None:
        yield items, path.child("items")
    for name, child in (schema.get("dependencies") or {}).items():
        if isinstance(child, dict):
            yield child, path.child("dependencies").key(name)


def _validate_extensions(schema: Object, path: FieldPath, options: SchemaOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    list_type, map_type, keys = schema.get(LIST_TYPE), schema.get(MAP_TYPE), schema.get(LIST_MAP_KEYS) or []
    if schema.get(PRESERVE) is False:
        errors.append(field.invalid(path.child(PRESERVE), False, "must be true or undefined"))
    if map_type is not None:
        errors += _require_type(schema, "object", MAP_TYPE, path)
        if map_type not in ("atomic", "granular"):
            errors.append(field.not_supported(path.child(MAP_TYPE), map_type, ["atomic", "granular"]))
    if list_type is not None:
        wrong_type = _require_type(schema, "array", LIST_TYPE, path)
        errors += wrong_type
        if not wrong_type and options.atomic_sets and list_type == "set":
            errors += _validate_set(schema, path.child("items"))
        if list_type not in ("atomic", "set", "map"):
            errors.append(field.not_supported(path.child(LIST_TYPE), list_type, ["atomic", "set", "map"]))
    if keys and list_type != "map":
        why = f"must be map if {LIST_MAP_KEYS} is non-empty"
        where = path.child(LIST_TYPE)
        errors.append(field.required(where, why) if list_type is None else field.invalid(where, list_type, why))
    if list_type == "map":
        errors += _validate_map_list(schema, keys, path)
    if options.map_keys:
        errors += validate_map_keys(schema, path)
    return errors


def _require_type(schema: Object, kind: str, extension: str, path: FieldPath) -> list[FieldError]:
    given = schema.get("type") or ""
    if given == kind:
        return []
    why = f"must be {kind} if {extension} is specified"
    return [field.invalid(path.child("type"), given, why) if given else field.required(path.child("type"), why)]


def is_set_of_compounds(schema: Object) -> bool:
    """A set whose items can be changed in part, so that it is unclear which item is which."""
    items = schema.get("items")
    if schema.get(LIST_TYPE) != "set" or not isinstance(items, dict):
        return False
    if items.get("type") == "array":
        return items.get(LIST_TYPE) not in (None, "atomic")
    return items.get("type") == "object" and items.get(MAP_TYPE) != "atomic"


def _validate_set(schema: Object, path: FieldPath) -> list[FieldError]:
    if not is_set_of_compounds(schema):
        return []
    items = schema["items"]
    why = f"must be atomic as item of a list with {LIST_TYPE}=set"
    extension = LIST_TYPE if items["type"] == "array" else MAP_TYPE
    # Go prints the list type in both cases.
    return [field.invalid(path.child(extension), GoStruct(marshal_json(items.get(LIST_TYPE))), why)]


def _validate_map_list(schema: Object, keys: list[str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    items = schema.get("items")
    where = path.child("items")
    if not keys:
        errors.append(field.required(path.child(LIST_MAP_KEYS), f"must not be empty if {LIST_TYPE} is map"))
    if items is None:
        errors.append(field.required(where, f"must have a schema if {LIST_TYPE} is map"))
    elif isinstance(items, list):
        why = f"must only have a single schema if {LIST_TYPE} is map"
        errors.append(field.invalid(where, GoStruct(show_items(items)), why))
    elif items.get("type") != "object":
        why = f"must be object if parent array's {LIST_TYPE} is map"
        errors.append(field.invalid(where.child("type"), items.get("type") or "", why))
    else:
        errors += _validate_keys(keys, items.get("properties") or {}, path)
    return errors


def _validate_keys(keys: list[str], properties: Object, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    where = path.child("items").child("properties")
    for index, key in enumerate(keys):
        if key not in properties:
            why = "entries must all be names of item properties"
            errors.append(field.invalid(path.child(LIST_MAP_KEYS), keys, why))
        elif properties[key].get("type") in ("array", "object"):
            why = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            errors.append(field.invalid(where.key(key).child("type"), "object", why))
        if key in keys[:index]:
            errors.append(field.invalid(path.child(LIST_MAP_KEYS), keys, "must not contain duplicate entries"))
    return errors


def validate_map_keys(schema: Object, path: FieldPath) -> list[FieldError]:
    """Items of sets and maps are there, and keys have values."""
    list_type, items = schema.get(LIST_TYPE), schema.get("items")
    if list_type not in ("set", "map") or not isinstance(items, dict):
        return []
    errors: list[FieldError] = []
    where = path.child("items")
    if items.get("nullable"):
        errors.append(field.forbidden(where.child("nullable"), f"cannot be nullable when {LIST_TYPE} is {list_type}"))
    if list_type == "set":
        return errors
    properties: Object = items.get("properties") or {}
    for key in schema.get(LIST_MAP_KEYS) or ():
        if key not in properties:
            continue
        at = where.child("properties").key(key)
        if key not in (items.get("required") or ()) and properties[key].get("default") is None:
            why = f"this property is in {LIST_MAP_KEYS}, so it must have a default or be a required property"
            errors.append(field.required(at.child("default"), why))
        if properties[key].get("nullable"):
            why = f"this property is in {LIST_MAP_KEYS}, so it cannot be nullable"
            errors.append(field.forbidden(at.child("nullable"), why))
    return errors


def _validate_rules(schema: Object, path: FieldPath) -> list[FieldError]:
    """The settings of CEL rules; their expressions are left to who can compile them."""
    errors: list[FieldError] = []
    for index, rule in enumerate(schema.get(RULES) or ()):
        where = path.child(RULES).index(index)
        errors += _validate_rule_texts(rule, where)
        expression, reason, field_path = rule.get("messageExpression"), rule.get("reason"), rule.get("fieldPath")
        if expression and not expression.strip():
            why = "messageExpression must be non-empty if specified"
            errors.append(field.required(where.child("messageExpression"), why))
        if reason is not None and reason not in _REASONS:
            errors.append(field.not_supported(where.child("reason"), reason, _REASONS))
        if field_path:
            errors += _validate_field_path(schema, field_path, where.child("fieldPath"))
    return errors


def _validate_rule_texts(rule: Object, path: FieldPath) -> list[FieldError]:
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        return [field.required(path.child("rule"), "rule is not specified")]
    if message and not message.strip():
        return [field.invalid(path.child("message"), message, "must be non-empty if specified")]
    if _LINE_BREAK.search(message.strip()):
        return [field.invalid(path.child("message"), message, "must not contain line breaks")]
    if _LINE_BREAK.search(text) and not message.strip():
        return [field.required(path.child("message"), "message must be specified if rule contains line breaks")]
    return []


def _validate_field_path(schema: Object, field_path: str, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if not field_path.strip():
        errors.append(field.invalid(path, field_path, "must be non-empty if specified"))
    if _LINE_BREAK.search(field_path):
        errors.append(field.invalid(path, field_path, "must not contain line breaks"))
    try:
        find_field(field_path, make_node(schema))
    except FieldPathError:
        errors.append(field.invalid(path, field_path, "must be a valid path"))
    except StructuralError:
        pass  # reported elsewhere
    return errors
