"""CEL rules in definitions, compared with what Kubernetes' own code says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kcp.meta.field import FieldPath
from kcp.registry.crd_rules import check_rules, make_schema_rules

RECORDED = Path(__file__).parent.parent / "schema" / "cel_cases.json"
CASES: list[dict[str, Any]] = json.loads(RECORDED.read_text())["cases"]
ROOT = FieldPath("spec.validation.openAPIV3Schema")
LOOPS = "self.all(x, self.all(y, x != y))"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_schemas_fare_as_in_kubernetes(case: dict[str, Any]) -> None:
    assert sorted(map(str, check_rules(case["schema"], ROOT, unchanged=False))) == case["refused"]


@pytest.mark.parametrize("case", [case for case in CASES if case["tries"]], ids=lambda case: case["name"])
def test_objects_fare_as_in_kubernetes(case: dict[str, Any]) -> None:
    rules = make_schema_rules(case["schema"])
    for given in case["tries"]:
        assert sorted(map(str, rules(given["obj"], given.get("old")))) == given["errors"]
        assert sorted(rules.warnings(given["obj"])) == given.get("warnings", [])


def test_unchanged_rules_may_be_costly_but_not_all_together() -> None:
    items = {"type": "string", "maxLength": 10}
    schema = {"type": "array", "maxItems": 1180, "items": items, "x-kubernetes-validations": [{"rule": LOOPS}]}
    assert len(check_rules(schema, ROOT, unchanged=False)) == 1
    assert check_rules(schema, ROOT, unchanged=True) == []
    del schema["maxItems"]
    assert len(check_rules(schema, ROOT, unchanged=True)) == 2


def test_definitions_with_the_same_schema_share_their_rules() -> None:
    def schema() -> dict[str, Any]:
        return {"type": "object", "x-kubernetes-validations": [{"rule": "self.kind == 'W'"}]}

    assert make_schema_rules(schema()) is make_schema_rules(schema())


def test_warnings_are_those_of_the_object_asked_about_last() -> None:
    rules = make_schema_rules(
        {"type": "object", "properties": {"a": {"x-kubernetes-validations": [{"rule": "false"}]}}}
    )
    assert rules.warnings({"a": 1}) == []
