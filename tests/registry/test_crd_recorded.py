"""Definitions of custom resources, compared with what Kubernetes' own code said of them."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kcp.apis.typed import typed_for
from kcp.auth.user import UserInfo
from kcp.meta.gvk import GroupVersionKind
from kcp.registry.metadata import validate_object_meta, validate_object_meta_update
from kcp.registry.strategies.customresourcedefinitions import CustomResourceDefinitionStrategy
from kcp.registry.strategy import WriteContext

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("crd_cases.json").read_text())["cases"]
CONTEXT = WriteContext("root", UserInfo("me"), datetime(2026, 1, 2, tzinfo=UTC), lambda *asked: True)
TYPED = typed_for(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
STRATEGY = CustomResourceDefinitionStrategy()


def decode(crd: dict[str, Any]) -> dict[str, Any]:
    decoded = TYPED.decode(copy.deepcopy(crd))
    STRATEGY.default(decoded)
    return decoded


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_definitions_fare_as_in_kubernetes(case: dict[str, Any]) -> None:
    crd = decode(case["crd"])
    if "old" in case:
        old = decode(case["old"])
        STRATEGY.prepare_for_update(crd, old, CONTEXT)
        errors = validate_object_meta_update(crd["metadata"], old["metadata"])
        errors += STRATEGY.validate_update(crd, old, CONTEXT)
        warnings = STRATEGY.warnings_on_update(crd, old, CONTEXT)
    else:
        STRATEGY.prepare_for_create(crd, CONTEXT)
        errors = validate_object_meta(crd["metadata"], namespaced=False, check_name=STRATEGY.check_name)
        errors += STRATEGY.validate(crd, CONTEXT)
        warnings = STRATEGY.warnings_on_create(crd, CONTEXT)
    assert sorted([error.type.value, error.field, error.body] for error in errors) == case["errors"]
    assert sorted(warnings) == sorted(case.get("warnings", ()))
