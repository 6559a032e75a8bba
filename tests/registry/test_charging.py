"""Charging a quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from kcp.meta import errors
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.charging import QuotaCharger
from kcp.store import NoSpace
from tests.registry.verbs import CLUSTER, OTHER, Verbs

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.store import Store

QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
USED = {"configmaps": "1"}


@pytest.fixture
async def quota(verbs: Verbs) -> Object:
    return await verbs.create(QUOTAS, "q", spec={"hard": {"configmaps": "2"}})


@pytest.fixture
def charger(verbs: Verbs) -> QuotaCharger:
    return QuotaCharger(cast("Store", verbs.racing))


async def test_what_is_used_is_written(verbs: Verbs, quota: Object, charger: QuotaCharger) -> None:
    assert await charger.charge(CLUSTER, "default", "q", USED, quota["metadata"]["resourceVersion"])
    changed = verbs.get(QUOTAS, "q")
    assert changed is not None
    assert changed["status"] == {**quota.get("status", {}), "used": USED}
    assert changed["spec"] == quota["spec"]
    assert changed["metadata"]["resourceVersion"] == str(verbs.store.revision)


@pytest.mark.parametrize(
    ("cluster", "name", "version"),
    [(CLUSTER, "q", "1"), (CLUSTER, "none", None), (OTHER, "q", None)],
    ids=["changed before", "missing", "another cluster"],
)
async def test_nothing_is_written_to_another_quota(
    verbs: Verbs, quota: Object, charger: QuotaCharger, cluster: str, name: str, version: str | None
) -> None:
    before = verbs.store.revision
    assert not await charger.charge(cluster, "default", name, USED, version or quota["metadata"]["resourceVersion"])
    assert verbs.store.revision == before


async def test_of_two_charges_at_once_one_counts(verbs: Verbs, quota: Object, charger: QuotaCharger) -> None:
    version = quota["metadata"]["resourceVersion"]
    verbs.racing.meanwhile = [lambda: charger.charge(CLUSTER, "default", "q", {"configmaps": "2"}, version)]
    assert not await charger.charge(CLUSTER, "default", "q", USED, version)
    changed = verbs.get(QUOTAS, "q")
    assert changed is not None
    assert changed["status"]["used"] == {"configmaps": "2"}


async def test_a_store_that_cannot_write_is_told(verbs: Verbs, quota: Object, charger: QuotaCharger) -> None:
    async def fail() -> None:
        raise NoSpace("full")

    verbs.racing.meanwhile = [fail]
    with pytest.raises(errors.ServiceUnavailable):
        await charger.charge(CLUSTER, "default", "q", USED, quota["metadata"]["resourceVersion"])
