"""The usage of ResourceQuotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.reconcilers import custom_resource_definitions, quotas
from kcp.store import ResourceKey
from tests.reconcilers.control_plane import CONFIGMAPS, CRDS, QUOTAS, SECRETS, WIDGETS, ControlPlane, crd

if TYPE_CHECKING:
    from kcp.meta.codec import Object


def status_of(plane: ControlPlane, name: str = "quota") -> Object:
    quota = plane.get(QUOTAS, name, "default")
    assert quota is not None
    status: Object = quota["status"]
    return status


async def test_a_new_quota_tells_what_is_used(plane: ControlPlane) -> None:
    plane.start(quotas.new(plane.registry), custom_resource_definitions.new(plane.registry))
    await plane.create(CRDS, "widgets.example.io", **crd())
    await plane.pass_time(1)
    for name in "ab":
        await plane.create(CONFIGMAPS, name, "default")
    await plane.create(WIDGETS, "w", "default")
    hard = {
        "configmaps": "3",
        "count/configmaps": "1k",
        "secrets": "5",
        "resourcequotas": "1",
        "count/widgets.example.io": "2",
        "count/namespaces": "2",
        "count/events": "2",
        "count/nothing.example.io": "2",
        "services": "1",
        "requests.cpu": "500m",
        "example.io/thing": "1",
    }
    await plane.create(QUOTAS, "quota", "default", spec={"hard": hard})
    await plane.pass_time(1)
    assert status_of(plane) == {
        "hard": hard,
        "used": {
            "configmaps": "2",
            "count/configmaps": "2",
            "count/widgets.example.io": "1",
            "requests.cpu": "0",
            "resourcequotas": "1",
            "secrets": "0",
            "services": "0",
        },
    }


async def test_deletions_free_what_was_used(plane: ControlPlane) -> None:
    plane.start(quotas.new(plane.registry))
    await plane.create(QUOTAS, "quota", "default", spec={"hard": {"configmaps": "3"}})
    for name in "abc":
        await plane.create(CONFIGMAPS, name, "default")

    def charge(quota: Object) -> None:
        quota["status"] = {"hard": {"configmaps": "3"}, "used": {"configmaps": "3"}}

    await plane.update(QUOTAS, "quota", "default", charge, subresource="status")
    await plane.delete(CONFIGMAPS, "a", "default")
    await plane.pass_time(1)
    assert status_of(plane)["used"] == {"configmaps": "2"}
    await plane.delete(QUOTAS, "quota", "default")
    await plane.pass_time(1)


async def test_changed_limits_show_in_the_status(plane: ControlPlane) -> None:
    plane.start(quotas.new(plane.registry))
    await plane.create(QUOTAS, "quota", "default", spec={"hard": {"configmaps": "3", "secrets": "1"}})
    await plane.pass_time(1)

    def change(quota: Object) -> None:
        quota["spec"]["hard"] = {"secrets": "2"}

    await plane.update(QUOTAS, "quota", "default", change)
    await plane.pass_time(1)
    assert status_of(plane) == {"hard": {"secrets": "2"}, "used": {"secrets": "0"}}


async def test_what_was_charged_for_nothing_is_found_by_and_by(plane: ControlPlane) -> None:
    plane.start(quotas.new(plane.registry, resync_seconds=300))
    await plane.create(QUOTAS, "quota", "default", spec={"hard": {"secrets": "3"}})
    await plane.pass_time(1)
    await plane.create(SECRETS, "s", "default")
    await plane.settle()
    assert status_of(plane)["used"] == {"secrets": "0"}, "admission would have charged it"
    await plane.pass_time(310)
    assert status_of(plane)["used"] == {"secrets": "1"}


async def test_an_unchanged_quota_is_not_written(plane: ControlPlane) -> None:
    plane.start(quotas.new(plane.registry))
    await plane.create(QUOTAS, "quota", "default", spec={"hard": {"secrets": "3"}})
    await plane.pass_time(1)
    before = plane.get(QUOTAS, "quota", "default")
    await plane.create(CONFIGMAPS, "c", "default")
    await plane.delete(CONFIGMAPS, "c", "default")
    await plane.pass_time(1)
    assert plane.get(QUOTAS, "quota", "default") == before


@pytest.mark.parametrize(
    "spec",
    [
        {"scopes": ["BestEffort"]},
        {"scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]}},
    ],
    ids=["scopes", "selector"],
)
def test_scopes_choose_no_other_objects_than_pods(spec: Object) -> None:
    quota: Object = {"spec": {"hard": {"count/configmaps": "1"}, **spec}}
    assert quotas.make_status(quota, lambda key: 7)["used"] == {"count/configmaps": "0"}


def test_usage_of_what_cannot_be_counted_stays() -> None:
    quota: Object = {
        "spec": {"hard": {"count/things.gone.io": "5"}},
        "status": {"used": {"count/things.gone.io": "3", "secrets": "1"}},
    }
    asked: list[ResourceKey] = []
    status = quotas.make_status(quota, lambda key: asked.append(key))
    assert status["used"] == {"count/things.gone.io": "3"}
    assert asked == [ResourceKey("gone.io", "things")]


def test_amounts_are_compared_not_texts() -> None:
    assert not quotas.is_different({"hard": {"cpu": "1000m"}}, {"hard": {"cpu": "1"}})
    assert quotas.is_different({"hard": {"cpu": "1"}}, {"hard": {"cpu": "1"}, "used": {"cpu": "0"}})
    assert quotas.make_status({"spec": {}}, lambda key: 1) == {}
