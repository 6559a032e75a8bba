"""A CustomResourceDefinition as kube-apiserver holds it in memory, which is the form its complaints are about.

What all versions have in common moves to the top: with one version, or several of equal schema,

    spec.versions[0].schema.openAPIV3Schema        is validated, and complained about, as
    spec.validation.openAPIV3Schema                (apiextensions/v1/conversion.go)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kcp.meta.gotext import marshal_json
from kcp.registry.gostruct import GoStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kcp.meta.codec import Object

    Show = Callable[[Any], str]

_MOVED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


@dataclass(frozen=True, slots=True)
class InternalVersion:
    name: str
    served: bool
    storage: bool
    deprecated: bool
    deprecation_warning: str | None
    schema: Object | None
    """What stands in `schema`: an object that has, or has not, an openAPIV3Schema. None once it moved to the top."""

    subresources: Object | None
    columns: list[Object]
    selectable_fields: list[Object]


@dataclass(frozen=True, slots=True)
class InternalSpec:
    group: str
    scope: str
    names: Object
    version: str
    versions: list[InternalVersion]
    versions_are_nil: bool
    validation: Object | None
    subresources: Object | None
    columns: list[Object]
    selectable_fields: list[Object]
    conversion: Object | None
    preserve_unknown_fields: bool

    def open_api_schemas(self) -> Iterator[Object]:
        """Every openAPIV3Schema, each once."""
        for holder in (self.validation, *(version.schema for version in self.versions)):
            if holder is not None and holder.get("openAPIV3Schema") is not None:
                yield holder["openAPIV3Schema"]

    def subresources_of(self, version: InternalVersion) -> Object | None:
        if all(each.subresources is None for each in self.versions):
            return self.subresources
        # Looked up by name: of two versions of one name, both get the first one's.
        return next(each.subresources for each in self.versions if each.name == version.name)


def make_internal(spec: Object) -> InternalSpec:
    """The spec of a v1 object as the checks see it."""
    versions: list[Object] = spec.get("versions") or []
    common: Object = {}
    for field in _MOVED:
        values = [version.get(field) or None if field in _MOVED[2:] else version.get(field) for version in versions]
        if versions and all(value == values[0] for value in values):
            common[field] = values[0]
    return InternalSpec(
        group=spec.get("group") or "",
        scope=spec.get("scope") or "",
        names=spec.get("names") or {},
        version=versions[0].get("name", "") if versions else "",
        versions=[_make_version(version, common) for version in versions],
        versions_are_nil=spec.get("versions") is None,
        validation=common.get("schema"),
        subresources=common.get("subresources"),
        columns=common.get("additionalPrinterColumns") or [],
        selectable_fields=common.get("selectableFields") or [],
        conversion=spec.get("conversion"),
        preserve_unknown_fields=bool(spec.get("preserveUnknownFields")),
    )


def _make_version(version: Object, common: Object) -> InternalVersion:
    own = {field: None if field in common else version.get(field) for field in _MOVED}
    return InternalVersion(
        name=version.get("name") or "",
        served=bool(version.get("served")),
        storage=bool(version.get("storage")),
        deprecated=bool(version.get("deprecated")),
        deprecation_warning=version.get("deprecationWarning"),
        schema=own["schema"],
        subresources=own["subresources"],
        columns=own["additionalPrinterColumns"] or [],
        selectable_fields=own["selectableFields"] or [],
    )


def show_versions(spec: InternalSpec) -> GoStruct | None:
    """The versions as Go prints them in a field error."""
    return None if spec.versions_are_nil else GoStruct("[" + ",".join(map(_show_version, spec.versions)) + "]")


def show_rule(rule: Object) -> GoStruct:
    return GoStruct(_show_struct(rule, _RULE))


def show_schema(schema: Object) -> GoStruct:
    return GoStruct(_show_props(schema))


def _show_version(version: InternalVersion) -> str:
    warning = version.deprecation_warning
    parts = {
        "Name": marshal_json(version.name),
        "Served": marshal_json(version.served),
        "Storage": marshal_json(version.storage),
        "Deprecated": marshal_json(version.deprecated),
        "DeprecationWarning": marshal_json(warning),
        "Schema": "null" if version.schema is None else _show_struct(version.schema, _VALIDATION),
        "Subresources": "null" if version.subresources is None else _show_struct(version.subresources, _SUBRESOURCES),
        "AdditionalPrinterColumns": _show_list(version.columns, lambda column: _show_struct(column, _COLUMN)),
        "SelectableFields": _show_list(version.selectable_fields, lambda path: _show_struct(path, _SELECTABLE)),
    }
    return _join(parts)


def _join(parts: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def _show_struct(value: Object, fields: tuple[tuple[str, str, Any, Show], ...]) -> str:
    """The fields of a Go struct without JSON tags: all of them, in their order, under their Go names."""
    parts = {}
    for name, go_name, zero, show in fields:
        item = value.get(name)
        parts[go_name] = marshal_json(zero) if item is None else show(item)
    return _join(parts)


def _show_list(items: list[Any], show: Show) -> str:
    return "[" + ",".join(map(show, items)) + "]" if items else "null"


def _show_map(items: dict[str, Any], show: Show) -> str:
    return "{" + ",".join(f"{marshal_json(name)}:{show(items[name])}" for name in sorted(items)) + "}"


def _show_props(schema: Object) -> str:
    return _show_struct(schema, _PROPS)


def _show_all(items: list[Any]) -> str:
    return _show_list(items, _show_props)


def _show_named(items: dict[str, Any]) -> str:
    return _show_map(items, _show_props)


def show_items(items: Any) -> str:  # noqa: ANN401 - a schema or a list of them
    if isinstance(items, list):
        return _join({"Schema": "null", "JSONSchemas": _show_all(items)})
    return _join({"Schema": _show_props(items), "JSONSchemas": "null"})


def _show_or_bool(value: Any) -> str:  # noqa: ANN401 - a schema or a boolean
    if isinstance(value, bool):
        return _join({"Allows": marshal_json(value), "Schema": "null"})
    return _join({"Allows": "true", "Schema": _show_props(value)})


def _show_dependency(value: Any) -> str:  # noqa: ANN401 - a schema or a list of names
    if isinstance(value, list):
        return _join({"Schema": "null", "Property": marshal_json(value)})
    return _join({"Schema": _show_props(value), "Property": "null"})


def _show_rules(rules: list[Any]) -> str:
    return _show_list(rules, lambda rule: _show_struct(rule, _RULE))


_RULE: Final = (
    ("rule", "Rule", "", marshal_json),
    ("message", "Message", "", marshal_json),
    ("messageExpression", "MessageExpression", "", marshal_json),
    ("reason", "Reason", None, marshal_json),
    ("fieldPath", "FieldPath", "", marshal_json),
    ("optionalOldSelf", "OptionalOldSelf", None, marshal_json),
)
_COLUMN: Final = (
    ("name", "Name", "", marshal_json),
    ("type", "Type", "", marshal_json),
    ("format", "Format", "", marshal_json),
    ("description", "Description", "", marshal_json),
    ("priority", "Priority", 0, marshal_json),
    ("jsonPath", "JSONPath", "", marshal_json),
)
_SELECTABLE: Final = (("jsonPath", "JSONPath", "", marshal_json),)
_SCALE: Final = (
    ("specReplicasPath", "SpecReplicasPath", "", marshal_json),
    ("statusReplicasPath", "StatusReplicasPath", "", marshal_json),
    ("labelSelectorPath", "LabelSelectorPath", None, marshal_json),
)
_SUBRESOURCES: Final = (
    ("status", "Status", None, lambda status: "{}"),
    ("scale", "Scale", None, lambda scale: _show_struct(scale, _SCALE)),
)
_DOCS: Final = (("description", "Description", "", marshal_json), ("url", "URL", "", marshal_json))
_PROPS: Final = (
    ("id", "ID", "", marshal_json),
    ("$schema", "Schema", "", marshal_json),
    ("$ref", "Ref", None, marshal_json),
    ("description", "Description", "", marshal_json),
    ("type", "Type", "", marshal_json),
    ("nullable", "Nullable", False, marshal_json),
    ("format", "Format", "", marshal_json),
    ("title", "Title", "", marshal_json),
    ("default", "Default", None, marshal_json),
    ("maximum", "Maximum", None, marshal_json),
    ("exclusiveMaximum", "ExclusiveMaximum", False, marshal_json),
    ("minimum", "Minimum", None, marshal_json),
    ("exclusiveMinimum", "ExclusiveMinimum", False, marshal_json),
    ("maxLength", "MaxLength", None, marshal_json),
    ("minLength", "MinLength", None, marshal_json),
    ("pattern", "Pattern", "", marshal_json),
    ("maxItems", "MaxItems", None, marshal_json),
    ("minItems", "MinItems", None, marshal_json),
    ("uniqueItems", "UniqueItems", False, marshal_json),
    ("multipleOf", "MultipleOf", None, marshal_json),
    ("enum", "Enum", None, marshal_json),
    ("maxProperties", "MaxProperties", None, marshal_json),
    ("minProperties", "MinProperties", None, marshal_json),
    ("required", "Required", None, marshal_json),
    ("items", "Items", None, show_items),
    ("allOf", "AllOf", None, _show_all),
    ("oneOf", "OneOf", None, _show_all),
    ("anyOf", "AnyOf", None, _show_all),
    ("not", "Not", None, _show_props),
    ("properties", "Properties", None, _show_named),
    ("additionalProperties", "AdditionalProperties", None, _show_or_bool),
    ("patternProperties", "PatternProperties", None, _show_named),
    ("dependencies", "Dependencies", None, lambda items: _show_map(items, _show_dependency)),
    ("additionalItems", "AdditionalItems", None, _show_or_bool),
    ("definitions", "Definitions", None, _show_named),
    ("externalDocs", "ExternalDocs", None, lambda docs: _show_struct(docs, _DOCS)),
    ("example", "Example", None, marshal_json),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", None, marshal_json),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", False, marshal_json),
    ("x-kubernetes-int-or-string", "XIntOrString", False, marshal_json),
    ("x-kubernetes-list-map-keys", "XListMapKeys", None, marshal_json),
    ("x-kubernetes-list-type", "XListType", None, marshal_json),
    ("x-kubernetes-map-type", "XMapType", None, marshal_json),
    ("x-kubernetes-validations", "XValidations", None, _show_rules),
)
_VALIDATION: Final = (("openAPIV3Schema", "OpenAPIV3Schema", None, _show_props),)
GO_NAMES: Final = {name: go_name for name, go_name, _, _ in _PROPS}
"""What Go calls the fields of an openAPIV3Schema."""
