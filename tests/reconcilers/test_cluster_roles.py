"""Aggregated ClusterRoles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcp.reconcilers import cluster_roles
from tests.reconcilers.control_plane import CLUSTER_ROLES, ControlPlane

if TYPE_CHECKING:
    from kcp.meta.codec import Object


def rule(resource: str) -> Object:
    return {"verbs": ["get"], "apiGroups": [""], "resources": [resource]}


AGGREGATION: Object = {"clusterRoleSelectors": [{"matchLabels": {"to": "view"}}, {"matchLabels": {"to": "edit"}}]}


async def make(plane: ControlPlane, name: str, *resources: str, **labels: str) -> None:
    await plane.create(CLUSTER_ROLES, name, rules=[rule(each) for each in resources], metadata={"labels": labels})


def resources_of(plane: ControlPlane, name: str = "all") -> list[str]:
    role: Any = plane.get(CLUSTER_ROLES, name)
    return [each["resources"][0] for each in role["rules"] or ()]


async def test_rules_are_gathered_by_selector_then_name_each_once(plane: ControlPlane) -> None:
    plane.start(cluster_roles.new(plane.registry))
    await plane.create(CLUSTER_ROLES, "all", rules=[rule("mine")], aggregationRule=AGGREGATION)
    await make(plane, "b", "secrets", "configmaps", "secrets", to="view")
    await make(plane, "a", "configmaps", "events", to="view")
    await make(plane, "c", "leases", "events", to="edit")
    await make(plane, "d", "pods", to="nobody")
    await plane.settle()
    assert resources_of(plane) == ["configmaps", "events", "secrets", "leases"]


async def test_rules_follow_their_roles(plane: ControlPlane) -> None:
    plane.start(cluster_roles.new(plane.registry))
    await plane.create(CLUSTER_ROLES, "all", rules=[], aggregationRule=AGGREGATION, metadata={"labels": {"to": "view"}})
    await make(plane, "a", "configmaps", to="view")
    await plane.settle()
    assert resources_of(plane) == ["configmaps"]
    await plane.delete(CLUSTER_ROLES, "a")
    await plane.settle()
    assert resources_of(plane) == []


async def test_other_clusters_and_plain_roles_are_left_alone(plane: ControlPlane) -> None:
    plane.start(cluster_roles.new(plane.registry))
    await plane.create(CLUSTER_ROLES, "all", rules=[], aggregationRule=AGGREGATION)
    await plane.create(
        CLUSTER_ROLES, "a", cluster="other", rules=[rule("secrets")], metadata={"labels": {"to": "view"}}
    )
    await make(plane, "plain", "events")
    await plane.settle()
    assert resources_of(plane) == []
    assert resources_of(plane, "plain") == ["events"]


async def test_a_role_that_goes_meanwhile_is_no_failure() -> None:
    from kcp.meta import errors

    async def update(cluster: str, name: str, mutate: object) -> Object:
        raise errors.NotFound(CLUSTER_ROLES.group_resource, name)

    role: Object = {"metadata": {"name": "all"}, "aggregationRule": AGGREGATION, "rules": [rule("old")]}
    await cluster_roles.reconcile("root", cluster_roles.Deps(lambda cluster: [role], update))


async def test_a_role_that_stops_gathering_keeps_its_rules(plane: ControlPlane) -> None:
    updated: list[Object] = []

    async def update(cluster: str, name: str, mutate: Any) -> Object:  # noqa: ANN401 - a function
        role: Object = {"metadata": {"name": "all"}, "rules": [rule("old")]}
        mutate(role)
        updated.append(role)
        return role

    role: Object = {"metadata": {"name": "all"}, "aggregationRule": AGGREGATION, "rules": [rule("old")]}
    await cluster_roles.reconcile("root", cluster_roles.Deps(lambda cluster: [role], update))
    assert updated[0]["rules"] == [rule("old")]
