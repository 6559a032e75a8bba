"""Versions of definitions and their discovery."""

from __future__ import annotations

from typing import Any

import pytest

from kcp.registry.strategies.crd_versions import (
    deprecation_warning,
    find_version,
    served_versions,
    storage_version,
    storage_version_hash,
)


def definition(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    versions = [
        {"name": "v1beta1", "served": True, "storage": False, "deprecated": True},
        {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}, "scale": {}}},
        {"name": "v1alpha1", "served": True, "storage": False, "deprecated": True, "deprecationWarning": "stop"},
        {"name": "v2", "served": False, "storage": False},
    ]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]}
    return {
        "spec": {"group": "example.test", "scope": "Namespaced", "names": names, "versions": versions} | more,
        "status": {"acceptedNames": names, "conditions": []},
    }


def test_versions_are_ranked_as_clients_prefer_them() -> None:
    crd = definition()
    assert storage_version(crd) == "v1"
    assert served_versions(crd) == ["v1", "v1beta1", "v1alpha1"]
    assert find_version(crd, "v2")["served"] is False
    with pytest.raises(KeyError):
        find_version(crd, "v3")


@pytest.mark.parametrize(
    ("version", "warning"),
    [
        ("v1", ""),
        ("v1beta1", "example.test/v1beta1 Widget is deprecated; use example.test/v1 Widget"),
        ("v1alpha1", "stop"),
    ],
)
def test_deprecated_versions_warn(version: str, warning: str) -> None:
    assert deprecation_warning(definition(), version) == warning


def test_a_deprecated_version_without_a_better_one_just_says_so() -> None:
    crd = definition(versions=[{"name": "v1", "served": True, "storage": True, "deprecated": True}])
    assert deprecation_warning(crd, "v1") == "example.test/v1 Widget is deprecated"


def test_the_hash_names_the_stored_version_if_it_is_served() -> None:
    crd = definition(group="")
    crd["spec"]["names"]["kind"] = "ConfigMap"
    assert storage_version_hash(crd) == "qFsyl6wFWjQ="
    crd["spec"]["versions"][1]["served"] = False
    assert storage_version_hash(crd) == ""
