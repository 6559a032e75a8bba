"""What validating one value found, and how it becomes field errors.

`matches` counts the checks that a value passed. Where none of several schemas fits, the errors shown are those of the
one that came closest, so the count is part of the wire behaviour (kube-openapi/pkg/validation/validate/result.go).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from kcp.meta import field
from kcp.meta.gotext import marshal_json

if TYPE_CHECKING:
    from kcp.meta.field import FieldError, FieldPath


class Failed(Enum):
    """Which check; those that share a field error share a member."""

    TYPE = auto()
    REQUIRED = auto()
    ENUM = auto()
    TOO_LONG = auto()
    TOO_MANY = auto()
    VALUE = auto()
    COMPOSITE = auto()  # allOf, anyOf, oneOf, not: about the whole, at no field


class Failure(NamedTuple):
    failed: Failed
    name: str  # the path within the object
    message: str
    value: Any = None
    limit: Any = None  # the maximum that was exceeded, or the values of an enumeration


class Result:
    """Errors in the order found, each message once."""

    __slots__ = ("errors", "matches")

    def __init__(self, matches: int = 0, *failures: Failure) -> None:
        self.errors = list(failures)
        self.matches = matches

    def add(self, failure: Failure) -> None:
        if all(failure.message != known.message for known in self.errors):
            self.errors.append(failure)

    def merge(self, other: Result) -> None:
        for failure in other.errors:
            self.add(failure)
        self.matches += other.matches


def make_field_errors(failures: list[Failure], path: FieldPath) -> list[FieldError]:
    """The errors as Kubernetes shows them, under the path of the validated value."""
    return [_make_field_error(failure, path) for failure in failures]


def _make_field_error(failure: Failure, path: FieldPath) -> FieldError:
    if failure.failed is Failed.COMPOSITE:
        return field.invalid(path, "", failure.message)
    name = failure.name.removeprefix(".")
    where = path.child(name) if name else path
    match failure.failed:
        case Failed.REQUIRED:
            return field.required(where)
        case Failed.ENUM:
            supported = [value if isinstance(value, str) else marshal_json(value) for value in failure.limit]
            return field.not_supported(where, failure.value, supported)
        case Failed.TOO_LONG:
            return field.too_long(where, failure.limit)
        case Failed.TOO_MANY:
            return field.too_many(where, failure.value, failure.limit)
        case Failed.TYPE:
            return field.type_invalid(where, failure.value, failure.message)
        case _:
            return field.invalid(where, "" if failure.value is None else failure.value, failure.message)
