"""The fast road: Go types compiled into closures that copy an object into the shape Go would write it in.

A closure raises Mismatch on the first thing that Go would not take, and makes a note when it leaves a key out; why, and
which, is found by `explain`. Closures share with their input only what Go keeps as raw JSON.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kcp.meta.clock import format_micro_time, format_time, parse_micro_time, parse_time
from kcp.schema.quantity import canonical as canonical_quantity
from kcp.schema.typed.base64 import recode
from kcp.schema.typed.explain import UnmarshalError, explain, quantity_text
from kcp.schema.typed.table import JSON_SCHEMA_PROPS, Field, GoType, TypeTable

if TYPE_CHECKING:
    from kcp.meta.codec import Object

# (value that is not null, notes of what was left out) -> value as Go would write it
Convert: TypeAlias = Callable[[Any, list[str]], Any]

_ZERO_TIME: Final = "0001-01-01T00:00:00"
_MAX_PLAIN_FLOAT: Final = 1e21  # from here on Go writes an exponent
_SCALAR_CLASSES: Final = {"string": str, "bool": bool}
_STRINGS: Final = frozenset({str})
_BYTE_CLASSES: Final = frozenset({int, type(None)})


class Mismatch(Exception):
    """Go would not take this value: a signal between the two roads that never leaves this package."""


class _Step(NamedTuple):
    """What to do with one field: check the class of a scalar or convert, then keep or leave out."""

    name: str
    scalar: type | None
    convert: Convert
    keep_empty: bool
    make_zero: Callable[[], Any] | None  # None leaves an absent field out


class Typed:
    """The decoder of one struct.

    With `nil_when_empty`, an empty list or map that Go would write is written as null: that is what becomes of it in
    storage that uses protobuf, which cannot tell the two apart.
    """

    def __init__(self, table: TypeTable, struct: str, *, nil_when_empty: bool = False) -> None:
        self.struct = struct
        self._table = table
        self._convert = _Compiler(table, nil_when_empty=nil_when_empty).struct(struct)

    def decode(self, obj: Object, unknown: list[str] | None = None) -> Object:
        """A new object with the fields Go knows, in Go's order; raw JSON values in it are shared with `obj`.

        Appends to `unknown` what strict decoding says of the fields that were dropped: `unknown field "spec.foo"`.
        Raises UnmarshalError.
        """
        left_out: list[str] = []
        try:
            decoded: Object = self._convert(obj, left_out)
        except Mismatch:
            explain(self._table, self.struct, obj)
            raise UnmarshalError("json: cannot unmarshal a value that is nested very deeply") from None
        if left_out and unknown is not None:
            unknown += explain(self._table, self.struct, obj)
        return decoded


class _Compiler:
    """Makes closures, each struct's once: types may contain themselves."""

    def __init__(self, table: TypeTable, *, nil_when_empty: bool) -> None:
        self._table = table
        self._nil_when_empty = nil_when_empty
        self._structs: dict[str, Convert] = {}

    def struct(self, name: str) -> Convert:
        found = self._structs.get(name)
        if found is None:
            steps: list[_Step] = []
            found = self._structs[name] = _struct_converter(steps)
            steps += [self._step(field) for field in self._table.fields(name)]
        return found

    def _step(self, field: Field) -> _Step:
        go_type = field.type
        is_pointer = go_type.kind == "pointer"
        target = _pointed_at(go_type)
        # Go's omitempty never leaves out a struct, and a struct is what Time and the other opaque types are.
        is_plain = go_type.kind in ("string", "bool", "int", "float", "bytes", "slice", "map")
        omits = field.omitzero or (field.omitempty and is_plain)
        make_zero = None if omits or (is_pointer and field.omitempty) else self._make_zero(go_type)
        scalar = _SCALAR_CLASSES.get(target.kind)
        return _Step(field.name, scalar, self._converter(target), is_pointer or not omits, make_zero)

    def _make_zero(self, go_type: GoType) -> Callable[[], Any]:
        """What Go writes for a value nobody set."""
        if go_type.kind == "struct":
            convert = self.struct(go_type.struct)
            return lambda: convert({}, [])
        zero = {"string": "", "bool": False, "int": 0, "float": 0, "quantity": "0", "schema or bool": False}
        value = zero.get(go_type.kind)
        return lambda: value

    def _converter(self, go_type: GoType) -> Convert:
        kind = go_type.kind
        if kind == "struct":
            return self.struct(go_type.struct)
        if kind == "int":
            return _integer_converter(go_type.bits)
        if kind in ("slice", "map"):
            assert go_type.element is not None
            convert = self._collection(kind, go_type.element)
            if go_type.element.kind == "string":
                convert = _strings_in_slice if kind == "slice" else _strings_in_map
            return _nil_when_empty(convert) if self._nil_when_empty else convert
        if kind.startswith("schema or"):
            return self._schema_converter(kind)
        return _SIMPLE[kind]

    def _collection(self, kind: str, element: GoType) -> Convert:
        make_zero = self._make_zero(element)
        convert = self._converter(_pointed_at(element))
        if kind == "map" and self._nil_when_empty and element.kind in ("bytes", "slice"):
            # Behind a key, protobuf has bytes or a message: both may be empty, but they are there.
            make_zero = str if element.kind == "bytes" else list
            convert = _Compiler(self._table, nil_when_empty=False)._converter(element)
        return (_slice_converter if kind == "slice" else _map_converter)(convert, make_zero)

    def _schema_converter(self, kind: str) -> Convert:
        schema = self.struct(JSON_SCHEMA_PROPS)

        def convert_or_bool(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
            if value.__class__ is dict:
                return schema(value, [])
            if value.__class__ is bool:
                return value
            raise Mismatch

        def convert_or_array(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
            if value.__class__ is dict:
                return schema(value, [])
            if value.__class__ is list and value:
                return [schema(item or {}, []) for item in value]
            return None  # whatever else it is, Go quietly takes it for nothing

        def convert_or_strings(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
            if value.__class__ is dict:
                return schema(value, [])
            return _strings_in_slice(value, []) if value.__class__ is list and value else None

        # Their own decoders are not strict, so they leave nothing in the notes.
        return {
            "schema or bool": convert_or_bool,
            "schema or array": convert_or_array,
            "schema or strings": convert_or_strings,
        }[kind]


def _struct_converter(steps: list[_Step]) -> Convert:
    def convert_struct(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
        if value.__class__ is not dict:
            raise Mismatch
        decoded = {}
        found = 0
        get = value.get
        for name, scalar, convert, keep_empty, make_zero in steps:
            item = get(name)
            if item is not None:
                found += 1
                if scalar is None:
                    item = convert(item, left_out)
                elif item.__class__ is not scalar:
                    raise Mismatch
                if item or keep_empty:
                    decoded[name] = item
            elif make_zero is not None:
                decoded[name] = make_zero()
        if found != len(value):
            left_out.append("")  # perhaps only nulls: the slow road will see
        return decoded

    return convert_struct


def _slice_converter(convert: Convert, make_zero: Callable[[], Any]) -> Convert:
    def convert_slice(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
        if value.__class__ is not list:
            raise Mismatch
        return [make_zero() if item is None else convert(item, left_out) for item in value]

    return convert_slice


def _map_converter(convert: Convert, make_zero: Callable[[], Any]) -> Convert:
    def convert_map(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
        if value.__class__ is not dict:
            raise Mismatch
        # Go writes maps sorted by key.
        return {key: make_zero() if value[key] is None else convert(value[key], left_out) for key in sorted(value)}

    return convert_map


def _nil_when_empty(convert: Convert) -> Convert:
    return lambda value, left_out: convert(value, left_out) or None


def _integer_converter(bits: int) -> Convert:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert_integer(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
        if value.__class__ is not int or not low <= value <= high:
            raise Mismatch
        return value

    return convert_integer


def _scalar_converter(scalar: type) -> Convert:
    def convert_scalar(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
        if value.__class__ is not scalar:
            raise Mismatch
        return value

    return convert_scalar


def _strings_in_slice(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
    if value.__class__ is not list:
        raise Mismatch
    return list(value) if _are_strings(value) else ["" if item is None else item for item in value]


def _strings_in_map(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
    if value.__class__ is not dict:
        raise Mismatch
    if not _are_strings(value.values()):
        value = {key: "" if item is None else item for key, item in value.items()}
    return dict(sorted(value.items()))


def _are_strings(values: Any) -> bool:  # noqa: ANN401
    """Whether all are strings; False if nulls are among them. Raises Mismatch for anything else."""
    classes = set(map(type, values))
    if classes <= _STRINGS:
        return True
    if classes - _STRINGS == {type(None)}:
        return False
    raise Mismatch


def _float(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
    if value.__class__ is int:
        return int(float(value)) if -(2**64) < value < 2**64 else float(value)
    if value.__class__ is not float:
        raise Mismatch
    return int(value) if value.is_integer() and abs(value) < _MAX_PLAIN_FLOAT else value


def _bytes(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
    try:
        if value.__class__ is str:
            return recode(value)
        if value.__class__ is list and {item.__class__ for item in value} <= _BYTE_CLASSES:
            return b64encode(bytes(item or 0 for item in value)).decode()  # bytes may come as numbers, too
    except (ValueError, TypeError):
        raise Mismatch from None
    raise Mismatch


def _quantity(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
    try:
        return canonical_quantity(quantity_text(value))
    except ValueError:
        raise Mismatch from None


def _time(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
    if value.__class__ is not str:
        raise Mismatch
    try:
        text = format_time(parse_time(value))
    except ValueError:
        raise Mismatch from None
    return None if text.startswith(_ZERO_TIME) else text


def _micro_time(value: Any, left_out: list[str]) -> Any:  # noqa: ANN401
    if value.__class__ is not str:
        raise Mismatch
    try:
        text = format_micro_time(parse_micro_time(value))
    except ValueError:
        raise Mismatch from None
    return None if text == _ZERO_TIME + ".000000Z" else text


def _pointed_at(go_type: GoType) -> GoType:
    return go_type.element if go_type.kind == "pointer" and go_type.element is not None else go_type


_SIMPLE: Final[dict[str, Convert]] = {
    "string": _scalar_converter(str),
    "bool": _scalar_converter(bool),
    "float": _float,
    "bytes": _bytes,
    "quantity": _quantity,
    "time": _time,
    "micro time": _micro_time,
    "raw": lambda value, left_out: value,
}
