"""A valid object of every built-in kind that is stored."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from tests.auth.test_x509 import make_request
from tests.endpoints.api import definition

if TYPE_CHECKING:
    from kcp.apis.builtin import Resource
    from kcp.meta.codec import Object

_RBAC: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = [{"kind": "User", "name": "jane", "apiGroup": _RBAC}]
_RULES: Final = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
_WEBHOOK: Final = {
    "name": "hook.example.io",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [{"apiGroups": ["none.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}],
}
_EVENT_TIME: Final = "2025-01-01T00:00:00.000000Z"
_FIELDS: Final[dict[str, Object]] = {
    "configmaps": {"data": {"k": "v"}, "binaryData": {"b": "AAEC"}},
    "events.": {"involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "a"}, "count": 3},
    "limitranges": {"spec": {"limits": [{"type": "Container", "default": {"cpu": "100m", "memory": "1Gi"}}]}},
    "namespaces": {},
    "resourcequotas": {"spec": {"hard": {"count/widgets.example.io": "5"}}},
    "secrets": {"type": "Opaque", "data": {"k": "dmFsdWU="}},
    "serviceaccounts": {"automountServiceAccountToken": False},
    "events.events.k8s.io": {
        "eventTime": _EVENT_TIME,
        "reportingController": "example.io/c",
        "reportingInstance": "i",
        "action": "Act",
        "reason": "Because",
        "type": "Normal",
        "regarding": {"kind": "ConfigMap", "namespace": "default", "name": "a"},
    },
    "clusterrolebindings": {"subjects": _SUBJECTS, "roleRef": {"kind": "ClusterRole", "name": "a", "apiGroup": _RBAC}},
    "clusterroles": {"rules": _RULES},
    "rolebindings": {"subjects": _SUBJECTS, "roleRef": {"kind": "Role", "name": "a", "apiGroup": _RBAC}},
    "roles": {"rules": _RULES},
    "mutatingwebhookconfigurations": {"webhooks": [_WEBHOOK]},
    "validatingadmissionpolicies": {
        "spec": {
            "matchConstraints": {"resourceRules": _WEBHOOK["rules"]},
            "validations": [{"expression": "true", "message": "fine"}],
        }
    },
    "validatingadmissionpolicybindings": {"spec": {"policyName": "a", "validationActions": ["Deny"]}},
    "validatingwebhookconfigurations": {"webhooks": [_WEBHOOK]},
    "leases": {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": _EVENT_TIME}},
}


def valid_object(resource: Resource, name: str = "probe") -> Object:
    plural, group = resource.gvr.resource, resource.gvr.group
    fields = _FIELDS.get(plural) or _FIELDS.get(f"{plural}.{group}") or {}
    if plural == "customresourcedefinitions":
        return definition()
    if plural == "certificatesigningrequests":
        request = base64.b64encode(make_request()).decode()
        fields = {"spec": {"request": request, "signerName": "example.io/signer", "usages": ["client auth"]}}
    metadata: Object = {"name": name, "labels": {"a": "b"}, "annotations": {"c": "d"}}
    if resource.namespaced:
        metadata["namespace"] = "default"
    return {"kind": resource.kind, "apiVersion": resource.gvk.api_version, "metadata": metadata, **fields}


def collection_of(resource: Resource) -> str:
    """Its path in the namespace default."""
    gvr = resource.gvr
    base = f"/apis/{gvr.group}/{gvr.version}" if gvr.group else f"/api/{gvr.version}"
    return f"{base}/namespaces/default/{gvr.resource}" if resource.namespaced else f"{base}/{gvr.resource}"
