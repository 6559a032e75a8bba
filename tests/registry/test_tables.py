"""Tables, and the cells of custom resources; the expected ones are those of Kubernetes' convertor."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kcp.meta import codec
from kcp.meta.errors import BadRequest
from kcp.registry.tables import convertor_for, custom_convertor, make_table

NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
OBJECT: dict[str, Any] = {
    "apiVersion": "a.b/v1",
    "kind": "Widget",
    "metadata": {"name": "n", "creationTimestamp": "2025-01-02T03:00:00Z"},
    "spec": {
        "i": 3,
        "f": 1.5,
        "whole": 2.0,
        "million": 1000000.0,
        "huge": 1e22,
        "b": True,
        "s": "x",
        "n": None,
        "empty": "",
        "null": "null",
        "bad": "yesterday",
        "l": [1, "<a>"],
        "o": {"z": 1.0, "a": None},
    },
}


@pytest.mark.parametrize(
    ("column_type", "path", "cell"),
    [
        ("string", ".spec.s", "x"),
        ("string", ".spec.i", "3"),
        ("string", ".spec.f", "1.5"),
        ("string", ".spec.million", "1e+06"),
        ("string", ".spec.b", "true"),
        ("string", ".spec.n", "<no value>"),
        ("string", ".spec.l", '[1,"\\u003ca\\u003e"]'),
        ("string", ".spec.o", '{"a":null,"z":1}'),
        ("string", ".spec.missing", None),
        ("string", ".spec.l[9]", None),
        ("string", ".spec.i[0]", None),
        ("integer", ".spec.i", 3),
        ("integer", ".spec.f", 1),
        ("integer", ".spec.huge", -(2**63)),
        ("integer", ".spec.s", None),
        ("integer", ".spec.b", None),
        ("integer", ".spec.n", None),
        ("number", ".spec.f", 1.5),
        ("number", ".spec.i", 3),
        ("number", ".spec.whole", 2),
        ("number", ".spec.huge", 1e22),
        ("number", ".spec.s", None),
        ("boolean", ".spec.b", True),
        ("boolean", ".spec.i", None),
        ("date", ".metadata.creationTimestamp", "4m5s"),
        ("date", ".spec.empty", "<unknown>"),
        ("date", ".spec.null", "<unknown>"),
        ("date", ".spec.bad", "<invalid>"),
        ("date", ".spec.i", None),
        ("odd", ".spec.i", None),
    ],
)
def test_custom_columns_take_what_suits_their_type(column_type: str, path: str, cell: object) -> None:
    convertor = custom_convertor([{"name": "C", "type": column_type, "jsonPath": path}])
    name, found = convertor.cells(OBJECT, NOW)
    assert name == "n"
    assert found == cell
    assert codec.dumps(found) == codec.dumps(cell)


def test_custom_columns_describe_themselves() -> None:
    columns = custom_convertor(
        [
            {"name": "A", "type": "string", "jsonPath": ".a"},
            {"name": "B", "type": "date", "jsonPath": ".b", "description": "d", "priority": 1, "format": "f"},
        ]
    ).columns
    assert columns[0]["name"] == "Name"
    assert columns[0]["format"] == "name"
    assert columns[0]["description"].startswith("Name must be unique within a namespace.")
    description = "Custom resource definition column (in JSONPath format): .a"
    assert columns[1:] == [
        {"name": "A", "type": "string", "format": "", "description": description, "priority": 0},
        {"name": "B", "type": "date", "format": "f", "description": "d", "priority": 1},
    ]


def test_without_columns_of_its_own_a_custom_resource_shows_its_age() -> None:
    convertor = custom_convertor([])
    assert [(column["name"], column["type"]) for column in convertor.columns] == [("Name", "string"), ("Age", "date")]
    assert convertor.columns[1]["description"].startswith("CreationTimestamp is a timestamp")
    assert convertor.cells(OBJECT, NOW) == ["n", "4m5s"]


def test_a_path_that_cannot_be_read_ends_the_columns() -> None:
    columns = [
        {"name": name, "type": "string", "jsonPath": path} for name, path in (("A", ".a"), ("B", "["), ("C", ".c"))
    ]
    assert [column["name"] for column in custom_convertor(columns).columns] == ["Name", "A"]


def test_what_has_no_printer_shows_when_it_was_created() -> None:
    columns = convertor_for("rbac.authorization.k8s.io", "roles").columns
    assert [(column["name"], column["type"]) for column in columns] == [("Name", "string"), ("Created At", "date")]


@pytest.mark.parametrize(
    ("include_object", "expected"),
    [
        ("None", None),
        ("Object", OBJECT),
        (
            "Metadata",
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": OBJECT["metadata"]},
        ),
        ("", {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": OBJECT["metadata"]}),
    ],
)
def test_rows_carry_as_much_of_the_object_as_asked(include_object: str, expected: object) -> None:
    convertor = custom_convertor([])
    table = make_table(
        convertor,
        [OBJECT],
        include_object=include_object,
        with_columns=True,
        list_metadata={"resourceVersion": "7"},
        now=NOW,
    )
    assert table == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": convertor.columns,
        "rows": [{"cells": ["n", "4m5s"], "object": expected}],
    }


def test_later_events_of_a_watch_have_no_columns() -> None:
    table = make_table(
        custom_convertor([]), [OBJECT], include_object="None", with_columns=False, list_metadata={}, now=NOW
    )
    assert table["columnDefinitions"] is None


def test_the_older_version_of_tables_has_rows_of_its_own_version() -> None:
    table = make_table(
        custom_convertor([]),
        [OBJECT],
        include_object="Metadata",
        with_columns=True,
        list_metadata={},
        now=NOW,
        version="v1beta1",
    )
    assert table["apiVersion"] == table["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("resource", "rows"), [("configmaps", []), ("limitranges", None)], ids=["printed", "default convertor"]
)
def test_an_empty_list_has_no_rows(resource: str, rows: object) -> None:
    table = make_table(
        convertor_for("", resource), [], include_object="Bogus", with_columns=True, list_metadata={}, now=NOW
    )
    assert table["rows"] == rows


def test_other_parts_of_an_object_cannot_be_asked_for() -> None:
    with pytest.raises(BadRequest, match='unrecognized includeObject value: "Bogus"'):
        make_table(custom_convertor([]), [OBJECT], include_object="Bogus", with_columns=True, list_metadata={}, now=NOW)
