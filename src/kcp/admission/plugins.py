"""The plugins that are on, in the one order in which they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kcp.admission.certificates import CertificateApproval, CertificateSigning, CertificateSubjectRestriction
from kcp.admission.chain import Chain, Plugin
from kcp.admission.deferred import Deferred
from kcp.admission.logical_cluster import LogicalCluster
from kcp.admission.namespace_lifecycle import NamespaceLifecycle
from kcp.admission.rbac_escalation import RBACEscalation
from kcp.admission.reserved_definitions import ReservedDefinitions
from kcp.admission.resource_quota import ResourceQuota

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kcp.admission.configuration import Kinds
    from kcp.admission.resource_quota import Charger
    from kcp.admission.webhook_client import WebhookCaller
    from kcp.auth.authorizer import Authorizer
    from kcp.auth.reader import Reader

_GROUP: Final = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What plugins need of the rest of the server."""

    reader: Reader
    kinds: Kinds
    authorizer: Authorizer
    charger: Charger
    webhook_caller: WebhookCaller
    built_in: frozenset[tuple[str, str]]  # groups and names of the resources that every logical cluster has
    parse_organizations: Callable[[bytes], Sequence[str]]  # of a PEM certificate request; raises ValueError


def make_chain(needs: Dependencies) -> Chain:
    return Chain(
        (
            NamespaceLifecycle(needs.reader),
            LogicalCluster(),
            ReservedDefinitions(needs.built_in),
            CertificateApproval(needs.authorizer.authorize),
            CertificateSigning(needs.authorizer.authorize),
            CertificateSubjectRestriction(needs.parse_organizations),
            _defer("MutatingAdmissionWebhook", needs, "mutatingwebhookconfigurations"),
            # Sees roles and bindings as the webhooks leave them.
            RBACEscalation(needs.authorizer),
            _defer("ValidatingAdmissionPolicy", needs, "validatingadmissionpolicybindings"),
            _defer("ValidatingAdmissionWebhook", needs, "validatingwebhookconfigurations"),
            # Last, because what it counts must not be refused by anyone else afterwards.
            ResourceQuota(needs.reader, needs.charger),
        )
    )


def _defer(name: str, needs: Dependencies, resource: str) -> Deferred:
    """A plugin that has nothing to do where there is no such object: policies count only where they are bound."""

    def load() -> Plugin:
        from kcp.admission.matching import Matcher
        from kcp.admission.policies import ValidatingAdmissionPolicy
        from kcp.admission.webhooks import MutatingAdmissionWebhook, ValidatingAdmissionWebhook

        matcher = Matcher(needs.reader, needs.kinds)
        configured = (needs.reader, needs.kinds, matcher, needs.authorizer.authorize)
        if name == ValidatingAdmissionPolicy.name:
            return ValidatingAdmissionPolicy(*configured)
        make = {plugin.name: plugin for plugin in (MutatingAdmissionWebhook, ValidatingAdmissionWebhook)}[name]
        return make(*configured, needs.webhook_caller)

    return Deferred(name, needs.reader, (_GROUP, resource), load)
