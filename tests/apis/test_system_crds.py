"""This project's own kinds, as definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.apis.system_crds import system_crds

if TYPE_CHECKING:
    from kcp.meta.codec import Object


def test_they_are_read_once_and_in_order() -> None:
    names = [crd["metadata"]["name"] for crd in system_crds()]
    assert names == sorted(names)
    assert "logicalclusters.core.kcp.io" in names
    assert system_crds() is system_crds()


@pytest.mark.parametrize("crd", system_crds(), ids=lambda crd: crd["metadata"]["name"])
def test_each_is_a_whole_definition(crd: Object) -> None:
    """Nobody validates or defaults them, so they have to be right as they are."""
    spec = crd["spec"]
    assert (crd["apiVersion"], crd["kind"]) == ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert crd["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert {"plural", "singular", "kind", "listKind"} <= spec["names"].keys()
    assert spec["scope"] in ("Cluster", "Namespaced")
    assert [version["storage"] for version in spec["versions"]].count(True) == 1
    assert all(version["schema"]["openAPIV3Schema"]["type"] == "object" for version in spec["versions"])
