"""core.kcp.io/LogicalCluster: a logical cluster is made and unmade by the system, not by those who live in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.admission.refusal import forbidden
from kcp.meta import wellknown

if TYPE_CHECKING:
    from kcp.admission.attributes import Attributes


class LogicalCluster(Plugin):
    """Without its one object a logical cluster is not found, and what it holds is out of reach."""

    name = f"{wellknown.GROUP_CORE}/LogicalCluster"
    operations = frozenset((Operation.CREATE, Operation.DELETE))

    async def validate(self, a: Attributes) -> None:
        if a.gvr.group != wellknown.GROUP_CORE or a.gvr.resource != "logicalclusters":
            return
        if a.operation is Operation.CREATE and a.name != wellknown.LOGICAL_CLUSTER_NAME:
            raise forbidden(a, f"must be named {wellknown.LOGICAL_CLUSTER_NAME}")
        if wellknown.GROUP_MASTERS in a.user.groups:
            return
        if a.operation is Operation.CREATE:
            raise forbidden(a, "LogicalCluster cannot be created")
        if not ((a.old_obj or {}).get("spec") or {}).get("directlyDeletable"):
            raise forbidden(a, "LogicalCluster cannot be deleted")
