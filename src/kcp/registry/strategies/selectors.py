"""Label and field selectors inside objects, checked field by field (meta/v1/validation)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.meta.field import forbidden, invalid, required
from kcp.meta.validation import check_label_value, check_qualified_name
from kcp.registry.gostruct import named
from kcp.registry.metadata import validate_labels

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath


def validate_label_selector(
    selector: Object | None, path: FieldPath, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    """What is wrong with a LabelSelector. Values stored before they were checked may be allowed to stay."""
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels") or {}, path.child("matchLabels"))
    for position, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = path.child("matchExpressions").index(position)
        errors += validate_label_requirement(requirement, where, allow_invalid_values=allow_invalid_values)
    return errors


def validate_label_requirement(
    requirement: Object,
    path: FieldPath,
    *,
    allow_invalid_values: bool = False,
    allow_unknown_operator: bool = False,
) -> list[FieldError]:
    errors = _validate_operator(requirement, path, allow_unknown=allow_unknown_operator)
    key = requirement.get("key", "")
    errors += [invalid(path.child("key"), key, why) for why in check_qualified_name(key)]
    if not allow_invalid_values:
        for position, value in enumerate(requirement.get("values") or ()):
            where = path.child("values").index(position)
            errors += [invalid(where, value, why) for why in check_label_value(value)]
    return errors


def validate_field_requirement(requirement: Object, path: FieldPath) -> list[FieldError]:
    """A requirement of a field selector in an access review; unknown operators are for the authorizer to judge."""
    errors = [] if requirement.get("key") else [required(path.child("key"), "must be specified")]
    return errors + _validate_operator(requirement, path, allow_unknown=True)


def _validate_operator(requirement: Object, path: FieldPath, *, allow_unknown: bool) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator in ("In", "NotIn"):
        if values:
            return []
        return [required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist"):
        if not values:
            return []
        return [forbidden(path.child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    return [] if allow_unknown else [invalid(path.child("operator"), named(operator), "not a valid selector operator")]
