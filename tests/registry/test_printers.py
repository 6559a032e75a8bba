"""The cells of built-in resources; the expected ones are those of Kubernetes' printers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kcp.registry.tables import convertor_for

if TYPE_CHECKING:
    from kcp.meta.codec import Object

NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
META = {"name": "x", "creationTimestamp": "2025-01-02T03:00:00Z"}
AGE = "4m5s"
ADMISSION, RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
CSR = ("certificates.k8s.io", "certificatesigningrequests")
BINDING = (ADMISSION, "validatingadmissionpolicybindings")
SELECTOR = {
    "matchLabels": {"b": "1", "a": "2"},
    "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}, {"key": "z", "operator": "Exists"}],
}
SELECTOR_TEXT = (
    "&LabelSelector{MatchLabels:map[string]string{a: 2,b: 1,},MatchExpressions:[]LabelSelectorRequirement{"
    "LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},"
    "LabelSelectorRequirement{Key:z,Operator:Exists,Values:[],},},}"
)
SUBJECTS = [
    {"kind": "User", "name": "a"},
    {"kind": "User", "name": "b"},
    {"kind": "Group", "name": "g"},
    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    {"kind": "Odd", "name": "o"},
]
QUOTA = {
    "hard": {"limits.cpu": "1", "limits.memory": "1Gi", "pods": "2", "cpu": "2", "limits": "3"},
    "used": {"cpu": "1"},
}
CORE_EVENT = {"involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "f"}, "type": "Normal", "reason": "r"}


@pytest.mark.parametrize(
    ("resource", "fields", "cells"),
    [
        pytest.param(("", "namespaces"), {"status": {"phase": "Active"}}, ["x", "Active", AGE], id="namespace"),
        pytest.param(("", "namespaces"), {}, ["x", "", AGE], id="namespace without status"),
        pytest.param(("", "configmaps"), {"data": {"a": "b"}, "binaryData": {"c": ""}}, ["x", 2, AGE], id="config map"),
        pytest.param(("", "secrets"), {"type": "Opaque", "data": {"a": ""}}, ["x", "Opaque", 1, AGE], id="secret"),
        pytest.param(("", "serviceaccounts"), {}, ["x", AGE], id="service account"),
        pytest.param(
            ("", "resourcequotas"),
            {"status": QUOTA},
            ["x", "cpu: 1/2, limits: 0/3, pods: 0/2", "limits.cpu: 0/1, limits.memory: 0/1Gi", AGE],
            id="resource quota",
        ),
        pytest.param(("", "resourcequotas"), {}, ["x", "", "", AGE], id="resource quota without status"),
        pytest.param(("", "limitranges"), {}, ["x", "2025-01-02T03:00:00Z"], id="limit range"),
        pytest.param((RBAC, "roles"), {}, ["x", "2025-01-02T03:00:00Z"], id="role"),
        pytest.param(
            ("apiextensions.k8s.io", "customresourcedefinitions"), {}, ["x", META["creationTimestamp"]], id="crd"
        ),
        pytest.param(("coordination.k8s.io", "leases"), {"spec": {"holderIdentity": "h"}}, ["x", "h", AGE], id="lease"),
        pytest.param(("coordination.k8s.io", "leases"), {}, ["x", "", AGE], id="lease of nobody"),
        pytest.param(
            (RBAC, "rolebindings"),
            {"roleRef": {"kind": "Role", "name": "r"}, "subjects": SUBJECTS},
            ["x", "Role/r", AGE, "a, b", "g", "n/s"],
            id="role binding",
        ),
        pytest.param(
            (RBAC, "clusterrolebindings"), {}, ["x", "/", AGE, "", "", ""], id="cluster role binding of nobody"
        ),
        pytest.param(
            CSR,
            {
                "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3700},
                "status": {"conditions": [{"type": "Approved"}, {"type": "Failed"}], "certificate": "YQ=="},
            },
            ["x", AGE, "s", "u", "61m", "Approved,Failed,Issued"],
            id="signing request",
        ),
        pytest.param(CSR, {}, ["x", AGE, "<none>", "", "<none>", "Pending"], id="signing request, new"),
        pytest.param(
            CSR,
            {"status": {"conditions": [{"type": "Approved"}, {"type": "Denied"}]}},
            ["x", AGE, "<none>", "", "<none>", "Denied"],
            id="signing request, denied",
        ),
        pytest.param(
            (ADMISSION, "mutatingwebhookconfigurations"), {"webhooks": [{}]}, ["x", 1, AGE], id="mutating hooks"
        ),
        pytest.param((ADMISSION, "validatingwebhookconfigurations"), {}, ["x", 0, AGE], id="no validating hooks"),
        pytest.param(
            (ADMISSION, "validatingadmissionpolicies"),
            {"spec": {"validations": [{}, {}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}},
            ["x", 2, "v1/ConfigMap", AGE],
            id="validating policy",
        ),
        pytest.param(
            (ADMISSION, "mutatingadmissionpolicies"),
            {"spec": {"mutations": [{}]}},
            ["x", 1, "<unset>", AGE],
            id="mutating policy",
        ),
        pytest.param(BINDING, {"spec": {"policyName": "p"}}, ["x", "p", "<unset>", AGE], id="binding"),
        pytest.param(
            BINDING,
            {"spec": {"paramRef": {"name": "n"}}},
            ["x", "", "*/n", AGE],
            id="binding with a parameter anywhere",
        ),
        pytest.param(
            (ADMISSION, "mutatingadmissionpolicybindings"),
            {"spec": {"paramRef": {"name": "n", "namespace": "s"}}},
            ["x", "", "s/n", AGE],
            id="binding with a parameter",
        ),
        pytest.param(
            BINDING,
            {"spec": {"paramRef": {"selector": SELECTOR}}},
            ["x", "", SELECTOR_TEXT, AGE],
            id="binding with a selector",
        ),
        pytest.param(
            ("", "events"),
            {
                **CORE_EVENT,
                "message": " hi \n",
                "eventTime": "2025-01-02T03:04:00.000000Z",
                "reportingComponent": "c",
                "reportingInstance": "i",
            },
            ["5s", "Normal", "r", "pod/p", "f", "c, i", "hi", "5s", 1, "x"],
            id="event",
        ),
        pytest.param(
            ("", "events"),
            {
                "involvedObject": {"kind": "Pod"},
                "firstTimestamp": "2025-01-02T03:03:00Z",
                "lastTimestamp": "2025-01-02T03:04:04Z",
                "count": 3,
                "source": {"component": "k", "host": "h"},
            },
            ["1s", "", "", "pod", "", "k, h", "", "65s", 3, "x"],
            id="old event",
        ),
        pytest.param(
            ("events.k8s.io", "events"),
            {
                "eventTime": "2025-01-02T03:03:00.000000Z",
                "series": {"count": 4, "lastObservedTime": "2025-01-02T03:04:03.500000Z"},
                "regarding": {"kind": "Pod", "name": "p"},
                "note": "n",
                "reportingController": "c",
            },
            ["1s", "", "", "pod/p", "", "c", "n", "65s", 4, "x"],
            id="event series",
        ),
        pytest.param(("", "events"), {}, ["<unknown>", "", "", "", "", "", "", "<unknown>", 1, "x"], id="empty event"),
    ],
)
def test_cells(resource: tuple[str, str], fields: Object, cells: list[Any]) -> None:
    convertor = convertor_for(*resource)
    assert convertor.cells({"metadata": META, **fields}, NOW) == cells
    assert len(convertor.columns) == len(cells)


@pytest.mark.parametrize("created", [None, "", "0001-01-01T00:00:00Z"])
def test_what_was_never_created_has_no_age(created: str | None) -> None:
    obj = {"metadata": {"name": "x", "creationTimestamp": created}}
    assert convertor_for("", "serviceaccounts").cells(obj, NOW) == ["x", "<unknown>"]
    assert convertor_for("", "limitranges").cells(obj, NOW) == ["x", "0001-01-01T00:00:00Z"]


def test_what_lies_ahead_has_no_age() -> None:
    obj = {"metadata": {"name": "x", "creationTimestamp": "2025-01-02T04:00:00Z"}}
    assert convertor_for("", "serviceaccounts").cells(obj, NOW) == ["x", "<invalid>"]
