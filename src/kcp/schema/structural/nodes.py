"""The tree of a structural schema: what each value is, apart from what makes it valid.

    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "default": "x"}}}}

becomes `Node(type="object", properties={"a": Node(type="array", items=Node(type="string", default="x"))})`. Value
validations (bounds, patterns, anyOf and so on) stay in the schema's JSON; see `values`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kcp.meta.codec import Object

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
RULES: Final = "x-kubernetes-validations"

# Fields of an openAPIV3Schema that no structural schema can have, and what Kubernetes calls them here.
_UNSUPPORTED: Final = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")


class StructuralError(ValueError):
    """The schema cannot be structural at all."""


class Node:
    """One place in the schema. `default` is None where there is no default: null cannot be one."""

    __slots__ = (
        "additional",
        "default",
        "embedded",
        "has_additional",
        "items",
        "list_map_keys",
        "list_type",
        "nullable",
        "preserve",
        "properties",
        "schema",
        "type",
    )

    def __init__(self, schema: Object) -> None:
        self.schema = schema
        self.type: str = schema.get("type") or ""
        self.nullable = bool(schema.get("nullable"))
        self.default: Any = schema.get("default")
        self.preserve = bool(schema.get(PRESERVE))
        self.embedded = bool(schema.get(EMBEDDED))
        self.list_type: str = schema.get(LIST_TYPE) or ""
        self.list_map_keys: list[str] = schema.get(LIST_MAP_KEYS) or []
        self.properties: dict[str, Node] = {}
        self.items: Node | None = None
        self.additional: Node | None = None
        self.has_additional = schema.get("additionalProperties") is not None
        """True for `additionalProperties: false`, too: its values are kept, to be refused by validation."""


def make_node(schema: Object) -> Node:
    """Read an openAPIV3Schema. Raises StructuralError."""
    check_supported(schema)
    node = Node(schema)
    if schema.get("items") is not None:
        node.items = make_node(schema["items"])
    for name, child in (schema.get("properties") or {}).items():
        node.properties[name] = make_node(child)
    if isinstance(schema.get("additionalProperties"), dict):
        node.additional = make_node(schema["additionalProperties"])
    return node


def check_supported(schema: Object) -> None:
    """Raise StructuralError if this schema, or one that it combines with, cannot be part of a structural one."""
    for name, shown in _UNSUPPORTED:
        value = schema.get(name)
        if value or (name == "additionalItems" and value is not None):
            raise StructuralError(f"OpenAPIV3Schema '{shown}' is not supported")
    for junctor in _JUNCTORS:
        for clause in schema.get(junctor) or ():
            _check_nested(clause)
    if schema.get("not") is not None:
        _check_nested(schema["not"])
    if schema.get(PRESERVE) is False:
        raise StructuralError(f"internal error: '{PRESERVE}' must be true or undefined")
    if isinstance(schema.get("items"), list):
        raise StructuralError("OpenAPIV3Schema 'items' must be a schema, but is an array")


def _check_nested(schema: Object) -> None:
    check_supported(schema)
    children = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for child in children:
        if isinstance(child, dict):
            _check_nested(child)


def copy_json(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A deep copy."""
    if value.__class__ is dict:
        return {key: copy_json(child) for key, child in value.items()}
    if value.__class__ is list:
        return [copy_json(child) for child in value]
    return value


def is_same(left: Any, right: Any) -> bool:  # noqa: ANN401
    """Equal as Go's reflect.DeepEqual sees it: 1 differs from 1.0 and from true."""
    if left.__class__ is not right.__class__:
        return False
    if left.__class__ is dict:
        return left.keys() == right.keys() and all(is_same(child, right[key]) for key, child in left.items())
    if left.__class__ is list:
        return len(left) == len(right) and all(map(is_same, left, right))
    return bool(left == right)
