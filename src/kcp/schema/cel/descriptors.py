"""The door to protocol buffers: how the engine is told of object types, and how its syntax trees are read.

An object type becomes a message, because that is the only kind of type with fields that the engine checks. Only the
checker sees these messages: at run time objects are plain maps. Values of library types are messages in earnest, all of
one shape (`value_of`, `parts_of`).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import (
    any_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message

from kcp.schema.cel import types

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence


Value = Message  # of a library type

_WELL_KNOWN: Final = (any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
_FIELD: Final = "internal_parts"
_PACKAGE: Final = "object"
_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")

_SCALARS: Final = {
    types.BOOL: FieldDescriptorProto.TYPE_BOOL,
    types.INT: FieldDescriptorProto.TYPE_INT64,
    types.UINT: FieldDescriptorProto.TYPE_UINT64,
    types.DOUBLE: FieldDescriptorProto.TYPE_DOUBLE,
    types.STRING: FieldDescriptorProto.TYPE_STRING,
    types.BYTES: FieldDescriptorProto.TYPE_BYTES,
}
_MESSAGES: Final = {
    types.TIMESTAMP: "google.protobuf.Timestamp",
    types.DURATION: "google.protobuf.Duration",
    types.DYN: "google.protobuf.Value",
    types.NULL: "google.protobuf.Value",
}
_LIST: Final = "google.protobuf.ListValue"
_MAP: Final = "google.protobuf.Struct"

# The part of cel/expr/syntax.proto and checked.proto that is read here; what is not named survives untouched.
_SYNTAX: Final[dict[str, tuple[tuple[str, int, str], ...]]] = {
    "CheckedExpr": (
        ("reference_map", 2, "*ReferenceEntry"),
        ("type_map", 3, "*TypeEntry"),
        ("expr", 4, "Expr"),
        ("source_info", 5, "SourceInfo"),
    ),
    "TypeEntry": (("key", 1, "int64"), ("value", 2, "Type")),
    "Type": (
        ("null", 2, "int64"),
        ("primitive", 3, "int64"),
        ("well_known", 5, "int64"),
        ("list_type", 6, "ListType"),
        ("map_type", 7, "MapType"),
        ("message_type", 9, "string"),
        ("type_param", 10, "string"),
        ("abstract_type", 14, "AbstractType"),
    ),
    "ListType": (("elem_type", 1, "Type"),),
    "MapType": (("key_type", 1, "Type"), ("value_type", 2, "Type")),
    "AbstractType": (("name", 1, "string"), ("parameter_types", 2, "*Type")),
    "SourceInfo": (("line_offsets", 3, "*int32"), ("positions", 4, "*PositionEntry")),
    "PositionEntry": (("key", 1, "int64"), ("value", 2, "int32")),
    "ReferenceEntry": (("key", 1, "int64"), ("value", 2, "Reference")),
    "Reference": (("name", 1, "string"), ("overload_id", 3, "*string")),
    "Expr": (
        ("id", 2, "int64"),
        ("const_expr", 3, "Constant"),
        ("ident_expr", 4, "Ident"),
        ("select_expr", 5, "Select"),
        ("call_expr", 6, "Call"),
        ("list_expr", 7, "CreateList"),
        ("struct_expr", 8, "CreateStruct"),
        ("comprehension_expr", 9, "Comprehension"),
    ),
    "Constant": (
        ("null_value", 1, "int64"),
        ("bool_value", 2, "bool"),
        ("int64_value", 3, "int64"),
        ("uint64_value", 4, "uint64"),
        ("double_value", 5, "double"),
        ("string_value", 6, "string"),
        ("bytes_value", 7, "bytes"),
    ),
    "Ident": (("name", 1, "string"),),
    "Select": (("operand", 1, "Expr"), ("field", 2, "string"), ("test_only", 3, "bool")),
    "Call": (("target", 1, "Expr"), ("function", 2, "string"), ("args", 3, "*Expr")),
    "CreateList": (("elements", 1, "*Expr"), ("optional_indices", 2, "*int32")),
    "CreateStruct": (("message_name", 1, "string"), ("entries", 2, "*Entry")),
    "Entry": (
        ("id", 1, "int64"),
        ("map_key", 3, "Expr"),
        ("value", 4, "Expr"),
        ("optional_entry", 5, "bool"),
    ),
    "Comprehension": (
        ("iter_var", 1, "string"),
        ("iter_range", 2, "Expr"),
        ("accu_var", 3, "string"),
        ("accu_init", 4, "Expr"),
        ("loop_condition", 5, "Expr"),
        ("loop_step", 6, "Expr"),
        ("result", 7, "Expr"),
        ("iter_var2", 8, "string"),
    ),
}

_SYNTAX_SCALARS: Final = ("int32", "int64", "uint64", "double", "string", "bytes", "bool")


def name_objects(object_types: Iterable[types.ObjectType]) -> dict[str, str]:
    """What the engine calls each object type: names such as `a.B` and `a.B.c` would get in each other's way."""
    found = chain.from_iterable(types.objects_in(object_type) for object_type in object_types)
    return {name: f"{_PACKAGE}.T{index}" for index, name in enumerate(dict.fromkeys(one.name for one in found))}


def make_pool(object_types: Sequence[types.ObjectType] = ()) -> descriptor_pool.DescriptorPool:
    """What an environment may know of: the library types, and these."""
    pool = descriptor_pool.DescriptorPool()
    for module in _WELL_KNOWN:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    packages = sorted({name.rpartition(".")[0] for name in types.LIBRARY_TYPES})
    library = [_library_file(package) for package in packages]
    for file in library:
        pool.AddSerializedFile(file.SerializeToString())
    if object_types:
        objects = _object_file(object_types, [file.name for file in library])
        pool.AddSerializedFile(objects.SerializeToString())
    return pool


def _make_file(name: str, package: str, imports: Iterable[str] = ()) -> FileDescriptorProto:
    file = FileDescriptorProto(name=f"{name}.proto", package=package, syntax="proto3")
    file.dependency.extend([*(module.DESCRIPTOR.name for module in _WELL_KNOWN), *imports])
    return file


def _library_file(package: str) -> FileDescriptorProto:
    file = _make_file(f"library.{package}", package)
    for name in types.LIBRARY_TYPES:
        if name.rpartition(".")[0] == package:
            message = file.message_type.add(name=name.rpartition(".")[2])
            message.field.add(
                name=_FIELD, number=1, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_REPEATED
            )
    return file


def _object_file(object_types: Sequence[types.ObjectType], imports: list[str]) -> FileDescriptorProto:
    file = _make_file("objects", _PACKAGE, imports)
    names = name_objects(object_types)
    found = {one.name: one for one in chain.from_iterable(types.objects_in(root) for root in object_types)}
    for name, alias in names.items():
        message = file.message_type.add(name=alias.rpartition(".")[2])
        # Names such as `a_b` and `aB` would clash in JSON, which nobody uses here.
        message.options.deprecated_legacy_json_field_conflicts = True
        for number, (field, cel_type) in enumerate(found[name].fields.items(), start=1):
            if _IDENTIFIER.fullmatch(field):  # others cannot be selected anyway
                _Fields(names, message, found[name].fields).add(field, number, cel_type)
    return file


class _Fields:
    """Adds fields to a message."""

    def __init__(self, names: Mapping[str, str], message: DescriptorProto, taken: Container[str]) -> None:
        self._names = names
        self._message = message
        self._taken = taken

    def add(self, name: str, number: int, cel_type: types.CelType) -> None:
        field = self._message.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        if isinstance(cel_type, types.ListType) and _is_item(cel_type.element):
            field.label = FieldDescriptorProto.LABEL_REPEATED
            self._set_type(field, cel_type.element)
        elif isinstance(cel_type, types.MapType) and _is_item(cel_type.value) and (entry := self._entry_name(name)):
            field.label = FieldDescriptorProto.LABEL_REPEATED
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, self._add_entry(entry, cel_type.value)
        else:
            self._set_type(field, cel_type)

    def _entry_name(self, field: str) -> str:
        """protobuf wants the field's name in camel case; if that is taken, the map is one of anything."""
        name = "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"
        is_free = name not in self._taken and all(other.name != name for other in self._message.nested_type)
        return name if is_free else ""

    def _add_entry(self, name: str, cel_type: types.CelType) -> str:
        entry = self._message.nested_type.add(name=name)
        entry.options.map_entry = True
        optional = FieldDescriptorProto.LABEL_OPTIONAL
        entry.field.add(name="key", number=1, type=FieldDescriptorProto.TYPE_STRING, label=optional)
        self._set_type(entry.field.add(name="value", number=2, label=optional), cel_type)
        return f".{_PACKAGE}.{self._message.name}.{entry.name}"

    def _set_type(self, field: FieldDescriptorProto, cel_type: types.CelType) -> None:
        if isinstance(cel_type, str) and cel_type in _SCALARS:
            field.type = _SCALARS[cel_type]
            return
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        if isinstance(cel_type, str):
            field.type_name = "." + _MESSAGES.get(cel_type, cel_type)
        elif isinstance(cel_type, types.ObjectType):
            field.type_name = "." + self._names.get(cel_type.name, _MESSAGES[types.DYN])
        else:
            field.type_name = "." + (_MAP if isinstance(cel_type, types.MapType) else _LIST)


def _is_item(cel_type: types.CelType) -> bool:
    """Whether lists and maps of it can be declared; the rest are lists and maps of anything."""
    return isinstance(cel_type, str | types.ObjectType)


def _make_syntax() -> descriptor_pool.DescriptorPool:
    # In proto2 a field that is set to zero stays set, as constants and types must: in the original they are choices.
    file = FileDescriptorProto(name="syntax.proto", package="cel.expr", syntax="proto2")
    for name, fields in _SYNTAX.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            label = FieldDescriptorProto.LABEL_REPEATED if kind[0] == "*" else FieldDescriptorProto.LABEL_OPTIONAL
            field = message.field.add(name=field_name, number=number, label=label)
            kind = kind.removeprefix("*")
            if kind in _SYNTAX_SCALARS:
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
            else:
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".cel.expr.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


LIBRARY_POOL: Final = make_pool()
_CLASSES: Final = {
    name: message_factory.GetMessageClass(LIBRARY_POOL.FindMessageTypeByName(name)) for name in types.LIBRARY_TYPES
}
_CHECKED: Final = message_factory.GetMessageClass(_make_syntax().FindMessageTypeByName("cel.expr.CheckedExpr"))


def value_of(type_name: str, *parts: str) -> Value:
    """A value of a library type; equal parts make equal values."""
    return _CLASSES[type_name](**{_FIELD: parts})


def time_value(value: Any) -> Any:  # noqa: ANN401 - any value of the language
    """Times and durations as the engine takes them where no type is declared; anything else as it is."""
    if isinstance(value, datetime):
        moment = timestamp_pb2.Timestamp()
        moment.FromDatetime(value)
        return moment
    if isinstance(value, timedelta):
        span = duration_pb2.Duration()
        span.FromTimedelta(value)
        return span
    return value


def timestamp_of(text: str) -> Any:  # noqa: ANN401 - a message, as above
    """An instant, to the nanosecond. Raises ValueError."""
    moment = timestamp_pb2.Timestamp()
    moment.FromJsonString(text)
    return moment


def duration_of(nanoseconds: int) -> Any:  # noqa: ANN401
    span = duration_pb2.Duration()
    span.FromNanoseconds(nanoseconds)
    return span


def type_of(value: object) -> str:
    """The name of a library type, or nothing for any other value."""
    descriptor = getattr(value, "DESCRIPTOR", None)
    return str(descriptor.full_name) if descriptor is not None else ""


def parts_of(value: Value) -> Sequence[str]:
    parts: Sequence[str] = getattr(value, _FIELD)
    return parts


def read_tree(serialized: bytes) -> Any:  # noqa: ANN401 - a message of cel.expr, whose class is made at run time
    """The checked syntax tree that the engine serialized."""
    wrapped = any_pb2.Any.FromString(serialized)
    return _CHECKED.FromString(wrapped.value)


def write_tree(tree: Any) -> bytes:  # noqa: ANN401
    wrapped = any_pb2.Any(type_url="type.googleapis.com/cel.expr.CheckedExpr", value=tree.SerializeToString())
    return wrapped.SerializeToString()
