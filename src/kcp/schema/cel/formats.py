"""Named formats in expressions: `format.dns1123Label().validate(self.name)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta import validation
from kcp.schema.cel import tree
from kcp.schema.cel.descriptors import parts_of, value_of
from kcp.schema.cel.functions import Overload, function, method
from kcp.schema.cel.types import FORMAT, STRING, ListType, OptionalType
from kcp.schema.cel.urls import explain, is_url
from kcp.schema.structural.formats import FORMATS as STRUCTURAL_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.schema.cel.descriptors import Value
    from kcp.schema.cel.functions import Function

    Check = Callable[[str], list[str]]


def _as_prefix(check: Check) -> Check:
    """The rule for a generateName: a dash at its end will be followed by more."""
    return lambda text: check(text[:-1] + "a" if text.endswith("-") else text)


def _named(name: str, complaint: str) -> Check:
    is_valid = STRUCTURAL_FORMATS[name]
    return lambda text: [] if is_valid(text) else [complaint]


FORMATS: Final[dict[str, Check]] = {
    "dns1123Label": validation.check_dns1123_label,
    "dns1123Subdomain": validation.check_dns1123_subdomain,
    "dns1035Label": validation.check_dns1035_label,
    "qualifiedName": validation.check_qualified_name,
    "dns1123LabelPrefix": _as_prefix(validation.check_dns1123_label),
    "dns1123SubdomainPrefix": _as_prefix(validation.check_dns1123_subdomain),
    "dns1035LabelPrefix": _as_prefix(validation.check_dns1035_label),
    "labelValue": validation.check_label_value,
    "uri": lambda text: [] if is_url(text) else [explain(text)],
    "uuid": _named("uuid", "does not match the UUID format"),
    "byte": _named("byte", "invalid base64"),
    "date": _named("date", "invalid date"),
    "datetime": _named("datetime", "invalid datetime"),
}


def validate(value: Value, text: str) -> list[str]:
    """What is wrong; nothing at all becomes an empty optional."""
    return FORMATS[parts_of(value)[0]](text)


def named(name: str) -> Value:
    """The format of that name; a value without parts becomes an empty optional."""
    return value_of(FORMAT, name) if name in FORMATS else value_of(FORMAT)


def _constant(name: str) -> Function:
    return function(f"format.{name}", Overload(f"format.{name}", (), FORMAT, lambda: value_of(FORMAT, name)))


FUNCTIONS: Final[tuple[Function, ...]] = (
    *map(_constant, FORMATS),
    method("validate", Overload("format-validate", (FORMAT, STRING), OptionalType(ListType(STRING)), validate)),
    function("format.named", Overload("format-named", (STRING,), OptionalType(FORMAT), named)),
)
# What runs in place of the two that give optionals.
RUNTIME_FUNCTIONS: Final[tuple[Function, ...]] = (
    method(tree.MAYBE["format-validate"], Overload("@format-validate", (FORMAT, STRING), ListType(STRING), validate)),
    function(tree.MAYBE["format-named"], Overload("@format-named", (STRING,), FORMAT, named)),
)
