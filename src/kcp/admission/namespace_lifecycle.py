"""NamespaceLifecycle: nothing is made in a namespace that is missing or going away, and some namespaces stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.admission.refusal import forbidden
from kcp.meta import errors, wellknown
from kcp.meta.gvk import GroupKind, GroupResource

if TYPE_CHECKING:
    from kcp.admission.attributes import Attributes
    from kcp.auth.reader import Reader

_IMMORTAL: Final = frozenset((wellknown.NAMESPACE_DEFAULT, wellknown.NAMESPACE_SYSTEM, wellknown.NAMESPACE_PUBLIC))
_NAMESPACE: Final = GroupKind("", "Namespace")
_NAMESPACES: Final = GroupResource("", "namespaces")
# Answering "not found" here would let anyone search for the names of namespaces.
_ACCESS_REVIEW: Final = GroupResource("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Plugin):
    name = "NamespaceLifecycle"
    operations = frozenset((Operation.CREATE, Operation.UPDATE, Operation.DELETE))

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def admit(self, a: Attributes) -> None:
        if a.gvk.kind == _NAMESPACE.kind and not a.gvk.group:
            if a.operation is Operation.DELETE:
                self._check_immortal(a)
            return
        if not a.namespace or a.operation is Operation.DELETE or a.gvr.group_resource == _ACCESS_REVIEW:
            return
        namespace = self._reader.get(a.cluster, "", "namespaces", "", a.namespace)
        if namespace is None:
            raise errors.NotFound(_NAMESPACES, a.namespace)
        if a.operation is Operation.CREATE and (namespace.get("status") or {}).get("phase") == "Terminating":
            raise _terminating(a)

    def _check_immortal(self, a: Attributes) -> None:
        if a.name not in _IMMORTAL or self._is_cluster_deleted(a.cluster):
            return
        raise errors.Forbidden(_NAMESPACES, a.name, "this namespace may not be deleted")

    def _is_cluster_deleted(self, cluster: str) -> bool:
        """With the logical cluster everything in it goes, immortal or not."""
        found = self._reader.get(cluster, wellknown.GROUP_CORE, "logicalclusters", "", wellknown.LOGICAL_CLUSTER_NAME)
        return found is not None and "deletionTimestamp" in found["metadata"]


def _terminating(a: Attributes) -> errors.Forbidden:
    cause = errors.StatusCause(
        "NamespaceTerminating", f"namespace {a.namespace} is being terminated", "metadata.namespace"
    )
    why = f"unable to create new content in namespace {a.namespace} because it is being terminated"
    return forbidden(a, why, causes=[cause])
