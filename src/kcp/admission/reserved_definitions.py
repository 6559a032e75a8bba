"""ReservedCRDGroups: definitions that would stand in the way of what every logical cluster serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.admission.refusal import forbidden
from kcp.meta import wellknown

if TYPE_CHECKING:
    from kcp.admission.attributes import Attributes


class ReservedDefinitions(Plugin):
    """A definition of a built-in resource would share its objects: they would go with it, and pass by their rules."""

    name = f"{wellknown.DOMAIN}/ReservedCRDGroups"
    operations = frozenset((Operation.CREATE,))

    def __init__(self, built_in: frozenset[tuple[str, str]]) -> None:
        """`built_in` are groups and names of resources."""
        self._built_in = built_in

    async def validate(self, a: Attributes) -> None:
        if a.gvr.resource != "customresourcedefinitions" or a.gvr.group != "apiextensions.k8s.io":
            return
        spec = (a.obj or {}).get("spec") or {}
        group, plural = spec.get("group", ""), (spec.get("names") or {}).get("plural", "")
        if (group, plural) in self._built_in:
            raise forbidden(a, f"{plural}.{group} is a built-in resource and cannot be defined")
        if wellknown.GROUP_MASTERS in a.user.groups:
            return
        if group == wellknown.DOMAIN or group.endswith(f".{wellknown.DOMAIN}"):
            raise forbidden(a, f"{group} is a reserved group")
