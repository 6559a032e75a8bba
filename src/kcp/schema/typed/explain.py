"""The slow road: walk an object as Go's decoder does, key by key, and find its words for what is wrong.

Go goes on after most errors and reports the first it saw, naming the innermost struct and the whole path to it; an
error from a type that decodes itself ends the walk and takes precedence. Unknown fields count only if nothing else is
wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.meta import gotext
from kcp.meta.clock import parse_micro_time, parse_time
from kcp.schema.quantity import QuantityError
from kcp.schema.quantity import parse as parse_quantity
from kcp.schema.typed.base64 import find_corrupt_byte
from kcp.schema.typed.table import JSON_SCHEMA_PROPS, GoType, TypeTable

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_STRICT_ERRORS: Final = 100
# Each costs a few stack frames. What is wrong deeper down is left to the caller, who knows that something is.
_MAX_NESTED_WALKS: Final = 100
_STRING: Final = GoType("string", "string")
_STRINGS: Final = GoType("slice", "[]string", _STRING)
_BYTE: Final = GoType("int", "uint8", bits=8)


class UnmarshalError(ValueError):
    """The object does not fit the kind; the text is what Go's decoder prints."""


class _TypeMismatch(Exception):
    """What Go calls an UnmarshalTypeError; its context may still be to come."""

    def __init__(self, value: str, go_name: str, struct: str = "", field: str = "") -> None:
        super().__init__(value, go_name)
        self.value, self.go_name, self.struct, self.field = value, go_name, struct, field

    def __str__(self) -> str:
        where = f"struct field {self.struct}.{self.field}" if self.struct or self.field else "value"
        return f"json: cannot unmarshal {self.value} into Go {where} of type {self.go_name}"


def explain(table: TypeTable, struct: str, obj: Any) -> list[str]:  # noqa: ANN401
    """What strict decoding says of the object's unknown fields. Raises UnmarshalError with the first real error."""
    walk = _Walk(table)
    try:
        walk.run(table.type_of(struct), obj)
    except _TypeMismatch as error:
        raise UnmarshalError(str(error)) from None
    return walk.unknown


class _Walk:
    """One decoding. `_stack` is the path for type errors, `path` arguments are the paths for strict errors."""

    def __init__(self, table: TypeTable, depth: int = 0) -> None:
        self._table = table
        self._depth = depth
        self._struct = ""
        self._stack: tuple[str, ...] = ()
        self._saved: _TypeMismatch | UnmarshalError | None = None
        self.unknown: list[str] = []

    def run(self, go_type: GoType, value: Any) -> None:  # noqa: ANN401
        try:
            self._value(go_type, value, "")
        except _TypeMismatch as error:
            raise self._with_context(error) from None
        if self._saved is not None:
            raise self._saved

    def _value(self, go_type: GoType, value: Any, path: str) -> None:  # noqa: ANN401
        if go_type.kind == "pointer":
            if value is None:
                return
            assert go_type.element is not None
            go_type = go_type.element
        opaque = _OPAQUE.get(go_type.kind)
        if opaque is not None:
            opaque(self, value)
        elif isinstance(value, dict):
            if go_type.kind == "struct":
                self._struct_fields(go_type, value, path)
            elif go_type.kind == "map" and go_type.element is not None:
                for key, item in value.items():
                    self._value(go_type.element, item, _join(path, key))
            else:
                self._save(_TypeMismatch("object", go_type.go_name))
        elif isinstance(value, list):
            if go_type.kind in ("slice", "bytes"):
                for index, item in enumerate(value):
                    self._value(go_type.element or _BYTE, item, f"{path}[{index}]")
            else:
                self._save(_TypeMismatch("array", go_type.go_name))
        elif value is not None:
            self._literal(go_type, value)

    def _struct_fields(self, go_type: GoType, value: dict[str, Any], path: str) -> None:
        fields = {field.name: field for field in self._table.fields(go_type.struct)}
        outer = self._struct, self._stack
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                self._note_unknown(_join(path, key))
                continue
            self._struct = go_type.struct.rpartition(".")[2]
            self._stack = (*outer[1], *field.embedded, field.name)
            self._value(field.type, item, _join(path, key))
            self._struct, self._stack = outer

    def _literal(self, go_type: GoType, value: Any) -> None:  # noqa: ANN401
        kind = go_type.kind
        if kind == "bytes" and isinstance(value, str):
            corrupt = find_corrupt_byte(value)
            if corrupt is not None:
                self._save(UnmarshalError(f"illegal base64 data at input byte {corrupt}"))
        elif isinstance(value, bool | str) or kind not in ("int", "float"):
            if not isinstance(value, {"string": str, "bool": bool}.get(kind, ())):
                self._save(_TypeMismatch(_describe(value), go_type.go_name))
        elif kind == "int" and not _fits(value, go_type):
            self._save(_TypeMismatch(f"number {number_text(value)}", go_type.go_name))

    def time(self, value: Any, parse: Callable[[str], object]) -> None:  # noqa: ANN401
        if value is None:
            return
        if not isinstance(value, str):
            raise _TypeMismatch(_describe(value), "string")
        try:
            parse(value)
        except ValueError as error:
            raise UnmarshalError(str(error)) from None

    def quantity(self, value: Any) -> None:  # noqa: ANN401
        if value is None:
            return
        try:
            parse_quantity(quantity_text(value))
        except QuantityError as error:
            raise UnmarshalError(str(error)) from None

    def schema_or_bool(self, value: Any) -> None:  # noqa: ANN401
        if isinstance(value, dict):
            self._separately(self._table.type_of(JSON_SCHEMA_PROPS), value)
        elif not isinstance(value, bool):
            raise UnmarshalError("boolean or JSON schema expected")

    def schema_or_array(self, value: Any) -> None:  # noqa: ANN401
        schema = self._table.type_of(JSON_SCHEMA_PROPS)
        if isinstance(value, dict):
            self._separately(schema, value)
        elif isinstance(value, list):
            self._separately(GoType("slice", "[]" + schema.go_name, schema), value)

    def schema_or_strings(self, value: Any) -> None:  # noqa: ANN401
        if isinstance(value, dict):
            self._separately(self._table.type_of(JSON_SCHEMA_PROPS), value)
        elif isinstance(value, list):
            self._separately(_STRINGS, value)

    def _separately(self, go_type: GoType, value: Any) -> None:  # noqa: ANN401
        """As a type does that calls the decoder for its parts: a walk of its own, and not a strict one."""
        if self._depth < _MAX_NESTED_WALKS:
            _Walk(self._table, self._depth + 1).run(go_type, value)

    def _save(self, error: _TypeMismatch | UnmarshalError) -> None:
        if self._saved is None:
            self._saved = self._with_context(error) if isinstance(error, _TypeMismatch) else error

    def _with_context(self, error: _TypeMismatch) -> _TypeMismatch:
        if not self._stack:
            return error
        stack = (*self._stack, error.field) if error.field else self._stack
        return _TypeMismatch(error.value, error.go_name, self._struct, ".".join(stack))

    def _note_unknown(self, path: str) -> None:
        message = f"unknown field {gotext.quote(path)}"
        if len(self.unknown) < _MAX_STRICT_ERRORS and message not in self.unknown:
            self.unknown.append(message)


_OPAQUE: Final[dict[str, Callable[[_Walk, Any], None]]] = {
    "raw": lambda walk, value: None,
    "time": lambda walk, value: walk.time(value, parse_time),
    "micro time": lambda walk, value: walk.time(value, parse_micro_time),
    "quantity": _Walk.quantity,
    "schema or bool": _Walk.schema_or_bool,
    "schema or array": _Walk.schema_or_array,
    "schema or strings": _Walk.schema_or_strings,
}


def quantity_text(value: Any) -> str:  # noqa: ANN401
    """A quantity may be a string, with spaces around it, or a number as it is written; all else is none."""
    if isinstance(value, str):
        return value.strip()
    return number_text(value) if value.__class__ in (int, float) else "?"


def number_text(value: float) -> str:
    """A number as it was probably written. Integers past 64 bits reach us as floats."""
    if isinstance(value, float) and value.is_integer() and 2**63 <= abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def _fits(value: float, go_type: GoType) -> bool:
    limit: int = 2 ** (go_type.bits - 1)
    low, high = (0, 255) if go_type is _BYTE else (-limit, limit - 1)
    return isinstance(value, int) and low <= value <= high


def _describe(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
