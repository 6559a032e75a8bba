"""JSON values as Go names, prints and compares them, because patch errors show them and `1` is not `true` in Go.

Must not hold more of `fmt` than what reaches a client of a patch.
"""

from typing import Any, Final

from kcp.meta.gotext import format_float, quote

_TYPES: Final = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


_JSON_KINDS: Final = {bool: "bool", int: "number", float: "number", str: "string", dict: "object", list: "array"}


def json_kind(value: Any) -> str:  # noqa: ANN401 - any JSON value, here and below
    """What encoding/json calls a value that it cannot put where it should go."""
    return _JSON_KINDS[type(value)]


def type_name(value: Any) -> str:  # noqa: ANN401
    """The verb %T."""
    return "<nil>" if value is None else _TYPES[type(value)]


def type_name_as_string(value: Any) -> str:  # noqa: ANN401
    """The verb %s on a reflect.Type, which for null is no type at all."""
    return "%!s(<nil>)" if value is None else _TYPES[type(value)]


def show(value: Any) -> str:  # noqa: ANN401
    """The verb %v: `map[a:1 b:[x y]]`."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{show(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(show, value)) + "]"
    return str(value)


def show_as_string(value: Any) -> str:  # noqa: ANN401
    """The verb %s, which complains about what is no string."""
    if isinstance(value, str):
        return value
    return "%!s(<nil>)" if value is None else f"%!s({type_name(value)}={show(value)})"


def show_syntax(value: Any) -> str:  # noqa: ANN401
    """The verb %#v: the value as it would stand in Go source. All numbers are floats: so YAML is decoded for apply."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        fields = ", ".join(f"{quote(key)}:{show_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{fields}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(show_syntax, value)) + "}"
    return format_float(float(value))


def show_floats(value: Any) -> str:  # noqa: ANN401
    """The verb %v on what was decoded from YAML, where every number is a float."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{show_floats(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(show_floats, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return format_float(float(value))
    return show(value)


def equal(left: Any, right: Any) -> bool:  # noqa: ANN401
    """Whether two values are the same: numbers by value, whatever their type, but a boolean is no number."""
    if left is right:
        return True
    if left != right:
        return False
    if isinstance(left, dict):
        return all(equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(equal, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


def identity(value: Any) -> tuple[type, Any]:  # noqa: ANN401
    """A key under which equal values of the same type meet, as keys of Go's map[interface{}] do.

    Raises TypeError for lists and objects, where Go would panic.
    """
    hash(value)
    return type(value), value
