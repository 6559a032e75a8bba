"""The types that variables, fields and functions of an expression may have.

A simple type is its name; the rest are small values:

    INT                                  int
    ListType(STRING)                     list(string)
    MapType(INT)                         map(string, int)         keys are always strings, as in JSON
    ObjectType("k.Request", {"n": INT})  k.Request, of which only the field `n` may be selected
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BOOL: Final = "bool"
INT: Final = "int"
UINT: Final = "uint"
DOUBLE: Final = "double"
STRING: Final = "string"
BYTES: Final = "bytes"
TIMESTAMP: Final = "timestamp"
DURATION: Final = "duration"
NULL: Final = "null"
DYN: Final = "dyn"

# Types of the Kubernetes libraries, by the names that Kubernetes gives them.
QUANTITY: Final = "kubernetes.Quantity"
URL: Final = "kubernetes.URL"
SEMVER: Final = "kubernetes.Semver"
FORMAT: Final = "kubernetes.NamedFormat"
IP: Final = "net.IP"
CIDR: Final = "net.CIDR"
AUTHORIZER: Final = "kubernetes.authorization.Authorizer"
PATH_CHECK: Final = "kubernetes.authorization.PathCheck"
GROUP_CHECK: Final = "kubernetes.authorization.GroupCheck"
RESOURCE_CHECK: Final = "kubernetes.authorization.ResourceCheck"
DECISION: Final = "kubernetes.authorization.Decision"

# Objects with more fields than this are not checked: the engine cannot declare them.
MAX_FIELDS: Final = 2000

LIBRARY_TYPES: Final = (
    QUANTITY,
    URL,
    SEMVER,
    FORMAT,
    IP,
    CIDR,
    AUTHORIZER,
    PATH_CHECK,
    GROUP_CHECK,
    RESOURCE_CHECK,
    DECISION,
)


@dataclass(frozen=True, slots=True)
class ListType:
    element: CelType


@dataclass(frozen=True, slots=True)
class MapType:
    value: CelType


@dataclass(frozen=True, slots=True)
class OptionalType:
    """Only functions give these."""

    element: CelType


@dataclass(frozen=True, slots=True)
class ObjectType:
    """Selecting any other field than these is an error of compilation. Two with one name must be the same."""

    name: str
    fields: Mapping[str, CelType] = field(hash=False)


CelType = str | ListType | MapType | OptionalType | ObjectType


def signature(cel_type: CelType, aliases: Mapping[str, str] = MappingProxyType({})) -> str:
    """How the engine spells the type; `aliases` are its names for object types."""
    if isinstance(cel_type, str):
        return cel_type
    if isinstance(cel_type, ListType):
        return f"list<{signature(cel_type.element, aliases)}>"
    if isinstance(cel_type, MapType):
        return f"map<string,{signature(cel_type.value, aliases)}>"
    if isinstance(cel_type, OptionalType):
        return f"optional_type<{signature(cel_type.element, aliases)}>"
    return aliases.get(cel_type.name, DYN)


def objects_in(cel_type: CelType) -> Iterator[ObjectType]:
    """Every object type that this one mentions, itself included."""
    if isinstance(cel_type, ListType | OptionalType):
        yield from objects_in(cel_type.element)
    elif isinstance(cel_type, MapType):
        yield from objects_in(cel_type.value)
    elif isinstance(cel_type, ObjectType) and len(cel_type.fields) <= MAX_FIELDS:
        yield cel_type
        for child in cel_type.fields.values():
            yield from objects_in(child)
