"""Which decoder a kind gets."""

from __future__ import annotations

import pytest

from kcp.apis.typed import typed_for
from kcp.meta.gvk import GroupVersionKind

ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role")


def test_decoders_are_made_once() -> None:
    assert typed_for(ROLE) is typed_for(ROLE)


def test_a_kind_that_is_not_built_in_has_none() -> None:
    with pytest.raises(KeyError):
        typed_for(GroupVersionKind("", "v1", "Pod"))


def test_empty_lists_are_null_where_kubernetes_stores_protobuf() -> None:
    assert typed_for(ROLE).decode({"rules": []})["rules"] is None


def test_empty_lists_stay_where_kubernetes_stores_json() -> None:
    crd = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    assert typed_for(crd).decode({"spec": {"versions": []}})["spec"]["versions"] == []


def test_options_are_decoded_in_any_group_version() -> None:
    options = typed_for(GroupVersionKind("example.com", "v1", "DeleteOptions"))
    assert options.decode({"gracePeriodSeconds": 0, "dryRun": []}) == {"gracePeriodSeconds": 0}
