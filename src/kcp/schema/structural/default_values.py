"""Whether the defaults in a schema are valid themselves (apiextensions-apiserver's schema/defaulting/validation.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.meta import field
from kcp.meta.field import FieldPath
from kcp.schema.structural.nodes import META_FIELDS, copy_json
from kcp.schema.structural.objectmeta import CoerceError, coerce, validate_embedded
from kcp.schema.structural.pruning import compile_pruner
from kcp.schema.structural.results import make_field_errors
from kcp.schema.structural.values import ValueSchema

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.schema.structural.nodes import Node
    from kcp.schema.structural.objectmeta import MetadataRules

_ITEM: Final = None  # a step into a list


class _Place(NamedTuple):
    """Where a schema is: under which resource, by which steps from it, and whether within that resource's metadata."""

    resource: Node
    steps: tuple[str | None, ...] = ()
    inside_meta: bool = False


def validate_defaults(
    root: Node, path: FieldPath, rules: MetadataRules, *, require_pruned: bool = True
) -> list[FieldError]:
    """What is wrong with the defaults in a schema. `root` must be marked as an embedded resource: it is one."""
    return _validate(root, path, _Place(root), rules, require_pruned)


def _validate(
    node: Node, path: FieldPath, place: _Place, rules: MetadataRules, require_pruned: bool
) -> list[FieldError]:
    if node.embedded:
        place = _Place(node)
    errors: list[FieldError] = []
    if node.default is not None:
        where = path.child("default")
        if place.inside_meta:
            errors += _validate_in_metadata(node, where, place, rules)
        else:
            errors += _validate_default(node, where, rules, require_pruned)
    if node.items is not None:
        inner = place._replace(steps=(*place.steps, _ITEM))
        errors += _validate(node.items, path.child("items"), inner, rules, require_pruned)
    for name, child in node.properties.items():
        inside = place.inside_meta or (node.embedded and name in META_FIELDS)
        inner = _Place(place.resource, (*place.steps, name), inside)
        errors += _validate(child, path.child("properties").key(name), inner, rules, require_pruned)
    return errors


def _validate_default(node: Node, path: FieldPath, rules: MetadataRules, require_pruned: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    unknown: list[str] = []
    value = copy_json(node.default)
    if require_pruned and value.__class__ in (dict, list):
        compile_pruner(node, is_root=node.embedded)(value, (), unknown)
        if unknown:
            errors.append(field.invalid(path, node.default, "must not have unknown fields"))
    try:
        coerce(value, node, path, rules, [])
    except CoerceError as error:
        return [*errors, error.error]
    problems = validate_embedded(value, node, path, rules)
    if problems:
        return errors + problems
    return errors + _validate_value(node, value, path)


def _validate_in_metadata(node: Node, path: FieldPath, place: _Place, rules: MetadataRules) -> list[FieldError]:
    """A default in metadata is judged with the resource around it that it would make."""
    resource = _surround(copy_json(node.default), place.steps)
    try:
        coerce(resource, place.resource, FieldPath(), rules, [])
    except CoerceError as error:
        return [field.invalid(path, node.default, f"must result in valid metadata: {error}")]
    problems = validate_embedded(resource, place.resource, FieldPath(), rules)
    if problems:
        return [field.invalid(path, node.default, f"must result in valid metadata: {field.aggregate(problems)}")]
    return _validate_value(node, node.default, path)


def _validate_value(node: Node, value: Any, path: FieldPath) -> list[FieldError]:  # noqa: ANN401 - any JSON value
    return make_field_errors(ValueSchema(node.schema, is_default=True).validate(value).errors, path)


def _surround(value: Any, steps: tuple[str | None, ...]) -> Object:  # noqa: ANN401
    for step in reversed(steps):
        value = [value] if step is _ITEM else {step: value}
    resource: Object = {"kind": "Validation", "apiVersion": "validation/v1", **value}
    return resource
