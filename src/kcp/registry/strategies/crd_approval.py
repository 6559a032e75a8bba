"""The annotation that definitions in groups of the Kubernetes community need (apiextensions-apiserver's apihelpers)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from kcp.meta.gotext import quote
from kcp.meta.wellknown import API_APPROVED_ANNOTATION
from kcp.schema.structural.urls import parse_request_uri

if TYPE_CHECKING:
    from kcp.meta.codec import Object

_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


class Approval(Enum):
    """The value is the reason and the status of the condition that tells of it."""

    INVALID = ("InvalidAnnotation", "False")
    MISSING = ("MissingAnnotation", "False")
    APPROVED = ("ApprovedAnnotation", "True")
    BYPASSED = ("UnapprovedAnnotation", "False")


def is_protected_group(group: str) -> bool:
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def find_approval(crd: Object) -> tuple[Approval, str]:
    """The state, and its explanation."""
    annotation = ((crd.get("metadata") or {}).get("annotations") or {}).get(API_APPROVED_ANNOTATION, "")
    rule = f"protected groups must have approval annotation {quote(API_APPROVED_ANNOTATION)}"
    if not annotation:
        return Approval.MISSING, f"{rule}, {_SEE}"
    if annotation.startswith("unapproved"):
        return Approval.BYPASSED, f"not approved: {quote(annotation)}"
    url = parse_request_uri(annotation)
    if url is not None and url.host and url.scheme:
        return Approval.APPROVED, f"approved in {annotation}"
    return Approval.INVALID, f'{rule} with either a URL or a reason starting with "unapproved", {_SEE}'
