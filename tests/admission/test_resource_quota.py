"""Object counts are held under the limits of the namespace's quotas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from kcp.admission.resource_quota import ResourceQuota, resource_names
from kcp.meta.errors import Conflict, Forbidden
from kcp.meta.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from tests.admission.fakes import CLUSTER, WIDGETS, FakeReader, widget, write

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNT = "count/widgets.conf.test"


class FakeCharger:
    """Writes to the reader's objects; `stolen` makes so many charges lose against another server."""

    def __init__(self, reader: FakeReader) -> None:
        self.reader = reader
        self.stolen = 0
        self.charges = 0
        self.gate: asyncio.Event | None = None
        self.error: Exception | None = None

    async def charge(
        self, cluster: str, namespace: str, name: str, used: Mapping[str, str], expected_resource_version: str
    ) -> bool:
        self.charges += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        quota = self.reader.objects[cluster, "", "resourcequotas", namespace, name]
        if self.stolen:
            self.stolen -= 1
            self._bump(quota)
        if quota["metadata"]["resourceVersion"] != expected_resource_version:
            return False
        quota["status"]["used"] = dict(used)
        self._bump(quota)
        return True

    @staticmethod
    def _bump(quota: dict[str, Any]) -> None:
        quota["metadata"]["resourceVersion"] = str(int(quota["metadata"]["resourceVersion"]) + 1)


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def charger(reader: FakeReader) -> FakeCharger:
    return FakeCharger(reader)


@pytest.fixture
def plugin(reader: FakeReader, charger: FakeCharger) -> ResourceQuota:
    return ResourceQuota(reader, charger)


def add_quota(reader: FakeReader, name: str = "q", spec: Any = None, **status: Any) -> dict[str, Any]:  # noqa: ANN401
    metadata = {"name": name, "namespace": "ns", "resourceVersion": "5"}
    return reader.add("", "resourcequotas", {"metadata": metadata, "spec": spec or {}, "status": status})


async def test_writes_are_counted_until_the_limit(reader: FakeReader, plugin: ResourceQuota) -> None:
    quota = add_quota(reader, hard={COUNT: "2", "count/secrets": "9"}, used={COUNT: "1", "count/secrets": "0"})
    await plugin.validate(write(widget("one")))
    assert quota["status"]["used"] == {COUNT: "2", "count/secrets": "0"}
    with pytest.raises(Forbidden) as caught:
        await plugin.validate(write(widget("two")))
    assert caught.value.message == (
        'widgets.conf.test "two" is forbidden: exceeded quota: q, '
        f"requested: {COUNT}=1, used: {COUNT}=2, limited: {COUNT}=2"
    )
    assert caught.value.details == {"name": "two", "group": "conf.test", "kind": "widgets"}


async def test_usage_that_is_not_known_yet_refuses(reader: FakeReader, plugin: ResourceQuota) -> None:
    add_quota(reader, hard={COUNT: "2"})
    with pytest.raises(Forbidden, match=f"status unknown for quota: q, resources: {COUNT}"):
        await plugin.validate(write(widget()))


async def test_the_short_names_count_as_well(reader: FakeReader, plugin: ResourceQuota) -> None:
    quota = add_quota(
        reader, hard={"configmaps": "1k", "count/configmaps": "1"}, used={"configmaps": "0", "count/configmaps": "0"}
    )
    kind = {"gvr": GroupVersionResource("", "v1", "configmaps"), "gvk": GroupVersionKind("", "v1", "ConfigMap")}
    await plugin.validate(write({"metadata": {"name": "c"}}, **kind))
    assert quota["status"]["used"] == {"configmaps": "1", "count/configmaps": "1"}
    with pytest.raises(Forbidden, match="requested: count/configmaps=1, used: count/configmaps=1, limited"):
        await plugin.validate(write({"metadata": {"name": "d"}}, **kind))


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"dry_run": True}, id="dry run"),
        pytest.param({"namespace": "other"}, id="other namespace"),
        pytest.param({"namespace": ""}, id="cluster-scoped"),
        pytest.param({"subresource": "status"}, id="subresource"),
        pytest.param({"gvr": GroupVersionResource("events.k8s.io", "v1", "events")}, id="events"),
        pytest.param({"gvr": GroupVersionResource("", "v1", "namespaces")}, id="namespace"),
        pytest.param({"cluster": "elsewhere"}, id="other cluster"),
        pytest.param({"gvr": GroupVersionResource("conf.test", "v1", "gadgets")}, id="other kind"),
    ],
)
async def test_what_is_not_counted_changes_nothing(
    reader: FakeReader, plugin: ResourceQuota, charger: FakeCharger, more: dict[str, Any]
) -> None:
    add_quota(reader, hard={COUNT: "2"}, used={COUNT: "0"})
    await plugin.validate(write(widget(), **more))
    assert charger.charges == 0


@pytest.mark.parametrize(
    "spec",
    [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": [{"scopeName": "Terminating"}]}}],
    ids=["scopes", "selector"],
)
async def test_quotas_for_scopes_of_pods_do_not_count_other_objects(
    reader: FakeReader, plugin: ResourceQuota, spec: dict[str, Any]
) -> None:
    add_quota(reader, spec=spec, hard={COUNT: "0"}, used={COUNT: "0"})
    await plugin.validate(write(widget()))


async def test_quotas_are_looked_for_once_until_they_change(reader: FakeReader, plugin: ResourceQuota) -> None:
    await plugin.validate(write(widget()))
    await plugin.validate(write(widget()))
    assert reader.lists == 1
    add_quota(reader, hard={COUNT: "0"}, used={COUNT: "0"})
    plugin.forget(CLUSTER, "", "configmaps")
    await plugin.validate(write(widget()))
    plugin.forget(CLUSTER, "", "resourcequotas")
    with pytest.raises(Forbidden):
        await plugin.validate(write(widget()))


async def test_a_lost_race_is_tried_again(reader: FakeReader, plugin: ResourceQuota, charger: FakeCharger) -> None:
    first, second = (add_quota(reader, name, hard={COUNT: "5"}, used={COUNT: "0"}) for name in ("a", "b"))
    charger.stolen = 1
    await plugin.validate(write(widget()))
    assert (first["status"]["used"], second["status"]["used"]) == ({COUNT: "1"}, {COUNT: "1"})


async def test_a_race_that_is_always_lost_is_a_conflict(
    reader: FakeReader, plugin: ResourceQuota, charger: FakeCharger
) -> None:
    add_quota(reader, hard={COUNT: "5"}, used={COUNT: "0"})
    charger.stolen = 100
    with pytest.raises(Conflict, match='resourcequotas "q": the object has been modified'):
        await plugin.validate(write(widget()))


async def test_writes_that_come_together_are_charged_together(
    reader: FakeReader, plugin: ResourceQuota, charger: FakeCharger
) -> None:
    quota = add_quota(reader, hard={COUNT: "3"}, used={COUNT: "0"})
    charger.gate = asyncio.Event()
    tasks = [asyncio.ensure_future(plugin.validate(write(widget(f"w{n}")))) for n in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    charger.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(result, Forbidden) for result in results] == [False] * 3 + [True] * 2
    assert quota["status"]["used"] == {COUNT: "3"}
    assert charger.charges == 2  # the first write alone, then the rest


async def test_others_go_on_when_the_one_that_counts_is_cancelled(
    reader: FakeReader, plugin: ResourceQuota, charger: FakeCharger
) -> None:
    quota = add_quota(reader, hard={COUNT: "9"}, used={COUNT: "0"})
    charger.gate = asyncio.Event()
    tasks = [asyncio.ensure_future(plugin.validate(write(widget(f"w{n}")))) for n in range(4)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[2].cancel()
    charger.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [True, False, True, False]
    assert quota["status"]["used"] == {COUNT: "2"}
    await plugin.validate(write(widget("later")))
    assert quota["status"]["used"] == {COUNT: "3"}


async def test_a_failure_to_charge_is_that_writes_own(
    reader: FakeReader, plugin: ResourceQuota, charger: FakeCharger
) -> None:
    add_quota(reader, hard={COUNT: "9"}, used={COUNT: "0"})
    charger.error = RuntimeError("disk")
    with pytest.raises(RuntimeError, match="disk"):
        await plugin.validate(write(widget()))
    charger.error = None
    await plugin.validate(write(widget()))


def test_names_of_counts() -> None:
    assert resource_names(WIDGETS.group_resource) == (COUNT,)
    assert resource_names(GroupResource("", "secrets")) == ("count/secrets", "secrets")
    assert resource_names(GroupResource("", "serviceaccounts")) == ("count/serviceaccounts",)
