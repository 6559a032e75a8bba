"""Accepting valid values quickly.

A check may refuse what is valid after all (a whole number written `2.0`, say), but never accept what is not: refused
values are looked at again by `values`, which also finds the words for what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.schema.structural.numbers import MAX_INT64, MIN_INT64, as_int64
from kcp.schema.structural.regexps import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.schema.structural.values import ValueSchema

    Check = Callable[[Any], bool]

_CLASSES: Final = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def compile_check(values: ValueSchema) -> Check:
    """The quick check for a whole value."""
    kind, check = _compile(values)
    if check is None:
        return lambda value: kind is None or value.__class__ is kind
    return lambda value: (kind is None or value.__class__ is kind) and check(value)


def _compile(values: ValueSchema) -> tuple[type | None, Check | None]:
    """The class that a value must have, and what else to ask about it; None where there is nothing to ask."""
    kind, check = _compile_not_null(values)
    # No enumeration has null in it: Go never finds it there.
    if not values.nullable or not values.types or values.enum:
        return kind, check
    return (
        None,
        lambda value: value is None or ((kind is None or value.__class__ is kind) and (check is None or check(value))),
    )


def _compile_not_null(values: ValueSchema) -> tuple[type | None, Check | None]:
    kind = _CLASSES.get(values.types[0]) if len(values.types) == 1 else None
    if kind is None:
        return None, _compile_loose(values)
    parts = [_compile_logic(values), _compile_enum(values)]
    if kind is str:
        parts.append(_compile_string(values))
    elif kind is int:
        parts.append(_compile_integer(values))
    elif kind is list:
        parts.append(_compile_list(values))
    elif kind is dict:
        parts.append(_compile_object(values))
    return kind, _all_of([part for part in parts if part is not None])


def _compile_loose(values: ValueSchema) -> Check | None:
    """Several types, any type, or numbers: ask the exact validator, except for the simple cases."""
    constraints = _CONSTRAINTS & values.schema.keys()
    if not constraints and not values.types:
        return None
    if not constraints and values.types == ("number",):
        return lambda value: value.__class__ is float or (value.__class__ is int and MIN_INT64 <= value <= MAX_INT64)
    # What controller-gen writes for an IntOrString says the same twice.
    says_twice = values.schema.get("anyOf", _INT_OR_STRING) == _INT_OR_STRING
    if values.types == ("integer", "string") and constraints <= _OF_STRINGS and says_twice:
        check = _compile_string(values)
        return lambda value: (
            (value.__class__ is str and (check is None or check(value)))
            or (value.__class__ is int and MIN_INT64 <= value <= MAX_INT64)
        )
    return lambda value: not values.validate(value).errors


_OF_STRINGS: Final = frozenset({"anyOf", "pattern", "maxLength", "minLength", "format"})
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_CONSTRAINTS: Final = frozenset(
    {"enum", "pattern", "format", "maxLength", "minLength", "maxItems", "minItems", "uniqueItems", "items"}
    | {"maxProperties", "minProperties", "required", "properties", "additionalProperties"}
    | {"allOf", "anyOf", "oneOf", "not", "multipleOf", "minimum", "maximum"}
)


def _all_of(checks: list[Check]) -> Check | None:
    if len(checks) <= 1:
        return checks[0] if checks else None
    return lambda value: all(check(value) for check in checks)


def _compile_logic(values: ValueSchema) -> Check | None:
    """oneOf and not need to know that a clause does NOT hold, which a quick check cannot tell."""
    if values.one_of or values.negated is not None:
        return lambda value: not values.check_junctors(value, "").errors
    checks = [compile_check(clause) for clause in values.all_of]
    if values.any_of:
        clauses = [compile_check(clause) for clause in values.any_of]
        checks.append(lambda value: any(clause(value) for clause in clauses))
    return _all_of(checks)


def _compile_enum(values: ValueSchema) -> Check | None:
    if not values.enum:
        return None
    if all(allowed.__class__ is str for allowed in values.enum) and values.types == ("string",):
        return frozenset(values.enum).__contains__
    return lambda value: any(value.__class__ is allowed.__class__ and value == allowed for allowed in values.enum)


def _compile_string(values: ValueSchema) -> Check | None:
    longest, shortest = values.schema.get("maxLength"), values.schema.get("minLength")
    checks: list[Check] = []
    if longest is not None or shortest is not None:
        most = longest if longest is not None else MAX_INT64
        least = shortest if shortest is not None else 0
        checks.append(lambda value: least <= len(value) <= most)
    if values.pattern:
        checks.append(compile_pattern(values.pattern))
    if values.check_format is not None:
        checks.append(values.check_format)
    return _all_of(checks)


def _compile_integer(values: ValueSchema) -> Check | None:
    schema = values.schema
    least, most = schema.get("minimum"), schema.get("maximum")
    least = MIN_INT64 if least is None else as_int64(least) + bool(schema.get("exclusiveMinimum"))
    most = MAX_INT64 if most is None else as_int64(most) - bool(schema.get("exclusiveMaximum"))
    if schema.get("multipleOf") is not None:
        return lambda value: not values.validate(value).errors
    return lambda value: least <= value <= most


def _compile_list(values: ValueSchema) -> Check | None:
    schema = values.schema
    if schema.get("uniqueItems"):
        return lambda value: not values.validate(value).errors
    checks: list[Check] = []
    least, most = schema.get("minItems") or 0, schema.get("maxItems")
    if least or most is not None:
        most = MAX_INT64 if most is None else most
        checks.append(lambda value: least <= len(value) <= most)
    if values.items is not None:
        kind, check = _compile(values.items)
        checks.extend(_compile_items(kind, check))
    return _all_of(checks)


def _compile_items(kind: type | None, check: Check | None) -> list[Check]:
    checks: list[Check] = []
    if kind is not None:
        checks.append(lambda value: all(item.__class__ is kind for item in value))
    if check is not None:
        checks.append(lambda value: all(map(check, value)))
    return checks


def _compile_object(values: ValueSchema) -> Check | None:
    schema = values.schema
    children = {name: _compile(child) for name, child in values.properties.items()}
    other = _compile(values.additional) if values.additional is not None else (None, None)
    refuses_other = not values.allows_additional
    required = frozenset(values.required)
    least, most = schema.get("minProperties") or 0, schema.get("maxProperties")
    bounded = bool(least) or most is not None
    most = MAX_INT64 if most is None else most
    if not (children or required or bounded or refuses_other or other != (None, None)):
        return None

    def check_object(value: dict[str, Any]) -> bool:
        if required and not value.keys() >= required:
            return False
        if bounded and not least <= len(value) <= most:
            return False
        get = children.get
        for name, item in value.items():
            kind, check = get(name) or other
            if kind is not None and item.__class__ is not kind:
                return False
            if check is not None and not check(item):
                return False
            if refuses_other and name not in children:
                return False
        return True

    return check_object
