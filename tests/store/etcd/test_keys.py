"""Names in etcd, and what is none."""

from __future__ import annotations

import pytest

from kcp.store.etcd.keys import EtcdKeys
from kcp.store.keys import MAX_TAIL_BYTES, ObjectKey, ResourceKey
from tests.store.objects import CONFIGMAPS, key

KEYS = EtcdKeys("/kcp")


@pytest.mark.parametrize(
    "object_key",
    [
        pytest.param(key("x"), id="namespaced"),
        pytest.param(ObjectKey(ResourceKey("apis.kcp.io", "apiexports", "id"), "root", "", "x"), id="cluster-scoped"),
        pytest.param(ObjectKey(CONFIGMAPS, "root", "default", "ü"), id="not-ascii"),
    ],
)
def test_an_object_is_found_under_its_name(object_key: ObjectKey) -> None:
    assert KEYS.decode(KEYS.encode(object_key)) == object_key


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("_/configmaps/_/root/default/", id="no-name"),
        pytest.param("_/configmaps/_//default/x", id="no-cluster"),
        pytest.param(f"_/configmaps/_/root/default/{'x' * MAX_TAIL_BYTES}", id="too-long"),
        pytest.param("_/cönfigmaps/_/root/default/x", id="resource-not-ascii"),
        pytest.param("/configmaps/_/root/default/x", id="a-second-spelling"),
        pytest.param("_/configmaps/root/default/x", id="too-few-parts"),
        pytest.param("_/configmaps/_/root/default/x/y", id="too-many-parts"),
    ],
)
def test_what_kcp_could_not_have_written_is_no_object(name: str) -> None:
    assert KEYS.decode(KEYS.objects[0] + name.encode()) is None
