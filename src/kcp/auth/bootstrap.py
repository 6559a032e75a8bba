"""The policy that holds in every logical cluster without being copied there; it lives in `system:admin`.

Kubernetes' roles for users (plugin/pkg/auth/authorizer/rbac/bootstrappolicy), without those of nodes, schedulers and
controllers that do not run here, and kcp's own. Aggregated roles carry their result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta import wellknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.meta.codec import Object

GROUP: Final = "rbac.authorization.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
WORKSPACE_ACCESS_ROLE: Final = "system:kcp:workspace:access"

_LABEL: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATION: Final = {"rbac.authorization.kubernetes.io/autoupdate": "true"}

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "update", "patch", "delete", "deletecollection")
_READ_WRITE: Final = _READ + _WRITE
_ALL: Final = ("*",)


def cluster_roles() -> list[Object]:
    """All ClusterRoles, as fresh objects without uid and times."""
    simple = [*_kubernetes_roles(), *_kcp_roles()]
    parts = {role["metadata"]["name"]: role for role in _aggregated_parts()}
    view = _aggregate("view", ("view",), [parts["system:aggregate-to-view"]], labelled_for="edit")
    edit = _aggregate("edit", ("edit",), [parts["system:aggregate-to-edit"], view], labelled_for="admin")
    admin = _aggregate("admin", ("admin",), [edit, parts["system:aggregate-to-admin"]])
    return [*simple, admin, edit, view, *parts.values()]


def cluster_role_bindings() -> list[Object]:
    """All ClusterRoleBindings, as fresh objects without uid and times."""
    bootstrapper = wellknown.GROUP_WORKSPACE_BOOTSTRAPPER
    return [
        _binding("cluster-admin", [wellknown.GROUP_MASTERS]),
        _binding("system:monitoring", [wellknown.GROUP_MONITORING]),
        _binding("system:discovery", [wellknown.GROUP_AUTHENTICATED]),
        _binding("system:basic-user", [wellknown.GROUP_AUTHENTICATED]),
        _binding("system:public-info-viewer", [wellknown.GROUP_AUTHENTICATED, wellknown.GROUP_UNAUTHENTICATED]),
        _binding("system:service-account-issuer-discovery", [wellknown.GROUP_SERVICE_ACCOUNTS]),
        _binding("cluster-admin", [wellknown.GROUP_KCP_ADMIN], name="system:kcp:admin:cluster-admin"),
        _binding(bootstrapper, [bootstrapper, wellknown.BINDING_USER_PREFIX + bootstrapper]),
        _binding(wellknown.GROUP_LOGICAL_CLUSTER_ADMIN, [wellknown.GROUP_LOGICAL_CLUSTER_ADMIN]),
        _binding(wellknown.GROUP_EXTERNAL_LOGICAL_CLUSTER_ADMIN, [wellknown.GROUP_EXTERNAL_LOGICAL_CLUSTER_ADMIN]),
    ]


def _kubernetes_roles() -> list[Object]:
    health = ("/livez", "/readyz", "/healthz")
    version = ("/version", "/version/")
    approvers = {"legacy-unknown": "legacy-unknown", "kube-apiserver-client": "kube-apiserver-client"}
    return [
        _role("cluster-admin", [_rule(_ALL, _ALL, _ALL), _urls(_ALL, _ALL)]),
        _role(
            "system:discovery",
            [_urls(["get"], [*health, *version, "/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*"])],
        ),
        _role(
            "system:monitoring",
            [
                _urls(["get"], ["/metrics", "/metrics/slis", *health, *(f"{path}/*" for path in health)]),
                _rule(["get"], [""], ["nodes/metrics"]),
            ],
        ),
        _role(
            "system:basic-user",
            [
                _rule(["create"], ["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
                _rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
            ],
        ),
        _role("system:public-info-viewer", [_urls(["get"], [*health, *version])]),
        _role(
            "system:auth-delegator",
            [
                _rule(["create"], ["authentication.k8s.io"], ["tokenreviews"]),
                _rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
            ],
        ),
        _role(
            "system:service-account-issuer-discovery",
            [
                _urls(
                    ["get"],
                    [
                        "/.well-known/openid-configuration",
                        "/.well-known/openid-configuration/",
                        "/openid/v1/jwks",
                        "/openid/v1/jwks/",
                    ],
                )
            ],
        ),
        *(
            _role(
                f"system:certificates.k8s.io:{name}-approver",
                [{**_rule(["approve"], ["certificates.k8s.io"], ["signers"]), "resourceNames": [f"kubernetes.io/{s}"]}],
            )
            for name, s in approvers.items()
        ),
    ]


def _kcp_roles() -> list[Object]:
    core, tenancy = wellknown.GROUP_CORE, "tenancy.kcp.io"
    return [
        _role(
            "system:kcp:tenancy:reader",
            [
                _rule(_READ, [tenancy], ["workspaces"]),
                _rule(_READ, [tenancy], ["workspacetypes"]),
                _rule(_READ, [core], ["logicalclusters"]),
            ],
        ),
        _role(wellknown.GROUP_WORKSPACE_BOOTSTRAPPER, [_rule(_ALL, _ALL, _ALL), _urls(_ALL, _ALL)]),
        _role(
            wellknown.GROUP_LOGICAL_CLUSTER_ADMIN,
            [
                _rule(_ALL, [core], ["logicalclusters", "logicalclusters/status"]),
                _rule(["delete", "update", "get"], [tenancy], ["workspaces"]),
            ],
        ),
        _role(
            wellknown.GROUP_EXTERNAL_LOGICAL_CLUSTER_ADMIN,
            [
                _rule(["delete", "update", "get"], [core], ["logicalclusters", "logicalclusters/status"]),
                _rule(["delete", "update", "patch", "get"], [tenancy], ["workspaces"]),
                _rule(["get"], [""], ["serviceaccounts", "secrets"]),
                _urls(["access"], ["/"]),
                _rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
            ],
        ),
        _role(WORKSPACE_ACCESS_ROLE, [_urls(["access"], ["/"])]),
        _role("system:kcp:metrics-reader", [_urls(["get"], ["/metrics"])]),
    ]


def _aggregated_parts() -> list[Object]:
    return [
        _role(
            "system:aggregate-to-admin",
            [
                _rule(["create"], ["authorization.k8s.io"], ["localsubjectaccessreviews"]),
                _rule(_READ_WRITE, [GROUP], ["roles", "rolebindings"]),
            ],
            labelled_for="admin",
        ),
        _role("system:aggregate-to-edit", _edit_rules(), labelled_for="edit"),
        _role("system:aggregate-to-view", _view_rules(), labelled_for="view"),
    ]


def _view_rules() -> list[Object]:
    core = "pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status endpoints"
    status = "pods/status resourcequotas/status namespaces/status replicationcontrollers/status pods/log"
    deployments = "deployments deployments/status deployments/scale"
    replicasets = "replicasets replicasets/status replicasets/scale"
    return [
        _read("", f"{core} persistentvolumeclaims persistentvolumeclaims/status configmaps"),
        _read("", f"limitranges resourcequotas bindings {status}"),
        # Within a namespace this is the right to see that namespace.
        _read("", "namespaces"),
        _rule(_READ, ["", "events.k8s.io"], ["events"]),
        _read("discovery.k8s.io", "endpointslices"),
        _read(
            "apps",
            "controllerrevisions statefulsets statefulsets/status statefulsets/scale daemonsets daemonsets/status "
            f"{deployments} {replicasets}",
        ),
        _read("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        _read("batch", "jobs cronjobs cronjobs/status jobs/status"),
        _read(
            "extensions",
            f"daemonsets daemonsets/status {deployments} ingresses ingresses/status {replicasets} "
            "replicationcontrollers/scale networkpolicies",
        ),
        _read("policy", "poddisruptionbudgets poddisruptionbudgets/status"),
        _read("networking.k8s.io", "networkpolicies ingresses ingresses/status"),
        _read("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
    ]


def _edit_rules() -> list[Object]:
    pods = "pods/attach pods/proxy pods/exec pods/portforward"
    deployments = "deployments deployments/scale deployments/rollback"
    return [
        _read("", f"{pods} secrets services/proxy"),
        _rule(["impersonate"], [""], ["serviceaccounts"]),
        _write("", f"pods {pods}"),
        _rule(["create"], [""], ["pods/eviction"]),
        _write(
            "",
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/proxy "
            "persistentvolumeclaims configmaps secrets",
        ),
        _rule(["create"], [""], ["serviceaccounts/token"]),
        _rule(_WRITE, ["", "events.k8s.io"], ["events"]),
        _write("apps", f"statefulsets statefulsets/scale daemonsets {deployments} replicasets replicasets/scale"),
        _write("autoscaling", "horizontalpodautoscalers"),
        _write("batch", "jobs cronjobs"),
        _write(
            "extensions",
            f"daemonsets {deployments} ingresses replicasets replicasets/scale replicationcontrollers/scale "
            "networkpolicies",
        ),
        _write("policy", "poddisruptionbudgets"),
        _write("networking.k8s.io", "networkpolicies ingresses"),
        _rule(_READ_WRITE, ["coordination.k8s.io"], ["leases"]),
        _write("resource.k8s.io", "resourceclaims resourceclaimtemplates"),
    ]


def _read(group: str, resources: str) -> Object:
    return _rule(_READ, [group], resources.split())


def _write(group: str, resources: str) -> Object:
    return _rule(_WRITE, [group], resources.split())


def _rule(verbs: Iterable[str], groups: Iterable[str], resources: Iterable[str]) -> Object:
    return {"verbs": sorted(verbs), "apiGroups": sorted(groups), "resources": sorted(resources)}


def _urls(verbs: Iterable[str], urls: Iterable[str]) -> Object:
    return {"verbs": sorted(verbs), "nonResourceURLs": sorted(urls)}


def _role(name: str, rules: list[Object], *, labelled_for: str = "") -> Object:
    labels = {f"{GROUP}/aggregate-to-{labelled_for}": "true"} if labelled_for else {}
    return {
        "kind": "ClusterRole",
        "apiVersion": API_VERSION,
        "metadata": {"name": name, "labels": {**_LABEL, **labels}, "annotations": dict(_ANNOTATION)},
        "rules": rules,
    }


def _aggregate(name: str, gathers: Iterable[str], parts: list[Object], *, labelled_for: str = "") -> Object:
    """A role whose rules come from others; each rule once, in the order of the parts' names."""
    rules: list[Object] = []
    for part in parts:
        rules += [rule for rule in part["rules"] if rule not in rules]
    selectors = [{"matchLabels": {f"{GROUP}/aggregate-to-{gathered}": "true"}} for gathered in gathers]
    role = _role(name, rules, labelled_for=labelled_for)
    return {**role, "aggregationRule": {"clusterRoleSelectors": selectors}}


def _binding(role: str, groups: list[str], *, name: str = "") -> Object:
    return {
        "kind": "ClusterRoleBinding",
        "apiVersion": API_VERSION,
        "metadata": {"name": name or role, "labels": dict(_LABEL), "annotations": dict(_ANNOTATION)},
        "subjects": [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups],
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
    }
