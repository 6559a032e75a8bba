"""Conditions in a status (metav1.Condition), as meta/v1/validation checks them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kcp.meta.field import duplicate, invalid, not_supported, required, too_long
from kcp.meta.validation import check_qualified_name
from kcp.registry.gostruct import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath

_STATUSES: Final = ("False", "True", "Unknown")
_MAX_REASON: Final = 1 << 10
_MAX_MESSAGE: Final = 32 << 10
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_PATTERN: Final = re.compile(_REASON)
_REASON_RULE: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)


def validate_conditions(conditions: Sequence[Object], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        condition_type = condition.get("type", "")
        if condition_type in seen:
            errors.append(duplicate(path.index(position).child("type"), condition_type))
        seen.add(condition_type)
        errors += _validate_condition(condition, path.index(position))
    return errors


def _validate_condition(condition: Object, path: FieldPath) -> list[FieldError]:
    condition_type, status = condition.get("type", ""), condition.get("status", "")
    errors = [invalid(path.child("type"), condition_type, why) for why in check_qualified_name(condition_type)]
    if status not in _STATUSES:
        errors.append(not_supported(path.child("status"), named(status), _STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        why = "must be greater than or equal to zero"
        errors.append(invalid(path.child("observedGeneration"), generation, why))
    if condition.get("lastTransitionTime") is None:
        errors.append(required(path.child("lastTransitionTime")))
    errors += _validate_reason(condition.get("reason", ""), path.child("reason"))
    if len(condition.get("message", "").encode("utf-8", "surrogatepass")) > _MAX_MESSAGE:
        errors.append(too_long(path.child("message"), _MAX_MESSAGE))
    return errors


def _validate_reason(reason: str, path: FieldPath) -> list[FieldError]:
    if not reason:
        return [required(path)]
    errors = [] if _REASON_PATTERN.fullmatch(reason) else [invalid(path, reason, _REASON_RULE)]
    if len(reason.encode("utf-8", "surrogatepass")) > _MAX_REASON:
        errors.append(too_long(path, _MAX_REASON))
    return errors
