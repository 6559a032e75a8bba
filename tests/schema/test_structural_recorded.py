"""Objects under schemas, compared with what Kubernetes' own code did with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kcp.registry.strategies.crd_metadata import EMBEDDED_METADATA
from kcp.schema.structural import compile

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("structural_cases.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_objects_fare_as_in_kubernetes(case: dict[str, Any]) -> None:
    structural = compile(case["schema"], EMBEDDED_METADATA)
    unknown: list[str] = []
    obj = structural.prune(case["obj"], unknown)
    structural.default(obj)
    old = None
    if "old" in case:
        old = structural.prune(case["old"])
        structural.default(old)
    found = sorted([error.type.value, error.field, error.body] for error in structural.validate(obj, old))
    assert obj == case["result"]
    assert sorted(unknown) == [f'unknown field "{path}"' for path in case.get("unknown", ())]
    assert found == case["errors"]


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_the_quick_check_accepts_only_what_is_valid(case: dict[str, Any]) -> None:
    structural = compile(case["schema"], EMBEDDED_METADATA)
    obj = structural.prune(case["obj"])
    structural.default(obj)
    if structural._accepts(obj):
        assert structural.values.validate(obj).errors == []
