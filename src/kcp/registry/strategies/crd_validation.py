"""Checking definitions of custom resources (apiextensions/validation/validation.go)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from kcp.meta import field
from kcp.meta.field import FieldPath
from kcp.meta.gotext import marshal_json
from kcp.meta.validation import check_dns1035_label, check_dns1123_subdomain
from kcp.meta.wellknown import API_APPROVED_ANNOTATION
from kcp.registry.gostruct import GoStruct
from kcp.registry.strategies.crd_approval import Approval, find_approval, is_protected_group
from kcp.registry.strategies.crd_columns import (
    MAX_SELECTABLE_FIELDS,
    validate_columns,
    validate_selectable_fields,
    validate_subresources,
)
from kcp.registry.strategies.crd_conversion import (
    has_known_review_version,
    is_valid_ca_bundle,
    validate_conversion,
)
from kcp.registry.strategies.crd_internal import InternalSpec, InternalVersion, make_internal, show_versions
from kcp.registry.strategies.crd_names import is_condition_true
from kcp.registry.strategies.crd_ratchets import choose_schema_options, has_default, has_extension
from kcp.registry.strategies.crd_schema import SchemaOptions, validate_schema

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.schema.structural.objectmeta import MetadataRules

_SPEC: Final = FieldPath("spec")
_STATUS: Final = FieldPath("status")
_SCOPES: Final = ("Cluster", "Namespaced")
_MAX_WARNING: Final = 256
_PRESERVE_WHY: Final = (
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
)


@dataclass(frozen=True, slots=True)
class Options:
    """What to insist on; an update forgives what was there before."""

    schema: SchemaOptions
    known_review_version: bool = True
    immutable_names: bool = False
    open_api_schema: bool = True
    allow_invalid_ca_bundle: bool = True
    too_many_selectable_fields: frozenset[str] = frozenset()  # versions that may keep theirs; "" is the top


def validate_definition(crd: Object, rules: MetadataRules, options: Options) -> list[FieldError]:
    """Everything wrong with a new definition but its metadata; its name belongs to its spec, though."""
    errors = _validate_name(crd)
    spec = make_internal(crd.get("spec") or {})
    errors += _validate_spec(spec, rules, options)
    return errors + _validate_rest(crd, None, spec)


def validate_definition_update(crd: Object, old: Object, rules: MetadataRules, options: Options) -> list[FieldError]:
    """Everything wrong with the change of a definition but its metadata."""
    spec, before = make_internal(crd.get("spec") or {}), make_internal(old.get("spec") or {})
    options = _choose_options(crd, old, before, rules, options)
    errors = _validate_spec(spec, rules, options)
    immutable: list[tuple[str, Any, Any]] = []
    if options.immutable_names:
        immutable.append(("scope", spec.scope, before.scope))
        immutable.append(("names.kind", spec.names.get("kind", ""), before.names.get("kind", "")))
    immutable.append(("group", spec.group, before.group))
    immutable.append(("names.plural", spec.names.get("plural", ""), before.names.get("plural", "")))
    for name, new_value, old_value in immutable:
        if new_value != old_value:
            errors.append(field.invalid(_SPEC.child(name), new_value, "field is immutable"))
    return errors + _validate_rest(crd, old, spec)


def validate_status(crd: Object) -> list[FieldError]:
    """The status on its own, as a write to it is checked."""
    names = (crd.get("status") or {}).get("acceptedNames") or {}
    return _validate_names(names, _STATUS.child("acceptedNames"))


def _validate_rest(crd: Object, old: Object | None, spec: InternalSpec) -> list[FieldError]:
    errors = validate_status(crd)
    errors += _validate_stored_versions((crd.get("status") or {}).get("storedVersions"), spec)
    errors += _validate_approval(crd, old, spec.group)
    kept = old is not None and (old.get("spec") or {}).get("preserveUnknownFields")
    if spec.preserve_unknown_fields and not kept:
        errors.append(field.invalid(_SPEC.child("preserveUnknownFields"), True, _PRESERVE_WHY))
    return errors


def _choose_options(crd: Object, old: Object, before: InternalSpec, rules: MetadataRules, options: Options) -> Options:
    conversion = ((before.conversion or {}).get("webhook") or {}).get("conversionReviewVersions") or []
    established = is_condition_true(old, "Established")
    ca_bundle = (((before.conversion or {}).get("webhook") or {}).get("clientConfig") or {}).get("caBundle")
    holders = [before.validation] if before.validation is not None else [version.schema for version in before.versions]
    return replace(
        options,
        schema=choose_schema_options(crd, old, before, rules, options.schema),
        known_review_version=not conversion or has_known_review_version(conversion),
        immutable_names=established,
        open_api_schema=all(holder is not None and holder.get("openAPIV3Schema") is not None for holder in holders),
        allow_invalid_ca_bundle=not established or bool(ca_bundle and not is_valid_ca_bundle(ca_bundle)),
        too_many_selectable_fields=_keeps_selectable_fields(make_internal(crd.get("spec") or {}), before),
    )


def _keeps_selectable_fields(spec: InternalSpec, before: InternalSpec) -> frozenset[str]:
    names = {""} if spec.selectable_fields == before.selectable_fields else set()
    if len(before.selectable_fields) <= MAX_SELECTABLE_FIELDS:
        names = set()
    earlier = {version.name: version.selectable_fields for version in before.versions}
    for version in spec.versions:
        fields = earlier.get(version.name, [])
        if len(fields) > MAX_SELECTABLE_FIELDS and fields == version.selectable_fields:
            names.add(version.name)
    return frozenset(names)


def _validate_name(crd: Object) -> list[FieldError]:
    spec = crd.get("spec") or {}
    expected = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    metadata = crd["metadata"]
    return [
        field.invalid(FieldPath("metadata").child(name), metadata[name], 'must be spec.names.plural+"."+spec.group')
        for name in ("generateName", "name")
        if metadata.get(name) and metadata[name] != expected
    ]


def _validate_spec(spec: InternalSpec, rules: MetadataRules, options: Options) -> list[FieldError]:
    errors = _validate_group(spec.group) + _validate_scope(spec.scope)
    schema = options.schema if spec.preserve_unknown_fields else replace(options.schema, structural=True)
    errors += _validate_schemas_present(spec, options)
    has_defaults = any(map(has_default, spec.open_api_schemas()))
    if has_defaults or any(map(has_extension, spec.open_api_schemas())):
        schema = replace(schema, structural=True)
    if has_defaults and spec.preserve_unknown_fields:
        why = "must be false in order to use defaults in the schema"
        errors.append(field.invalid(_SPEC.child("preserveUnknownFields"), True, why))
    options = replace(options, schema=schema)
    for index, version in enumerate(spec.versions):
        where = _SPEC.child("versions").index(index)
        if problems := check_dns1035_label(version.name):
            errors.append(field.invalid(where.child("name"), version.name, ",".join(problems)))
        errors += _validate_version(version, where, spec.subresources_of(version), rules, options)
    errors += _validate_version_list(spec)
    for name in ("plural", "singular", "kind", "listKind"):
        if not spec.names.get(name):
            errors.append(field.required(_SPEC.child("names", name)))
    errors += _validate_names(spec.names, _SPEC.child("names"))
    errors += _validate_top(spec, rules, options)
    strategy = (spec.conversion or {}).get("strategy", "")
    if spec.conversion is not None and strategy != "None" and spec.preserve_unknown_fields:
        why = "must be None if spec.preserveUnknownFields is true"
        errors.append(field.invalid(_SPEC.child("conversion", "strategy"), strategy, why))
    return errors + validate_conversion(
        spec.conversion,
        _SPEC.child("conversion"),
        known_version=options.known_review_version,
        allow_invalid_ca_bundle=options.allow_invalid_ca_bundle,
    )


def _validate_group(group: str) -> list[FieldError]:
    path = _SPEC.child("group")
    if not group:
        return [field.required(path)]
    if problems := check_dns1123_subdomain(group):
        return [field.invalid(path, group, ",".join(problems))]
    if "." not in group:
        return [field.invalid(path, group, "should be a domain with at least one dot")]
    return []


def _validate_scope(scope: str) -> list[FieldError]:
    path = _SPEC.child("scope")
    if not scope:
        return [field.required(path)]
    return [] if scope in _SCOPES else [field.not_supported(path, scope, _SCOPES)]


def _validate_schemas_present(spec: InternalSpec, options: Options) -> list[FieldError]:
    if (spec.validation or {}).get("openAPIV3Schema") is not None:
        return []
    errors: list[FieldError] = []
    for index, version in enumerate(spec.versions):
        where = _SPEC.child("versions").index(index).child("schema", "openAPIV3Schema")
        if (version.schema or {}).get("openAPIV3Schema") is not None:
            continue
        if options.open_api_schema:
            errors.append(field.required(where))
        elif not spec.preserve_unknown_fields and version.served:
            errors.append(field.required(where, "because otherwise all fields are pruned"))
    return errors


def _validate_version(
    version: InternalVersion, path: FieldPath, subresources: Object | None, rules: MetadataRules, options: Options
) -> list[FieldError]:
    errors: list[FieldError] = []
    for why in _check_deprecation_warning(version):
        # What Go has a pointer to is shown as JSON, not as a quoted string.
        shown = GoStruct(marshal_json(version.deprecation_warning))
        errors.append(field.invalid(path.child("deprecationWarning"), shown, why))
    schema = (version.schema or {}).get("openAPIV3Schema")
    if schema is not None:
        has_status = (subresources or {}).get("status") is not None
        where = path.child("schema", "openAPIV3Schema")
        errors += validate_schema(schema, where, rules, options.schema, has_status=has_status, version=version.name)
    errors += validate_subresources(version.subresources, path.child("subresources"))
    errors += validate_columns(version.columns, path.child("additionalPrinterColumns"))
    if version.selectable_fields:
        where = path.child("selectableFields")
        if schema is None:
            why = "may only be set when `version.schema.openAPIV3Schema` is not included"
            errors.append(field.invalid(where, "", why))
        else:
            allows_many = version.name in options.too_many_selectable_fields
            errors += validate_selectable_fields(version.selectable_fields, schema, where, allows_many=allows_many)
    return errors


def _check_deprecation_warning(version: InternalVersion) -> list[str]:
    warning = version.deprecation_warning
    if warning is None:
        return []
    if not version.deprecated:
        return ["can only be set for deprecated versions"]
    whys = []
    raw = warning.encode(errors="replace")
    if len(raw) > _MAX_WARNING:
        whys.append("must be <= 256 characters long")
    if not warning:
        whys.append("must not be an empty string")
    for index, char in enumerate(warning):
        if not char.isprintable():
            at = len(warning[:index].encode(errors="replace"))
            rule = "must only contain printable UTF-8 characters; non-printable character found at index"
            whys.append(f"{rule} {at}")
            break
    return whys


def _validate_version_list(spec: InternalSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    path = _SPEC.child("versions")
    names = [version.name for version in spec.versions]
    if len(set(names)) < len(names):
        errors.append(field.invalid(path, show_versions(spec), "must contain unique version names"))
    if sum(version.storage for version in spec.versions) != 1:
        why = "must have exactly one version marked as storage version"
        errors.append(field.invalid(path, show_versions(spec), why))
    if spec.version and (problems := check_dns1035_label(spec.version)):
        errors.append(field.invalid(_SPEC.child("version"), spec.version, ",".join(problems)))
    return errors


def _validate_top(spec: InternalSpec, rules: MetadataRules, options: Options) -> list[FieldError]:
    """What all versions have in common."""
    errors: list[FieldError] = []
    schema = (spec.validation or {}).get("openAPIV3Schema")
    all_subresources = [spec.subresources, *(version.subresources for version in spec.versions)]
    if schema is not None:
        has_status = any((each or {}).get("status") is not None for each in all_subresources)
        where = _SPEC.child("validation", "openAPIV3Schema")
        errors += validate_schema(schema, where, rules, options.schema, has_status=has_status, version=spec.version)
    errors += validate_subresources(spec.subresources, _SPEC.child("subresources"))
    errors += validate_columns(spec.columns, _SPEC.child("additionalPrinterColumns"))
    if spec.selectable_fields:
        where = _SPEC.child("selectableFields")
        if schema is None:
            errors.append(field.invalid(where, "", "may only be set when validations.schema is included"))
        else:
            allows_many = "" in options.too_many_selectable_fields
            errors += validate_selectable_fields(spec.selectable_fields, schema, where, allows_many=allows_many)
    return errors


def _validate_names(names: Object, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("plural", "singular", "kind", "listKind"):
        value = names.get(name) or ""
        is_kind = name in ("kind", "listKind")
        if value and (problems := check_dns1035_label(value.lower() if is_kind else value)):
            why = "may have mixed case, but should otherwise match: " if is_kind else ""
            errors.append(field.invalid(path.child(name), value, why + ",".join(problems)))
    errors += _validate_labels(names.get("shortNames"), path.child("shortNames"))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        why = "kind and listKind may not be the same"
        errors.append(field.invalid(path.child("listKind"), names["listKind"], why))
    return errors + _validate_labels(names.get("categories"), path.child("categories"))


def _validate_labels(labels: list[str] | None, path: FieldPath) -> list[FieldError]:
    found = ((index, label, check_dns1035_label(label)) for index, label in enumerate(labels or ()))
    return [field.invalid(path.index(index), label, ",".join(why)) for index, label, why in found if why]


def _validate_stored_versions(stored: list[str] | None, spec: InternalSpec) -> list[FieldError]:
    path = _STATUS.child("storedVersions")
    if not stored:
        return [field.invalid(path, stored, "must have at least one stored version")]
    errors: list[FieldError] = []
    missing = {name: index for index, name in enumerate(stored)}
    for version in spec.versions:
        # Of two versions of one name the second is missing, even if both are the storage version.
        if missing.pop(version.name, None) is None and version.storage:
            errors.append(field.invalid(path, stored, f"must have the storage version {version.name}"))
    for name, index in missing.items():
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        errors.append(field.invalid(path.index(index), name, why))
    return errors


def _validate_approval(crd: Object, old: Object | None, group: str) -> list[FieldError]:
    if not is_protected_group(group):
        return []
    state, why = find_approval(crd)
    if old is not None and find_approval(old)[0] is state:
        return []
    path = FieldPath("metadata").child("annotations").key(API_APPROVED_ANNOTATION)
    if state is Approval.MISSING:
        return [field.required(path, why)]
    if state is Approval.INVALID:
        return [field.invalid(path, crd["metadata"]["annotations"][API_APPROVED_ANNOTATION], why)]
    return []
