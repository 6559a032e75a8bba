"""Checks of what is only asked and never stored: access reviews, token reviews and token requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta.field import FieldPath, invalid, required
from kcp.registry.gostruct import GoStruct
from kcp.registry.metadata import show_owner
from kcp.registry.strategies.selectors import validate_field_requirement, validate_label_requirement

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError

DEFAULT_TOKEN_SECONDS: Final = 3600
_SPEC: Final = FieldPath("spec")
_NON_RESOURCE: Final = (("path", "Path", ""), ("verb", "Verb", ""))
_MANAGED_FIELDS: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")
_METADATA_FIELDS: Final = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


def default_token_request(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = DEFAULT_TOKEN_SECONDS


def validate_subject_access_review(obj: Object) -> list[FieldError]:
    return _validate_subject_spec(obj.get("spec", {})) + _validate_metadata(obj, "must be empty")


def validate_self_subject_access_review(obj: Object) -> list[FieldError]:
    spec = obj.get("spec", {})
    return [*_validate_choice(spec), *_validate_attributes(spec), *_validate_metadata(obj, "must be empty")]


def validate_local_subject_access_review(obj: Object) -> list[FieldError]:
    spec = obj.get("spec", {})
    errors = _validate_subject_spec(spec)
    errors += _validate_metadata(obj, "must be empty except for namespace", "namespace")
    attributes, non_resource = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if attributes is not None:
        namespace = attributes.get("namespace", "")
        if namespace != (obj.get("metadata") or {}).get("namespace", ""):
            path = _SPEC.child("resourceAttributes.namespace")
            errors.append(invalid(path, namespace, "must match metadata.namespace"))
    if non_resource is not None:
        shown = GoStruct.of(non_resource, _NON_RESOURCE)
        errors.append(invalid(_SPEC.child("nonResourceAttributes"), shown, "disallowed on this kind of request"))
    return errors


def _validate_subject_spec(spec: Object) -> list[FieldError]:
    errors = _validate_choice(spec)
    if not spec.get("user") and not spec.get("groups"):
        errors.append(invalid(_SPEC.child("user"), "", "at least one of user or group must be specified"))
    return errors + _validate_attributes(spec)


def _validate_choice(spec: Object) -> list[FieldError]:
    attributes, non_resource = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if attributes is not None and non_resource is not None:
        shown = GoStruct.of(non_resource, _NON_RESOURCE)
        why = "cannot be specified in combination with resourceAttributes"
        return [invalid(_SPEC.child("nonResourceAttributes"), shown, why)]
    if attributes is None and non_resource is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid(_SPEC.child("resourceAttributes"), None, why)]
    return []


def _validate_attributes(spec: Object) -> list[FieldError]:
    attributes = spec.get("resourceAttributes") or {}
    path = _SPEC.child("resourceAttributes")
    errors: list[FieldError] = []
    for field in ("fieldSelector", "labelSelector"):
        selector, where = attributes.get(field), path.child(field)
        if selector is None:
            continue
        requirements, raw = selector.get("requirements") or (), selector.get("rawSelector", "")
        if raw and requirements:
            why = "may not specified at the same time as requirements"
            errors.append(invalid(where.child("rawSelector"), raw, why))
        if not raw and not requirements:
            why = f"when {where} is specified, requirements or rawSelector is required"
            errors.append(required(where.child("requirements"), why))
        for position, requirement in enumerate(requirements):
            each = where.child("requirements").index(position)
            if field == "fieldSelector":
                errors += validate_field_requirement(requirement, each)
            else:
                errors += validate_label_requirement(requirement, each, allow_unknown_operator=True)
    return errors


def _validate_metadata(obj: Object, why: str, *allowed: str) -> list[FieldError]:
    metadata = obj.get("metadata") or {}
    if all(metadata[field] in (None, "", [], {}) for field in metadata.keys() - {*allowed, "managedFields"}):
        return []
    shown = {**metadata}
    if owners := metadata.get("ownerReferences"):
        shown["ownerReferences"] = list(map(show_owner, owners))
    if entries := metadata.get("managedFields"):
        shown["managedFields"] = [GoStruct.tagged(entry, _MANAGED_FIELDS) for entry in entries]
    return [invalid(FieldPath("metadata"), GoStruct.tagged(shown, _METADATA_FIELDS), why)]
