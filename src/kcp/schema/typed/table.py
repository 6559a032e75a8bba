"""Go's types as data: what the decoder needs to know of a struct, with embedded structs unfolded.

A table is written as lists, in declaration order: `[json name, protobuf number, type, flags]`, where flags are `e` for
omitempty, `z` for omitzero and `i` for an embedded struct (its first item is then the Go name). Types are spelled as in
Go, with names as OpenAPI has them: `map[string][]byte`, `*int64`, `[]io.k8s.api.rbac.v1.PolicyRule`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_APIEXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

# Types that read and write their JSON by themselves, and what they are to the decoder.
OPAQUE: Final = {
    _META + "Time": "time",
    _META + "MicroTime": "micro time",
    _META + "FieldsV1": "raw",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    _APIEXTENSIONS + "JSON": "raw",
    _APIEXTENSIONS + "JSONSchemaPropsOrArray": "schema or array",
    _APIEXTENSIONS + "JSONSchemaPropsOrBool": "schema or bool",
    _APIEXTENSIONS + "JSONSchemaPropsOrStringArray": "schema or strings",
}
JSON_SCHEMA_PROPS: Final = _APIEXTENSIONS + "JSONSchemaProps"

_INTEGER_BITS: Final = {"int32": 32, "int64": 64, "int": 64}


@dataclass(frozen=True, slots=True)
class GoType:
    """One type. `kind` is string, bool, int, float, bytes, slice, map, pointer, struct, or a value of OPAQUE."""

    kind: str
    go_name: str  # as Go's errors print it: `v1.ResourceList`, `[]string`
    element: GoType | None = None  # of a pointer, slice or map
    struct: str = ""  # name in the table
    bits: int = 0  # of an int


@dataclass(frozen=True, slots=True)
class Field:
    """One JSON field of a struct."""

    name: str
    number: int
    type: GoType
    omitempty: bool
    omitzero: bool
    embedded: tuple[str, ...] = ()  # Go names of the embedded structs it comes from, outermost first


class TypeTable:
    """All structs and named types, resolved when asked for."""

    def __init__(self, structs: Mapping[str, Sequence[Sequence[Any]]], named: Mapping[str, str]) -> None:
        self._structs = structs
        self._named = named
        self._types: dict[str, GoType] = {}
        self._fields: dict[str, tuple[Field, ...]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._structs

    def fields(self, struct: str) -> tuple[Field, ...]:
        """The JSON fields of a struct in the order Go writes them. Raises KeyError."""
        found = self._fields.get(struct)
        if found is None:
            found = self._fields[struct] = tuple(self._unfold(struct))
        return found

    def type_of(self, spelling: str) -> GoType:
        """The type that is spelled so. Raises KeyError for a name that the table does not have."""
        found = self._types.get(spelling)
        if found is None:
            found = self._types[spelling] = self._parse(spelling)
        return found

    def _unfold(self, struct: str) -> list[Field]:
        unfolded: list[Field] = []
        for name, number, spelling, *flags in self._structs[struct]:
            marks = flags[0] if flags else ""
            if "i" in marks:
                inner = self.fields(spelling)
                unfolded += [replace(field, embedded=(name, *field.embedded)) for field in inner]
            else:
                unfolded.append(Field(name, number, self.type_of(spelling), "e" in marks, "z" in marks))
        return unfolded

    def _parse(self, spelling: str) -> GoType:
        if spelling in ("string", "bool"):
            return GoType(spelling, spelling)
        if spelling in _INTEGER_BITS:
            return GoType("int", spelling, bits=_INTEGER_BITS[spelling])
        if spelling == "float64":
            return GoType("float", spelling)
        if spelling == "[]byte":
            return GoType("bytes", "[]uint8")
        if spelling.startswith("*"):
            element = self.type_of(spelling[1:])
            return GoType("pointer", "*" + element.go_name, element)
        if spelling.startswith("[]"):
            element = self.type_of(spelling[2:])
            return GoType("slice", "[]" + element.go_name, element)
        if spelling.startswith("map["):
            key, _, value = spelling[4:].partition("]")
            element = self.type_of(value)
            return GoType("map", f"map[{self.type_of(key).go_name}]{element.go_name}", element)
        return self._parse_name(spelling)

    def _parse_name(self, name: str) -> GoType:
        go_name = ".".join(name.split(".")[-2:])
        if name in OPAQUE:
            return GoType(OPAQUE[name], go_name, struct=name)
        if name in self._structs:
            return GoType("struct", go_name, struct=name)
        return replace(self.type_of(self._named[name]), go_name=go_name)
