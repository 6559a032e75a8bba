"""Validating values exactly as kube-openapi does: which errors, in which words and which order.

This is the thorough way, taken only for what the quick check in `checks` could not accept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.meta.gotext import format_float, marshal_json, quote
from kcp.schema.structural.formats import find_format
from kcp.schema.structural.nodes import INT_OR_STRING, is_same
from kcp.schema.structural.numbers import as_int64, as_number, is_json_integer
from kcp.schema.structural.regexps import PatternError, compile_pattern
from kcp.schema.structural.results import Failed, Failure, Result

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.schema.structural.correlation import Correlation

_JSON_TYPES: Final = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}


class ValueSchema:
    """What makes a value valid, read once from an openAPIV3Schema.

    `is_default` reads it as Kubernetes does for the defaults in a schema: formats that are not checked still count
    when types are compared, and x-kubernetes-int-or-string says nothing.
    """

    def __init__(self, schema: Object, *, is_default: bool = False) -> None:
        kind = schema.get("type") or ""
        self.types: tuple[str, ...] = (kind,) if kind else ()
        if schema.get(INT_OR_STRING) and not is_default:
            self.types = ("integer", "string")
        self.nullable = bool(schema.get("nullable"))
        self.format: str = schema.get("format") or ""
        self.check_format = find_format(self.format)
        if self.check_format is None and not is_default:
            self.format = ""
        self.schema = schema
        self.enum: list[Any] = schema.get("enum") or []
        self.required: list[str] = schema.get("required") or []
        self.pattern: str = schema.get("pattern") or ""
        self._read_children(schema, is_default)

    def _read_children(self, schema: Object, is_default: bool) -> None:
        def read(child: Any) -> ValueSchema | None:  # noqa: ANN401 - a schema, a boolean or nothing
            return ValueSchema(child, is_default=is_default) if isinstance(child, dict) else None

        def read_all(name: str) -> list[ValueSchema]:
            return [ValueSchema(child, is_default=is_default) for child in schema.get(name) or ()]

        self.all_of, self.any_of, self.one_of = read_all("allOf"), read_all("anyOf"), read_all("oneOf")
        self.negated = read(schema.get("not"))
        self.items = read(schema.get("items"))
        self.additional = read(schema.get("additionalProperties"))
        self.allows_additional = schema.get("additionalProperties") is not False
        properties: Object = schema.get("properties") or {}
        self.properties = {name: ValueSchema(child, is_default=is_default) for name, child in properties.items()}

    def validate(self, value: Any, path: str = "", correlation: Correlation | None = None) -> Result:  # noqa: ANN401
        """Everything wrong with a value. With a correlation, what is wrong but did not change is forgiven."""
        result = self._validate(value, path, correlation)
        if result.errors and correlation is not None and correlation.is_same():
            return Result(result.matches)
        return result

    def _validate(self, value: Any, path: str, correlation: Correlation | None) -> Result:  # noqa: ANN401
        result = Result()
        if value is None:
            result.merge(self._check_null(path))
            self._check_enum(result, value, path)
            return result
        if value.__class__ is int:
            value = as_number(value)
        if self.types or self.format:
            result.merge(self._check_type(value, path))
            result.matches += 1
        result.merge(self.check_junctors(value, path))
        result.matches += 1
        kind = value.__class__
        if kind is str:
            self._check_string(result, value, path)
        elif kind is int or kind is float:
            result.merge(_check_number(self.schema, value, path))
            result.matches += 1
        elif kind is list:
            result.merge(self._check_list(value, path, correlation))
            result.matches += 1
        self._check_enum(result, value, path)
        result.matches += 1
        if kind is dict:
            result.merge(self._check_object(value, path, correlation))
            result.matches += 1
        result.matches += 1
        return result

    def _check_null(self, path: str) -> Result:
        if self.types and not self.nullable:
            return Result(0, _wrong_type(path, ",".join(self.types), "null"))
        return Result(1)

    def _check_type(self, value: Any, path: str) -> Result:  # noqa: ANN401
        types = self.types
        kind, implied_format = _JSON_TYPES[value.__class__]
        is_whole = kind == "number" and "integer" in types and is_json_integer(value)
        is_number = kind == "integer" and "number" in types
        fits = kind in types or is_whole or is_number
        textual = value.__class__ is str or value.__class__ is list
        if self.format:
            if not textual and not fits and implied_format != self.format:
                return Result(0, _wrong_type(path, self.format, implied_format))
            if textual and "number" not in types and "integer" not in types:
                return Result(1)  # left to the check of the format
        return Result(1) if fits else Result(0, _wrong_type(path, ",".join(types), kind))

    def _check_string(self, result: Result, value: str, path: str) -> None:
        result.matches += 1
        for failure in self._string_failures(value, path):
            result.add(failure)
            break  # only the first of a string's own constraints is reported
        if self.check_format is None:
            return
        result.matches += 1
        if not self.check_format(value):
            result.add(_wrong_type(path, self.format, value))

    def _string_failures(self, value: str, path: str) -> list[Failure]:
        longest, shortest = self.schema.get("maxLength"), self.schema.get("minLength")
        if longest is not None and len(value) > longest:
            message = f"{path} in body should be at most {longest} chars long"
            return [Failure(Failed.TOO_LONG, path, message, value, longest)]
        if shortest is not None and len(value) < shortest:
            return [_wrong_value(path, f"should be at least {shortest} chars long", value)]
        if not self.pattern:
            return []
        try:
            found = compile_pattern(self.pattern)(value)
        except PatternError as error:
            return [_wrong_value(path, f"should match '{self.pattern}, but pattern is invalid: {error}'", value)]
        return [] if found else [_wrong_value(path, f"should match '{self.pattern}'", value)]

    def _check_enum(self, result: Result, value: Any, path: str) -> None:  # noqa: ANN401
        if self.enum and not any(_is_enum_value(value, allowed) for allowed in self.enum):
            shown = " ".join(map(str, self.enum))
            message = f"{path} in body should be one of [{shown}]"
            result.add(Failure(Failed.ENUM, path, message, value, self.enum))

    def _check_list(self, value: list[Any], path: str, correlation: Correlation | None) -> Result:
        result = Result()
        if self.items is not None:
            for index, item in enumerate(value):
                child = correlation.index(index) if correlation is not None else None
                result.merge(self.items.validate(item, f"{path}[{index}]", child))
        size, schema = len(value), self.schema
        fewest, most = schema.get("minItems"), schema.get("maxItems")
        if fewest is not None and size < fewest:
            result.add(_wrong_value(path, f"should have at least {fewest} items", size))
        if most is not None and size > most:
            message = f"{path} in body should have at most {most} items"
            result.add(Failure(Failed.TOO_MANY, path, message, size, most))
        if schema.get("uniqueItems") and _has_duplicates(value):
            result.add(_wrong_value(path, "shouldn't contain duplicates", None))
        result.matches += 1
        return result

    def _check_object(self, value: Object, path: str, correlation: Correlation | None) -> Result:
        result = Result()
        size, schema = len(value), self.schema
        fewest, most = schema.get("minProperties"), schema.get("maxProperties")
        if fewest is not None and size < fewest:
            result.add(_wrong_value(path, f"should have at least {fewest} properties", size))
        if most is not None and size > most:
            message = f"{path} in body should have at most {most} properties"
            result.add(Failure(Failed.TOO_MANY, path, message, size, most))
        for name, item in value.items():
            if name in self.properties:
                continue
            if not self.allows_additional:
                message = f"{path}.{name} in body is a forbidden property"
                result.add(Failure(Failed.VALUE, path, message, name))
            elif self.additional is not None:
                result.merge(self.additional.validate(item, f"{path}.{name}", _child_of(correlation, name, path)))
        for name, child in self.properties.items():
            if name in value:
                where = f"{path}.{name}" if path else name
                result.merge(child.validate(value[name], where, _child_of(correlation, name, path)))
        for name in self.required:
            if name not in value:
                where = f"{path}.{name}"
                result.add(Failure(Failed.REQUIRED, where, f"{where} in body is required"))
        return result

    def check_junctors(self, value: Any, path: str) -> Result:  # noqa: ANN401
        result = Result()
        if self.any_of:
            self._check_any_of(result, value, path)
        if self.one_of:
            self._check_one_of(result, value, path)
        if self.all_of:
            self._check_all_of(result, value, path)
        if self.negated is not None and not self.negated.validate(value, path).errors:
            result.add(_composite(f"{quote(path)} must not validate the schema (not)"))
        result.matches += 1
        return result

    def _check_any_of(self, result: Result, value: Any, path: str) -> None:  # noqa: ANN401
        best: Result | None = None
        for clause in self.any_of:
            found = clause.validate(value, path)
            if not found.errors:
                result.merge(found)
                return
            if best is None or found.matches > best.matches:
                best = found
        result.add(_composite(f"{quote(path)} must validate at least one schema (anyOf)"))
        if best is not None:
            result.merge(best)

    def _check_one_of(self, result: Result, value: Any, path: str) -> None:  # noqa: ANN401
        found = [clause.validate(value, path) for clause in self.one_of]
        valid = [each for each in found if not each.errors]
        if len(valid) == 1:
            result.merge(valid[0])
            return
        how_many = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        result.add(_composite(f"{quote(path)} must validate one and only one schema (oneOf). {how_many}"))
        if not valid:
            result.merge(max(found, key=lambda each: each.matches))

    def _check_all_of(self, result: Result, value: Any, path: str) -> None:  # noqa: ANN401
        found = [clause.validate(value, path) for clause in self.all_of]
        for each in found:
            result.merge(each)
        if any(each.errors for each in found):
            none = ". None validated" if all(each.errors for each in found) else ""
            result.add(_composite(f"{quote(path)} must validate all the schemas (allOf){none}"))


def _child_of(correlation: Correlation | None, name: str, path: str) -> Correlation | None:
    """What a field was before. The type of a resource has no history: both sides were converted to one version."""
    if correlation is None or (not path and name in ("kind", "apiVersion")):
        return None
    return correlation.key(name)


def _wrong_type(path: str, expected: str, found: str) -> Failure:
    return Failure(Failed.TYPE, path, f"{path} in body must be of type {expected}: {quote(found)}", found)


def _wrong_value(path: str, complaint: str, value: Any) -> Failure:  # noqa: ANN401
    return Failure(Failed.VALUE, path, f"{path} in body {complaint}", value)


def _composite(message: str) -> Failure:
    return Failure(Failed.COMPOSITE, "", message)


def _check_number(schema: Object, value: float, path: str) -> Result:
    """An integer is compared with the bounds cut to integers, as kube-openapi does."""
    result = Result()

    def bound(name: str) -> int | float | None:
        limit = schema.get(name)
        if limit is None:
            return None
        return as_int64(limit) if value.__class__ is int else float(limit)

    factor, least, most = bound("multipleOf"), bound("minimum"), bound("maximum")
    if factor is not None:
        failure = _check_multiple(path, value, factor)
        if failure is not None:
            result.add(failure)
    if least is not None:
        if schema.get("exclusiveMinimum"):
            if value <= least:
                result.add(_wrong_value(path, f"should be greater than {_show(least)}", value))
        elif value < least:
            result.add(_wrong_value(path, f"should be greater than or equal to {_show(least)}", value))
    if most is not None:
        if schema.get("exclusiveMaximum"):
            if value >= most:
                result.add(_wrong_value(path, f"should be less than {_show(most)}", value))
        elif value > most:
            result.add(_wrong_value(path, f"should be less than or equal to {_show(most)}", value))
    result.matches += 1
    return result


def _check_multiple(path: str, value: Any, factor: float) -> Failure | None:  # noqa: ANN401 - int or float
    if factor <= 0:
        message = f"factor MultipleOf declared for {path} must be positive: {_show(factor)}"
        return Failure(Failed.VALUE, path, message, factor)
    if value.__class__ is int:
        fits = value % factor == 0
    else:
        fits = is_json_integer(1 / factor * value if factor < 1 else value / factor)
    return None if fits else _wrong_value(path, f"should be a multiple of {_show(factor)}", value)


def _show(number: float) -> str:
    return format_float(number) if number.__class__ is float else str(number)


def _is_enum_value(value: Any, allowed: Any) -> bool:  # noqa: ANN401
    """Go converts the value to the type of the allowed one first, which makes 1.5 a 1 and 65 an "A"."""
    if value.__class__ is allowed.__class__:
        return value is not None and is_same(value, allowed)
    if value.__class__ is int and allowed.__class__ is float:
        return float(value) == allowed
    if value.__class__ is float and allowed.__class__ is int:
        return as_int64(value) == allowed
    if value.__class__ is int and allowed.__class__ is str:
        return bool((chr(value) if 0 <= value < 0x110000 else "\ufffd") == allowed)
    return False


def _has_duplicates(items: list[Any]) -> bool:
    seen = [marshal_json(item) for item in items]
    return len(set(seen)) < len(seen)
