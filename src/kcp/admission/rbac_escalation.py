"""RBACEscalation: nobody hands out permissions that they do not hold themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.auth.bootstrap import GROUP
from kcp.auth.escalation import Write, check_binding_escalation, check_role_escalation

if TYPE_CHECKING:
    from kcp.admission.attributes import Attributes
    from kcp.auth.authorizer import Authorizer

_CHECKS: Final = {
    "roles": check_role_escalation,
    "clusterroles": check_role_escalation,
    "rolebindings": check_binding_escalation,
    "clusterrolebindings": check_binding_escalation,
}


class RBACEscalation(Plugin):
    """Last of the mutating plugins, before validation: where kube-apiserver's RBAC storage asks the same."""

    name = "RBACEscalation"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def admit(self, a: Attributes) -> None:
        if a.gvr.group != GROUP or a.obj is None:
            return
        name = a.name if a.operation is Operation.UPDATE else ""
        write = Write(a.user, a.cluster, a.gvr.resource, a.namespace, name)
        _CHECKS[a.gvr.resource](self._authorizer, write, a.obj, a.old_obj)
