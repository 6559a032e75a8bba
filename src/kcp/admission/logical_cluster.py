"""LogicalCluster: a logical cluster is made, changed and unmade by the system, not by those who live in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.admission.refusal import forbidden
from kcp.meta import wellknown

if TYPE_CHECKING:
    from kcp.admission.attributes import Attributes
    from kcp.meta.codec import Object


class LogicalCluster(Plugin):
    """Without its one object a logical cluster is not found, and what it holds is out of reach."""

    name = f"{wellknown.GROUP_CORE}/LogicalCluster"
    operations = frozenset((Operation.CREATE, Operation.UPDATE, Operation.DELETE))

    async def validate(self, a: Attributes) -> None:
        if a.gvr.group != wellknown.GROUP_CORE or a.gvr.resource != "logicalclusters":
            return
        if a.operation is Operation.CREATE and a.name != wellknown.LOGICAL_CLUSTER_NAME:
            raise forbidden(a, f"must be named {wellknown.LOGICAL_CLUSTER_NAME}")
        if wellknown.GROUP_MASTERS in a.user.groups:
            return
        if a.operation is Operation.CREATE:
            raise forbidden(a, "LogicalCluster cannot be created")
        if a.operation is Operation.UPDATE:
            if a.obj is None or a.old_obj is None or _system_part(a.obj) != _system_part(a.old_obj):
                raise forbidden(a, "spec, status and reserved metadata are changed by the system only")
        elif not ((a.old_obj or {}).get("spec") or {}).get("directlyDeletable"):
            raise forbidden(a, "LogicalCluster cannot be deleted")


def _system_part(obj: Object) -> tuple[object, ...]:
    """What tenants may not change: all but labels and annotations of their own, and finalizers."""
    metadata = obj["metadata"]
    reserved = [
        {key: value for key, value in (metadata.get(name) or {}).items() if _is_reserved(key)}
        for name in ("labels", "annotations")
    ]
    return obj.get("spec"), obj.get("status"), metadata.get("ownerReferences"), *reserved


def _is_reserved(key: str) -> bool:
    domain = key.partition("/")[0]
    return domain == wellknown.DOMAIN or domain.endswith(f".{wellknown.DOMAIN}")
