"""meta.k8s.io Tables: objects as rows for people to read, for built-in and for custom resources."""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.meta import codec, gotext
from kcp.meta.errors import BadRequest
from kcp.registry import printers
from kcp.registry.jsonpath import JSONPath, JSONPathError, parse_jsonpath

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kcp.meta.codec import Object

_META_GROUP: Final = "meta.k8s.io"
_MAX_INT64: Final = 2**63 - 1


class TableConvertor(NamedTuple):
    """What turns the objects of one resource into rows."""

    columns: list[Object]
    printer: printers.Printer
    # Go's default convertor, unlike the others, leaves the rows of an empty list null.
    empty_rows: list[Object] | None = []  # noqa: RUF012 - never changed, and null differs from empty

    def cells(self, obj: Object, now: datetime) -> list[Any]:
        """One cell for each column."""
        return self.printer(obj, now)


@cache
def convertor_for(group: str, resource: str) -> TableConvertor:
    """The convertor of a built-in resource; what has no printer shows its name and time of creation."""
    printer = printers.PRINTERS.get((group, resource))
    if printer is not None:
        return TableConvertor(_columns()[resource], printer)
    created = {**_described("configmaps", "Age"), "name": "Created At", "type": "date"}
    return TableConvertor([_name_column(), created], printers.print_created_at, empty_rows=None)


def custom_convertor(additional_printer_columns: list[Object]) -> TableConvertor:
    """The convertor of a version of a custom resource. A path that cannot be read ends the columns before it."""
    columns, paths = [_name_column()], []
    for column in additional_printer_columns or _default_columns():
        try:
            paths.append((column.get("type", ""), parse_jsonpath(column.get("jsonPath", ""))))
        except JSONPathError:
            break
        columns.append(_custom_column(column))
    return TableConvertor(columns, partial(_print_custom, paths))


def make_table(
    convertor: TableConvertor,
    objects: Sequence[Object],
    *,
    include_object: str,
    with_columns: bool,
    list_metadata: Object,
    now: datetime,
    version: str = "v1",
) -> Object:
    """A Table of the objects.

    `include_object` is "None", "Metadata" (also if empty) or "Object"; `with_columns` is false for all events of a
    watch but the first; `list_metadata` is the list's, or the resource version of a single object.
    Raises BadRequest on another `include_object`.
    """
    api_version = f"{_META_GROUP}/{version}"
    cells = convertor.printer
    rows: list[Object] | None
    if include_object in ("", "Metadata"):
        kind = {"kind": "PartialObjectMetadata", "apiVersion": api_version}
        rows = [{"cells": cells(obj, now), "object": {**kind, "metadata": obj["metadata"]}} for obj in objects]
    elif include_object == "Object":
        rows = [{"cells": cells(obj, now), "object": obj} for obj in objects]
    elif include_object == "None":
        rows = [{"cells": cells(obj, now), "object": None} for obj in objects]
    elif objects:
        raise BadRequest(f"unrecognized includeObject value: {gotext.quote(include_object)}")
    else:
        rows = []
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": list_metadata,
        "columnDefinitions": convertor.columns if with_columns else None,
        "rows": rows or convertor.empty_rows,
    }


@cache
def _columns() -> dict[str, list[Object]]:
    document = codec.loads((files("kcp") / "apis" / "data" / "zz_columns.json").read_bytes())
    columns: dict[str, list[Object]] = document["columns"]
    return columns


def _described(resource: str, name: str) -> Object:
    return next(column for column in _columns()[resource] if column["name"] == name)


def _name_column() -> Object:
    return _described("configmaps", "Name")


def _default_columns() -> list[Object]:
    described = _described("configmaps", "Age")["description"]
    return [{"name": "Age", "type": "date", "description": described, "jsonPath": ".metadata.creationTimestamp"}]


def _custom_column(column: Object) -> Object:
    path = column.get("jsonPath", "")
    return {
        "name": column.get("name", ""),
        "type": column.get("type", ""),
        "format": column.get("format", ""),
        "description": column.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
        "priority": column.get("priority", 0),
    }


def _print_custom(paths: list[tuple[str, JSONPath]], obj: Object, now: datetime) -> list[Any]:
    cells = [obj["metadata"].get("name", "")]
    for column_type, path in paths:
        try:
            found = path.find(obj)
        except JSONPathError:
            found = []
        cells.append(_cell(column_type, found[0], now) if found else None)
    return cells


def _cell(column_type: str, value: Any, now: datetime) -> Any:  # noqa: ANN401 - any JSON value
    """The value if it suits the column, else null; a column of strings takes everything."""
    if column_type == "string":
        return _text(value)
    if column_type == "date":
        return _date(value, now) if isinstance(value, str) else None
    if column_type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if column_type == "integer":
        return int(value) if abs(value) <= _MAX_INT64 else -_MAX_INT64 - 1  # as Go converts on most machines
    return _number(value) if column_type == "number" else None


def _text(value: Any) -> str:  # noqa: ANN401
    """As fmt.Fprint writes it, lists and objects as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    return gotext.format_float(value) if isinstance(value, float) else gotext.marshal_json(value)


def _date(value: str, now: datetime) -> str:
    try:
        return printers.age("" if value == "null" else value, now)
    except ValueError:
        return "<invalid>"


def _number(value: float) -> float:
    """Go's floats have no point in JSON when they are whole."""
    value = float(value)
    return int(value) if value.is_integer() and abs(value) < _MAX_INT64 else value
