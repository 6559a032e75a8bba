"""Checks that a value is of its type, as far as server-side apply asks for it.

Must not validate more than structured-merge-diff does: the rules of a kind are checked elsewhere and in other words.
"""

from typing import Any, NamedTuple

from kcp.meta.codec import Object
from kcp.patch.comparison import LIST, MAP, SchemaError, item_element, kind_of
from kcp.patch.field_path import describe
from kcp.patch.go_values import show_floats, show_syntax, type_name
from kcp.patch.merge_schema import ANY_SCALAR, BOOLEAN, NUMERIC, STRING, MergeSchema


class TypeMismatch(NamedTuple):
    """One complaint. The path is put together on the way out, so it costs nothing while there is none."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def find_type_errors(schema: MergeSchema, value: Object, *, allow_duplicates: bool) -> list[TypeMismatch]:
    """What does not fit. `allow_duplicates` permits items of sets and keyed lists to come twice, as stored ones may."""
    return _check(schema, value, allow_duplicates)


def describe_type_errors(errors: list[TypeMismatch]) -> str:
    if len(errors) == 1:
        return str(errors[0])
    return "\n".join(["errors:", *(f"  {error}" for error in errors)])


def _check(schema: MergeSchema, value: Any, allow_duplicates: bool) -> list[TypeMismatch]:  # noqa: ANN401
    if value is None:
        return []
    kind = kind_of(schema, value)
    if kind == MAP:
        if not isinstance(value, dict):
            return [TypeMismatch("", f"expected map, got &{{{show_floats(value)}}}")]
        return _check_map(schema, value, allow_duplicates)
    if kind == LIST:
        if not isinstance(value, list):
            return [TypeMismatch("", f"expected list, got &{{{show_floats(value)}}}")]
        return _check_list(schema, value, allow_duplicates)
    message = _check_scalar(schema.scalar, value)
    return [TypeMismatch("", message)] if message else []


def _check_map(schema: MergeSchema, value: Object, allow_duplicates: bool) -> list[TypeMismatch]:
    errors: list[TypeMismatch] = []
    fields, element = schema.fields, schema.element
    for key, item in value.items():
        child = fields.get(key, element)
        if child is None:
            errors.append(TypeMismatch(f".{key}", "field not declared in schema"))
            break
        if item.__class__ is str and (child.scalar == STRING or child.scalar == ANY_SCALAR):
            continue
        found = _check(child, item, allow_duplicates)
        if found:
            errors += _prefixed(f".{key}", found)
    return errors


def _check_list(schema: MergeSchema, value: list[Any], allow_duplicates: bool) -> list[TypeMismatch]:
    errors: list[TypeMismatch] = []
    seen: set[str] = set()
    for position, item in enumerate(value):
        prefix = f"[{position}]"
        if not schema.is_list_atomic:
            try:
                element = item_element(schema, item)
            except SchemaError as error:
                errors.append(TypeMismatch("", f"element {position}: {error}"))
                break
            if element in seen and not allow_duplicates:
                errors.append(TypeMismatch("", f"duplicate entries for key {describe(element)}"))
            seen.add(element)
            prefix = ""
        found = _check(schema.item, item, allow_duplicates)
        if found:
            errors += _prefixed(prefix or describe(element), found)
    return errors


def _prefixed(prefix: str, errors: list[TypeMismatch]) -> list[TypeMismatch]:
    return [TypeMismatch(prefix + error.path, error.message) for error in errors]


def _check_scalar(expected: str | None, value: Any) -> str:  # noqa: ANN401
    is_bool = isinstance(value, bool)
    is_number = isinstance(value, int | float) and not is_bool
    if expected == NUMERIC and not is_number:
        return f"expected numeric (int or float), got {type_name(value)}"
    if expected == STRING and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{show_syntax(value)}}}"
    if expected == BOOLEAN and not is_bool:
        return f"expected boolean, got &{{{show_floats(value)}}}"
    if expected == ANY_SCALAR and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{show_floats(value)}}}"
    return ""
