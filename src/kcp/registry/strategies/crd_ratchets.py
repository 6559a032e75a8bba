"""What a definition got away with before, so that an update of it is not refused for that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kcp.meta.field import FieldPath
from kcp.registry.strategies.crd_schema import is_set_of_compounds, validate_map_keys
from kcp.schema.structural.default_values import validate_defaults
from kcp.schema.structural.formats import find_format
from kcp.schema.structural.invariants import validate_structural
from kcp.schema.structural.nodes import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    PRESERVE,
    RULES,
    StructuralError,
    make_node,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kcp.meta.codec import Object
    from kcp.registry.strategies.crd_internal import InternalSpec
    from kcp.registry.strategies.crd_schema import SchemaOptions
    from kcp.schema.structural.objectmeta import MetadataRules

_TYPES: Final = ("", "array", "boolean", "integer", "number", "object", "string")
_ANYWHERE: Final = FieldPath()
_UNKNOWN_FIELDS: Final = "must not have unknown fields"


def choose_schema_options(
    crd: Object, old: Object, before: InternalSpec, rules: MetadataRules, options: SchemaOptions
) -> SchemaOptions:
    """Insist only on what all schemas of the old definition fulfil."""
    schemas = list(before.open_api_schemas())
    parts = [part for schema in schemas for part in walk_schema(schema)]
    return replace(
        options,
        valid_types=all((part.get("type") or "") in _TYPES for part in parts),
        structural=all(map(is_structural, schemas)),
        pruned_defaults=not any(_has_unpruned_defaults(schema, rules) for schema in schemas),
        atomic_sets=not any(map(is_set_of_compounds, parts)),
        map_keys=not any(validate_map_keys(part, _ANYWHERE) for part in parts),
        unchanged_versions=_find_unchanged(crd, old),
    )


def walk_schema(schema: Object) -> Iterator[Object]:
    """A schema and all schemas in it, in the order in which Kubernetes visits them."""
    yield schema
    items = schema.get("items")
    children = list(items) if isinstance(items, list) else [items]
    for junctor in ("allOf", "anyOf", "oneOf"):
        children += schema.get(junctor) or []
    children.append(schema.get("not"))
    children += (schema.get("properties") or {}).values()
    children.append(schema.get("additionalProperties"))
    children += (schema.get("patternProperties") or {}).values()
    children.append(schema.get("additionalItems"))
    children += (schema.get("definitions") or {}).values()
    children += (schema.get("dependencies") or {}).values()
    for child in children:
        if isinstance(child, dict):
            yield from walk_schema(child)


def has_default(schema: Object) -> bool:
    return any(part.get("default") is not None for part in walk_schema(schema))


def has_extension(schema: Object) -> bool:
    """Whether it uses what only structural schemas may."""
    return any(
        part.get(EMBEDDED)
        or part.get(PRESERVE) is not None
        or part.get(INT_OR_STRING)
        or part.get(LIST_MAP_KEYS)
        or part.get(LIST_TYPE) is not None
        or part.get(RULES)
        for part in walk_schema(schema)
    )


def is_structural(schema: Object) -> bool:
    try:
        make_node(schema)
    except StructuralError:
        return False
    return not validate_structural(schema, _ANYWHERE)


def find_unknown_formats(spec: InternalSpec) -> list[str]:
    """Formats of strings that nobody checks."""
    return [
        part["format"]
        for schema in spec.open_api_schemas()
        for part in walk_schema(schema)
        if part.get("format") and part.get("type") == "string" and find_format(part["format"]) is None
    ]


def _has_unpruned_defaults(schema: Object, rules: MetadataRules) -> bool:
    if not has_default(schema) or not is_structural(schema):
        return False
    root = make_node(schema)
    root.embedded = True
    return any(error.detail == _UNKNOWN_FIELDS for error in validate_defaults(root, _ANYWHERE, rules))


def _find_unchanged(crd: Object, old: Object) -> frozenset[str]:
    def schemas(definition: Object) -> dict[str, Object | None]:
        versions = (definition.get("spec") or {}).get("versions") or []
        return {version.get("name", ""): version.get("schema") for version in versions}

    before = schemas(old)
    return frozenset(name for name, schema in schemas(crd).items() if name in before and before[name] == schema)
