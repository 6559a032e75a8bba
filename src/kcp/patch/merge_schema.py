"""The shape of a type, as far as merging needs it: which maps and lists merge, and by which keys.

A node says what a value may be: a scalar, a map (of declared fields, of elements, or both) and a list. Most types are
one of these; where the schema names no type a value may be any of them. Example, of a Service:

    spec            map with fields, merged field by field
    spec.selector   map, atomic: a change of one entry is a change of the whole
    spec.ports      list, merged by the keys (port, protocol), protocol counting as TCP where it is absent
    spec.clusterIPs list, atomic

Nodes are filled on first use, because types refer to themselves. Must not validate beyond what merging needs.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kcp.meta.codec import Object

NUMERIC: Final = "numeric"
STRING: Final = "string"
BOOLEAN: Final = "boolean"
ANY_SCALAR: Final = "untyped"

_PRIMITIVES: Final = {"integer": NUMERIC, "number": NUMERIC, "string": STRING, "boolean": BOOLEAN}
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

# What every custom resource and every resource embedded in one has, whatever its author declared.
_TYPE_META: Final[Object] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": _OBJECT_META},
}


class PatchMeta(NamedTuple):
    """What a strategic merge patch needs to know of one field."""

    strategy: str = ""  # "merge", "replace" or nothing
    merge_key: str = ""


class MergeSchema:
    """One node. `MergeSchema.from_openapi` makes the root of a kind; the rest follows when it is asked for."""

    __slots__ = (
        "_source",
        "element",
        "empty",
        "fields",
        "go_name",
        "is_deduced",
        "is_list",
        "is_list_atomic",
        "is_map",
        "is_map_atomic",
        "item",
        "key_defaults",
        "keys",
        "patch_meta",
        "scalar",
    )

    scalar: str | None  # the scalar it may be: NUMERIC, STRING, BOOLEAN or ANY_SCALAR
    is_map: bool
    is_map_atomic: bool
    is_deduced: bool  # a map of which nothing is declared
    fields: dict[str, "MergeSchema"]  # declared fields
    element: "MergeSchema | None"  # what undeclared fields are; None if there may be none
    is_list: bool
    is_list_atomic: bool
    item: "MergeSchema"
    keys: tuple[str, ...]  # what identifies an item of the list; empty for a set
    key_defaults: dict[str, Any]  # for items without that key
    patch_meta: dict[str, PatchMeta]  # by field
    go_name: str  # the Go struct, for messages; empty for what is a map or a list in Go
    empty: Object  # of a root: how Go writes an object of this kind of which nothing is set

    def __init__(self, source: "_Source | None" = None) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - reached once, while the node is not filled yet
        if name not in MergeSchema.__slots__ or self._source is None:
            raise AttributeError(name)
        source, self._source = self._source, None
        source.fill(self)
        return getattr(self, name)

    @staticmethod
    def from_openapi(
        schema: Object,
        definitions: Mapping[str, Object],
        *,
        custom: bool = False,
        preserve_unknown_fields: bool = False,
    ) -> "MergeSchema":
        """The root node of a kind.

        `schema` is OpenAPI v3 as under components.schemas, or a reference into it. `custom` is for custom resources:
        their schema need not describe apiVersion, kind and metadata, and they have no fields that are written empty.
        """
        if custom:
            schema = _with_type_meta(schema)
        source = _Source(schema, definitions, {}, preserve=preserve_unknown_fields, custom=custom)
        root = MergeSchema(source)
        root.empty = {} if custom else _empty_value(schema, definitions)
        return root

    def child(self, key: str) -> "MergeSchema | None":
        """The type of a field of this map; None if there may be no such field."""
        return self.fields.get(key) or self.element


class _Source:
    """What a node is made from: an OpenAPI schema and where its references lead."""

    __slots__ = ("_cache", "_custom", "_definitions", "_name", "_override", "_preserve", "_schema")

    def __init__(
        self,
        schema: Object,
        definitions: Mapping[str, Object],
        cache: dict[tuple[str, str], MergeSchema],
        *,
        preserve: bool = False,
        custom: bool = False,
        name: str = "",
        override: str = "",
    ) -> None:
        self._schema = schema
        self._definitions = definitions
        self._cache = cache
        self._preserve = preserve
        self._custom = custom
        self._name = name
        self._override = override

    def fill(self, node: MergeSchema) -> None:
        schema, name = self._schema, self._name
        if not name and (target := _target_of(schema)):
            name, schema = target, self._definitions.get(target, {})
        _make_blank(node)
        if name == _RAW_EXTENSION:
            _fill_untyped(node, UNTYPED_ATOMIC, UNTYPED_ATOMIC)
            node.go_name = "RawExtension"
            return
        kind = schema.get("type") or ""
        if kind in _PRIMITIVES:
            plain = kind != "string" or schema.get("format", "") in ("", "byte")
            node.scalar = _PRIMITIVES[kind] if plain else ANY_SCALAR
            return
        if kind not in ("array", "object"):
            node.scalar = ANY_SCALAR
            if name == _QUANTITY:
                return
        # Opting out of pruning holds for everything below as well, up to the next reference.
        self._preserve = self._preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        if kind != "array":
            self._fill_map(node, schema)
            node.go_name = name.rpartition(".")[2] or _kind_of(schema)
        if kind != "object":
            self._fill_list(node, schema)

    def _fill_map(self, node: MergeSchema, schema: Object) -> None:
        if self._custom and schema.get("x-kubernetes-embedded-resource") is True:
            schema = _with_type_meta(schema)
        properties: Object = schema.get("properties") or {}
        node.is_map = True
        node.is_map_atomic = (self._override or schema.get("x-kubernetes-map-type")) == "atomic"
        node.fields = {key: self._make(value) for key, value in properties.items()}
        node.patch_meta = {key: _patch_meta(value) for key, value in properties.items()}
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            node.element = self._make(additional)
        elif additional is True or (additional is None and (self._preserve or not properties)):
            node.element = UNTYPED
        node.is_deduced = not properties and node.element is UNTYPED

    def _fill_list(self, node: MergeSchema, schema: Object) -> None:
        items = schema.get("items")
        node.is_list = True
        node.keys, node.is_list_atomic = _relationship(schema)
        if not isinstance(items, dict):
            node.item = UNTYPED_ATOMIC
            return
        node.item = self._make(items)
        if node.keys:
            target = _target_of(items)
            properties = (self._definitions.get(target, {}) if target else items).get("properties") or {}
            defaults = {key: (properties.get(key) or {}).get("default") for key in node.keys}
            node.key_defaults = {key: value for key, value in defaults.items() if value is not None}

    def _make(self, schema: Object) -> MergeSchema:
        target = _target_of(schema)
        if not target:
            preserve, custom = self._preserve, self._custom
            return MergeSchema(_Source(schema, self._definitions, self._cache, preserve=preserve, custom=custom))
        if self._custom and target == _OBJECT_META:
            return OBJECT_META
        override = schema.get("x-kubernetes-map-type") or ""
        node = self._cache.get((target, override))
        if node is None:
            found = self._definitions.get(target, {})
            source = _Source(found, self._definitions, self._cache, name=target, override=override)
            node = self._cache[target, override] = MergeSchema(source)
        return node


def _target_of(schema: Object) -> str:
    """The definition a schema refers to, be it directly or wrapped in allOf; empty if it stands for itself."""
    reference = schema.get("$ref")
    if reference is None:
        wrapped = schema.get("allOf")
        reference = wrapped[0].get("$ref") if isinstance(wrapped, list) and len(wrapped) == 1 else None
    return str(reference or "").rpartition("/")[2]


def _kind_of(schema: Object) -> str:
    kinds = schema.get("x-kubernetes-group-version-kind")
    return kinds[0]["kind"] if isinstance(kinds, list) and kinds else ""


def _with_type_meta(schema: Object) -> Object:
    return {**schema, "properties": {**(schema.get("properties") or {}), **_TYPE_META}}


def _relationship(schema: Object) -> tuple[tuple[str, ...], bool]:
    """The keys of a list's items and whether the list is atomic. The patch strategy counts if nothing else is said."""
    list_type = schema.get("x-kubernetes-list-type")
    if list_type == "map":
        return tuple(schema.get("x-kubernetes-list-map-keys") or ()), False
    if list_type is not None:
        return (), list_type != "set"
    if schema.get("x-kubernetes-patch-strategy") not in ("merge", "merge,retainKeys"):
        return (), True
    merge_key = schema.get("x-kubernetes-patch-merge-key")
    return (merge_key,) if merge_key else (), False


def _patch_meta(schema: Object) -> PatchMeta:
    strategies = str(schema.get("x-kubernetes-patch-strategy") or "").split(",")
    strategy = next((name for name in strategies if name != "retainKeys"), "")
    return PatchMeta(strategy, schema.get("x-kubernetes-patch-merge-key") or "")


def _empty_value(schema: Object, definitions: Mapping[str, Object]) -> Object:
    """An empty Go struct as it is written: with the structs in it, and with what its author did not mark omitempty.

    The schema tells by its defaults, and by requiring lists and maps, which are null while they are empty.
    """
    target = _target_of(schema)
    if target:
        schema = definitions.get(target, {})
    empty: Object = {}
    required = schema.get("required") or ()
    for key, field in (schema.get("properties") or {}).items():
        default = field.get("default")
        if default == {}:
            empty[key] = _empty_value(field, definitions)
        elif default is not None and not default:
            empty[key] = default
        elif key in required and field.get("type") in ("array", "object"):
            empty[key] = None
    return empty


def _make_blank(node: MergeSchema) -> None:
    node.scalar = node.element = None
    node.is_map = node.is_map_atomic = node.is_deduced = node.is_list = node.is_list_atomic = False
    node.fields, node.patch_meta, node.key_defaults = {}, {}, {}
    node.item = node
    node.keys = ()
    node.go_name = ""


def _fill_untyped(node: MergeSchema, element: MergeSchema, item: MergeSchema) -> None:
    _make_blank(node)
    node.scalar = ANY_SCALAR
    node.is_map = node.is_list = node.is_list_atomic = True
    node.is_map_atomic = element is UNTYPED_ATOMIC
    node.is_deduced = not node.is_map_atomic
    node.element, node.item = element, item


UNTYPED_ATOMIC: Final = MergeSchema()
UNTYPED: Final = MergeSchema()
"""The schema of what has none: maps merge, lists and all that is in them are atomic."""
_fill_untyped(UNTYPED_ATOMIC, UNTYPED_ATOMIC, UNTYPED_ATOMIC)
_fill_untyped(UNTYPED, UNTYPED, UNTYPED_ATOMIC)
UNTYPED.empty = {}

_TEXTS: Final[Object] = {"type": "object", "additionalProperties": {"type": "string"}}
_TEXT: Final[Object] = {"type": "string"}
_TIME: Final[Object] = {"type": "string", "format": "date-time"}
_FLAG: Final[Object] = {"type": "boolean"}

OBJECT_META: Final = MergeSchema.from_openapi(
    {
        "type": "object",
        "properties": {
            "annotations": _TEXTS,
            "creationTimestamp": _TIME,
            "deletionGracePeriodSeconds": {"type": "integer"},
            "deletionTimestamp": _TIME,
            "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
            "generateName": _TEXT,
            "generation": {"type": "integer"},
            "labels": _TEXTS,
            "managedFields": {"type": "array", "items": {}},
            "name": _TEXT,
            "namespace": _TEXT,
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {key: {**_TEXT, "default": ""} for key in ("apiVersion", "kind", "name", "uid")}
                    | dict.fromkeys(("blockOwnerDeletion", "controller"), _FLAG),
                },
            },
            "resourceVersion": _TEXT,
            "selfLink": _TEXT,
            "uid": _TEXT,
        },
    },
    {},
)
"""metav1.ObjectMeta, for custom resources."""
