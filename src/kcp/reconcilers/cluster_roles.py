"""ClusterRoles that gather the rules of others.

Watches: ClusterRoles.
Writes: `rules` of ClusterRoles with an aggregationRule.
Steps: for each such role of the logical cluster, unite the rules of the roles that its selectors choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kcp.controller.client import LocalClient
from kcp.controller.controller import DONE, Controller, Outcome, Watch
from kcp.meta import errors, labels
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.changes import ResourceKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from kcp.meta.codec import Object
    from kcp.registry.changes import Change
    from kcp.registry.registry import Registry

NAME: Final = "cluster-roles"
MANAGER: Final = "clusterrole-aggregation-controller"  # as Kubernetes'
CLUSTER_ROLES: Final = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")


@dataclass(frozen=True, slots=True)
class Deps:
    list_roles: Callable[[str], list[Object]]
    """Of a logical cluster, by name."""

    update_role: Callable[[str, str, Callable[[Object], None]], Awaitable[Object]]


async def reconcile(cluster: str, deps: Deps) -> Outcome:
    roles = deps.list_roles(cluster)
    for role in roles:
        rule = role.get("aggregationRule")
        if rule is None:
            continue
        rules = unite_rules(role["metadata"]["name"], rule, roles)
        if rules != (role.get("rules") or []):
            await reconcile_role(cluster, role["metadata"]["name"], rules, deps)
    return DONE


async def reconcile_role(cluster: str, name: str, rules: list[Object], deps: Deps) -> None:
    def mutate(role: Object) -> None:
        if role.get("aggregationRule") is not None:
            role["rules"] = rules or None

    try:
        await deps.update_role(cluster, name, mutate)
    except errors.NotFound:
        return


def unite_rules(name: str, aggregation_rule: Object, roles: Iterable[Object]) -> list[Object]:
    """The rules of all roles but `name` that are selected, each once. Raises ValueError for a bad selector.

    `roles` are sorted by name, which is the order of their rules for each selector.
    """
    rules: list[Object] = []
    for label_selector in aggregation_rule.get("clusterRoleSelectors") or ():
        selector = labels.from_label_selector(label_selector)
        chosen = [role for role in roles if selector.matches(role["metadata"].get("labels") or {})]
        for rule in (rule for role in chosen if role["metadata"]["name"] != name for rule in role.get("rules") or ()):
            if rule not in rules:
                rules.append(rule)
    return rules


def new(registry: Registry) -> Controller[str]:
    client = LocalClient(registry, NAME, MANAGER)

    async def update_role(cluster: str, name: str, mutate: Callable[[Object], None]) -> Object:
        return await client.update(cluster, CLUSTER_ROLES, "", name, mutate)

    deps = Deps(list_roles=lambda cluster: client.list(cluster, CLUSTER_ROLES), update_role=update_role)
    return Controller(
        NAME,
        lambda cluster: reconcile(cluster, deps),
        watches=(Watch(ResourceKey(CLUSTER_ROLES.group, CLUSTER_ROLES.resource), _cluster_keys),),
    )


def _cluster_keys(change: Change) -> Iterable[str]:
    """Any role may be gathered by any other of its cluster."""
    yield change.key.cluster
