"""The policy that every logical cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.auth import bootstrap
from kcp.auth.attributes import Attributes
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.rules import covers
from kcp.auth.user import UserInfo
from tests.auth.cluster_objects import FakeReader

if TYPE_CHECKING:
    from kcp.meta.codec import Object

ROLES = {role["metadata"]["name"]: role for role in bootstrap.cluster_roles()}


def test_discovery_is_as_in_kubernetes() -> None:
    assert ROLES["system:discovery"] == {
        "kind": "ClusterRole",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {
            "name": "system:discovery",
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
        "rules": [
            {
                "verbs": ["get"],
                "nonResourceURLs": [
                    "/api",
                    "/api/*",
                    "/apis",
                    "/apis/*",
                    "/healthz",
                    "/livez",
                    "/openapi",
                    "/openapi/*",
                    "/readyz",
                    "/version",
                    "/version/",
                ],
            }
        ],
    }


@pytest.mark.parametrize(("larger", "smaller"), [("cluster-admin", "admin"), ("admin", "edit"), ("edit", "view")])
def test_each_aggregated_role_covers_the_next(larger: str, smaller: str) -> None:
    assert covers(ROLES[larger]["rules"], ROLES[smaller]["rules"])
    assert not covers(ROLES[smaller]["rules"], ROLES[larger]["rules"])


@pytest.mark.parametrize("name", ["admin", "edit", "view"])
def test_aggregated_roles_hold_what_their_selector_gathers(name: str) -> None:
    (selector,) = ROLES[name]["aggregationRule"]["clusterRoleSelectors"]
    gathered = [
        rule
        for _, role in sorted(ROLES.items())
        for rule in role["rules"]
        if selector["matchLabels"].items() <= role["metadata"]["labels"].items()
    ]
    assert ROLES[name]["rules"] == gathered


def test_bindings_lead_to_roles() -> None:
    bindings = bootstrap.cluster_role_bindings()
    assert all(binding["roleRef"]["name"] in ROLES for binding in bindings)
    assert len({binding["metadata"]["name"] for binding in bindings}) == len(bindings)


def test_objects_are_fresh() -> None:
    changed: Object = bootstrap.cluster_roles()[0]
    changed["metadata"]["labels"]["x"] = "y"
    assert "x" not in bootstrap.cluster_roles()[0]["metadata"]["labels"]


@pytest.mark.parametrize(
    ("groups", "attributes", "allowed"),
    [
        pytest.param(("system:kcp:admin",), {"verb": "delete", "resource": "x"}, True, id="kcp admins do everything"),
        pytest.param(("system:authenticated",), {"verb": "get", "path": "/apis/apps"}, True, id="users discover"),
        pytest.param(("system:unauthenticated",), {"verb": "get", "path": "/version"}, True, id="all see the version"),
        pytest.param(("system:unauthenticated",), {"verb": "get", "path": "/apis"}, False, id="nobody discovers"),
        pytest.param(("system:monitoring",), {"verb": "get", "path": "/metrics"}, True, id="monitoring"),
        pytest.param(
            ("system:authenticated",),
            {"verb": "create", "group": "authorization.k8s.io", "resource": "selfsubjectaccessreviews"},
            True,
            id="users ask about themselves",
        ),
        pytest.param(("system:authenticated",), {"verb": "access", "path": "/"}, False, id="users enter no workspace"),
    ],
)
def test_who_may_what_in_any_cluster(groups: tuple[str, ...], attributes: dict[str, str], allowed: bool) -> None:
    rbac = RBACAuthorizer(FakeReader())
    question = Attributes(user=UserInfo("somebody", groups=groups), cluster="any", **attributes)
    assert rbac.authorize(question).allowed is allowed
