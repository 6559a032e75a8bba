"""Field errors: what is wrong with which field of an object, in Kubernetes' words.

Must not validate anything; validators make these, `kcp.meta.errors.Invalid` sends them. The sentences and the reasons
are wire format (apimachinery/pkg/util/validation/field).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kcp.meta.gotext import format_float, marshal_json, quote


class FieldErrorType(StrEnum):
    """The `reason` of a cause in a Status."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    TYPE_INVALID = "FieldValueTypeInvalid"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    NOT_FOUND = "FieldValueNotFound"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    INTERNAL = "InternalError"


_TITLES: Final = {
    FieldErrorType.REQUIRED: "Required value",
    FieldErrorType.INVALID: "Invalid value",
    FieldErrorType.TYPE_INVALID: "Invalid value",
    FieldErrorType.DUPLICATE: "Duplicate value",
    FieldErrorType.NOT_SUPPORTED: "Unsupported value",
    FieldErrorType.NOT_FOUND: "Not found",
    FieldErrorType.FORBIDDEN: "Forbidden",
    FieldErrorType.TOO_LONG: "Too long",
    FieldErrorType.TOO_MANY: "Too many",
    FieldErrorType.INTERNAL: "Internal error",
}


class _OmitValue:
    """Type of OMIT_VALUE; None would not do, as null is a value that can be wrong."""

    def __repr__(self) -> str:
        return "OMIT_VALUE"


OMIT_VALUE: Final = _OmitValue()


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Where a field is: `FieldPath("spec").child("ports").index(0).child("name")` is `spec.ports[0].name`.

    `FieldPath()` is the object itself; Kubernetes prints it as `<nil>`.
    """

    text: str = ""

    def child(self, *names: str) -> "FieldPath":
        return FieldPath(".".join((self.text, *names) if self.text else names))

    def index(self, position: int) -> "FieldPath":
        return FieldPath(f"{self.text}[{position}]")

    def key(self, key: str) -> "FieldPath":
        """An entry of a map, such as `metadata.labels[a.b/c]`."""
        return FieldPath(f"{self.text}[{key}]")

    def __str__(self) -> str:
        return self.text or "<nil>"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One complaint. `str()` of it is `<field>: <body>`; Status causes carry the two apart."""

    type: FieldErrorType
    field: str
    bad_value: Any
    detail: str

    @property
    def body(self) -> str:
        """The complaint without the field."""
        shown = "" if self.bad_value is OMIT_VALUE else f": {_show(self.bad_value)}"
        return _TITLES[self.type] + shown + (f": {self.detail}" if self.detail else "")

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def required(path: FieldPath, detail: str = "") -> FieldError:
    return FieldError(FieldErrorType.REQUIRED, str(path), OMIT_VALUE, detail)


def invalid(path: FieldPath, bad_value: Any, detail: str) -> FieldError:  # noqa: ANN401 - any JSON value, as below
    return FieldError(FieldErrorType.INVALID, str(path), bad_value, detail)


def type_invalid(path: FieldPath, bad_value: Any, detail: str) -> FieldError:  # noqa: ANN401
    """The value is of another type than the schema asks for."""
    return FieldError(FieldErrorType.TYPE_INVALID, str(path), bad_value, detail)


def duplicate(path: FieldPath, bad_value: Any) -> FieldError:  # noqa: ANN401
    return FieldError(FieldErrorType.DUPLICATE, str(path), bad_value, "")


def not_supported(path: FieldPath, bad_value: Any, supported: Iterable[str]) -> FieldError:  # noqa: ANN401
    """The value is none of an enumeration's; the supported ones are listed in the order given."""
    listed = ", ".join(map(quote, supported))
    return FieldError(
        FieldErrorType.NOT_SUPPORTED, str(path), bad_value, f"supported values: {listed}" if listed else ""
    )


def not_found(path: FieldPath, bad_value: Any) -> FieldError:  # noqa: ANN401
    """The value names something that does not exist."""
    return FieldError(FieldErrorType.NOT_FOUND, str(path), bad_value, "")


def forbidden(path: FieldPath, detail: str) -> FieldError:
    """The field may not be set, or not changed, under these conditions."""
    return FieldError(FieldErrorType.FORBIDDEN, str(path), OMIT_VALUE, detail)


def too_long(path: FieldPath, max_bytes: int) -> FieldError:
    """The value itself is left out of the message, being too long. A negative maximum is not shown."""
    unit = "byte" if max_bytes == 1 else "bytes"
    detail = f"may not be more than {max_bytes} {unit}" if max_bytes >= 0 else "value is too long"
    return FieldError(FieldErrorType.TOO_LONG, str(path), OMIT_VALUE, detail)


def too_many(path: FieldPath, actual: int, max_items: int) -> FieldError:
    """A negative number of items, actual or maximal, is not shown."""
    unit = "item" if max_items == 1 else "items"
    detail = f"must have at most {max_items} {unit}" if max_items >= 0 else "has too many items"
    return FieldError(FieldErrorType.TOO_MANY, str(path), actual if actual >= 0 else OMIT_VALUE, detail)


def internal(path: FieldPath, error: Exception) -> FieldError:
    """The check itself failed, through no fault of the user."""
    return FieldError(FieldErrorType.INTERNAL, str(path), OMIT_VALUE, str(error))


def aggregate(errors: Iterable[FieldError]) -> str:
    """All complaints in one line: repeated ones once, in brackets if there are several, "" if there are none."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _show(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float):
        return format_float(value)
    return marshal_json(value)
