"""The published schema of a custom kind: what is structural of it, with the fields every object has.

Follows apiextensions-apiserver/pkg/controller/openapi (builder and v2 conversion).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.schema.openapi.resources import META_V1, CustomKind, gvk_mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.meta.codec import Object

V2_PREFIX: Final = "#/definitions/"
V3_PREFIX: Final = "#/components/schemas/"

# Clients see these words in `kubectl explain` of any custom resource.
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION: Final = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values. More info: "
    + _CONVENTIONS
    + "#resources"
)
_KIND: Final = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the "
    "endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
    + _CONVENTIONS
    + "#types-kinds"
)
_METADATA: Final = "Standard object's metadata. More info: " + _CONVENTIONS + "#metadata"
_LIST_METADATA: Final = "Standard list metadata. More info: " + _CONVENTIONS + "#types-kinds"
_EMBEDDED_API_VERSION: Final = (
    "apiVersion defines the versioned schema of this representation of an object. More info: "
    + _CONVENTIONS
    + "#resources"
)
_EMBEDDED_KIND: Final = (
    "kind is a string value representing the type of this object. In CamelCase. More info: "
    + _CONVENTIONS
    + "#types-kinds"
)

_KEPT: Final = frozenset((
    "type", "nullable", "description", "title",
    "format", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
    "maxItems", "minItems", "uniqueItems", "multipleOf", "maxProperties", "minProperties", "required",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations",
))  # fmt: skip
_KEPT_EVEN_IF_EMPTY: Final = frozenset(("default", "enum", "not"))
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_INTEGER_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def definitions_v3(kind: CustomKind) -> dict[str, Object]:
    """The schemas of a custom kind and of its list."""
    return _definitions(kind, V3_PREFIX)


def definitions_v2(kind: CustomKind) -> dict[str, Object]:
    """The same for OpenAPI v2, without what kubectl cannot cope with there."""
    return _definitions(kind, V2_PREFIX)


def _definitions(kind: CustomKind, prefix: str) -> dict[str, Object]:
    schemas = {kind.definition: _object_schema(kind, prefix), kind.list_definition: _list_schema(kind, prefix)}
    if kind.selectable_fields:
        fields = [{"fieldPath": path.removeprefix(".")} for path in kind.selectable_fields]
        for schema in schemas.values():
            schema["x-kubernetes-selectable-fields"] = fields
    return schemas


def _object_schema(kind: CustomKind, prefix: str) -> Object:
    is_v2 = prefix == V2_PREFIX
    source = kind.schema
    if source is None or (is_v2 and source.get("x-kubernetes-preserve-unknown-fields")):
        # With any properties kubectl would refuse all others.
        schema: Object = {"type": "object"}
    else:
        schema = _structural(source)
        if is_v2:
            _convert_to_v2(schema)
        _add_object_fields(schema, prefix, _API_VERSION, _KIND)
        for part in _parts(schema):
            _add_embedded_fields(part, prefix)
    schema["x-kubernetes-group-version-kind"] = [gvk_mark(kind.gvk)]
    return schema


def _list_schema(kind: CustomKind, prefix: str) -> Object:
    items = {
        "description": f"List of {kind.plural}. More info: {_CONVENTIONS}",
        "items": {"$ref": prefix + kind.definition},
        "type": "array",
    }
    return {
        "description": f"{kind.list_kind} is a list of {kind.gvk.kind}",
        "properties": {
            "apiVersion": {"description": _API_VERSION, "type": "string"},
            "items": items,
            "kind": {"description": _KIND, "type": "string"},
            "metadata": _reference("ListMeta", _LIST_METADATA, prefix),
        },
        "required": ["items"],
        "type": "object",
        "x-kubernetes-group-version-kind": [gvk_mark(kind.gvk._replace(kind=kind.list_kind))],
    }


def _reference(name: str, description: str, prefix: str) -> Object:
    reference = {"$ref": f"{prefix}{META_V1}{name}"}
    if prefix == V2_PREFIX:
        return {**reference, "description": description}
    return {"allOf": [reference], "description": description}


def _structural(source: Mapping[str, Any]) -> Object:
    """A copy of what belongs to a structural schema, with int-or-string unfolded."""
    schema: Object = {}
    for key, value in source.items():
        # What Go leaves out when empty; a zero is kept, for it is behind a pointer.
        is_set = value is not None and value is not False and value != "" and value != []
        if key in _KEPT_EVEN_IF_EMPTY or (is_set and key in _KEPT):
            schema[key] = value
        elif is_set and key in _JUNCTORS:
            schema[key] = list(value)
    if isinstance(source.get("items"), dict):
        schema["items"] = _structural(source["items"])
    if source.get("properties") is not None:
        schema["properties"] = {name: _structural(part) for name, part in source["properties"].items()}
    additional = source.get("additionalProperties")
    if additional is not None:
        schema["additionalProperties"] = _structural(additional) if isinstance(additional, dict) else additional
    if schema.get("x-kubernetes-int-or-string"):
        _unfold_int_or_string(schema)
    return schema


def _unfold_int_or_string(schema: Object) -> None:
    if schema.get("anyOf") == _INTEGER_OR_STRING:
        return
    first: Object = next(iter(schema.get("allOf", ())), {})
    if first.get("anyOf") == _INTEGER_OR_STRING:
        return
    if "anyOf" in schema:
        schema["allOf"] = [{"anyOf": _INTEGER_OR_STRING}, *schema.get("allOf", ())]
    else:
        schema["anyOf"] = _INTEGER_OR_STRING


def _convert_to_v2(schema: Object) -> None:
    """Leave out what OpenAPI v2 does not have, and what kubectl stumbles over, in place."""
    for key in (*_JUNCTORS, "not", "default"):
        schema.pop(key, None)
    if schema.pop("nullable", False):
        for key in ("type", "items", "properties"):
            schema.pop(key, None)
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        for key in ("items", "properties"):
            schema.pop(key, None)
        if schema.get("type") == "object":
            del schema["type"]
    if "items" not in schema and schema.get("type") == "array":
        del schema["type"]
    _relax_required(schema)
    for part in _children(schema):
        _convert_to_v2(part)


def _relax_required(schema: Object) -> None:
    properties = schema.get("properties") or {}
    nullable = {name for name, part in properties.items() if part.get("nullable")}
    required = [name for name in schema.get("required", ()) if name not in nullable]
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict) and additional.get("nullable"):
        required = []
    if required:
        schema["required"] = required
    else:
        schema.pop("required", None)


def _add_object_fields(schema: Object, prefix: str, api_version: str, kind: str) -> None:
    schema["properties"] = (schema.get("properties") or {}) | {
        "apiVersion": {"description": api_version, "type": "string"},
        "kind": {"description": kind, "type": "string"},
        "metadata": _reference("ObjectMeta", _METADATA, prefix),
    }


def _add_embedded_fields(schema: Object, prefix: str) -> None:
    if prefix == V2_PREFIX and schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if schema.get("x-kubernetes-embedded-resource"):
        _add_object_fields(schema, prefix, _EMBEDDED_API_VERSION, _EMBEDDED_KIND)
        required = schema.get("required", [])
        schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]


def _children(schema: Object) -> list[Object]:
    children = list((schema.get("properties") or {}).values())
    children += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    return children


def _parts(schema: Object) -> list[Object]:
    """A schema and all below it, the innermost first."""
    return [part for child in _children(schema) for part in _parts(child)] + [schema]
