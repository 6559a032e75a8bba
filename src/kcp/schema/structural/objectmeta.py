"""Resources embedded in custom resources: their type and metadata have the form every object's have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kcp.meta import field
from kcp.meta.gvk import parse_group_version
from kcp.meta.validation import check_dns1035_label
from kcp.schema.structural.nodes import META_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath
    from kcp.schema.structural.nodes import Node


class MetadataRules(NamedTuple):
    """How metadata is read and judged; the rooms above know."""

    decode: Callable[[Any, list[str] | None], Object]
    """Makes ObjectMeta of any JSON value, reports `unknown field "x"`, raises ValueError in Go's words."""

    validate: Callable[[Object, FieldPath], list[FieldError]]


class CoerceError(ValueError):
    """An embedded resource has a type or metadata of the wrong form."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def has_embedded(node: Node) -> bool:
    """Whether there is any embedded resource in values of this node."""
    children = [*node.properties.values(), node.additional, node.items]
    return node.embedded or any(child is not None and has_embedded(child) for child in children)


def coerce(value: Any, node: Node, path: FieldPath, rules: MetadataRules, unknown: list[str]) -> None:  # noqa: ANN401
    """Clean the metadata of embedded resources in place, reporting the paths of dropped fields. Raises CoerceError."""
    if value.__class__ is dict:
        if node.embedded:
            _coerce_resource(value, path, rules, unknown)
        for name, item in value.items():
            if name in node.properties:
                coerce(item, node.properties[name], path.child(name), rules, unknown)
            elif node.additional is not None:
                coerce(item, node.additional, path.key(name), rules, unknown)
    elif value.__class__ is list and node.items is not None:
        for index, item in enumerate(value):
            coerce(item, node.items, path.index(index), rules, unknown)


def _coerce_resource(value: Object, path: FieldPath, rules: MetadataRules, unknown: list[str]) -> None:
    for name in [name for name in value if name in META_FIELDS]:
        item = value[name]
        if name != "metadata":
            if not isinstance(item, str):
                raise CoerceError(field.invalid(path.child(name), item, "must be a string"))
            continue
        complaints: list[str] = []
        try:
            value[name] = rules.decode(item, complaints)
        except ValueError as error:
            raise CoerceError(field.invalid(path.child(name), item, str(error))) from None
        # Complaints are whole sentences about fields of the metadata; ours are paths from the root.
        prefix = path.child(name).text
        unknown += [f"{prefix}.{text.partition(chr(34))[2].rstrip(chr(34))}" for text in complaints]


def validate_embedded(value: Any, node: Node, path: FieldPath, rules: MetadataRules) -> list[FieldError]:  # noqa: ANN401
    """What is wrong with the type and metadata of embedded resources."""
    errors: list[FieldError] = []
    if value.__class__ is dict:
        if node.embedded:
            errors += _validate_resource(value, path, rules)
        for name, item in value.items():
            if name in node.properties:
                errors += validate_embedded(item, node.properties[name], path.child(name), rules)
            elif node.additional is not None:
                errors += validate_embedded(item, node.additional, path.key(name), rules)
    elif value.__class__ is list and node.items is not None:
        for index, item in enumerate(value):
            errors += validate_embedded(item, node.items, path.index(index), rules)
    return errors


def _validate_resource(value: Object, path: FieldPath, rules: MetadataRules) -> list[FieldError]:
    errors = [field.required(path.child(name)) for name in ("apiVersion", "kind") if name not in value]
    for name, item in value.items():
        if name == "metadata":
            errors += _validate_metadata(item, path.child(name), rules)
        elif name in ("apiVersion", "kind"):
            if not isinstance(item, str):
                errors.append(field.invalid(path.child(name), item, "must be a string"))
            elif not item:
                errors.append(field.invalid(path.child(name), item, "must not be empty"))
            else:
                errors += _validate_kind(item, path) if name == "kind" else _validate_api_version(item, path)
    return errors


def _validate_kind(kind: str, path: FieldPath) -> list[FieldError]:
    problems = check_dns1035_label(kind.lower())
    if not problems:
        return []
    why = "may have mixed case, but should otherwise match: " + ",".join(problems)
    return [field.invalid(path.child("kind"), kind, why)]


def _validate_api_version(api_version: str, path: FieldPath) -> list[FieldError]:
    try:
        parse_group_version(api_version)
    except ValueError as error:
        return [field.invalid(path.child("apiVersion"), api_version, str(error))]
    return []


def _validate_metadata(metadata: Any, path: FieldPath, rules: MetadataRules) -> list[FieldError]:  # noqa: ANN401
    try:
        decoded = rules.decode(metadata, None)
    except ValueError as error:
        return [field.invalid(path, metadata, str(error))]
    # An embedded resource need not have a name yet.
    return rules.validate({"name": "fakename", **{k: v for k, v in decoded.items() if v != ""}}, path)
