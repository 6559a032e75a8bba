"""Which strategy each built-in resource has."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kcp.registry.strategies.admissionpolicies import (
    MutatingAdmissionPolicyBindingStrategy,
    MutatingAdmissionPolicyStrategy,
)
from kcp.registry.strategies.certificatesigningrequests import CertificateSigningRequestStrategy
from kcp.registry.strategies.configmaps import ConfigMapStrategy
from kcp.registry.strategies.events import CoreEventStrategy, EventStrategy
from kcp.registry.strategies.expressions import CompileExpression, trust_expression
from kcp.registry.strategies.leases import LeaseStrategy
from kcp.registry.strategies.limitranges import LimitRangeStrategy
from kcp.registry.strategies.namespaces import NamespaceStrategy
from kcp.registry.strategies.rbac import (
    ClusterRoleBindingStrategy,
    ClusterRoleStrategy,
    RoleBindingStrategy,
    RoleStrategy,
)
from kcp.registry.strategies.resourcequotas import ResourceQuotaStrategy
from kcp.registry.strategies.secrets import SecretStrategy
from kcp.registry.strategies.serviceaccounts import ServiceAccountStrategy
from kcp.registry.strategies.validatingadmissionpolicies import (
    ValidatingAdmissionPolicyBindingStrategy,
    ValidatingAdmissionPolicyStrategy,
)
from kcp.registry.strategies.webhookconfigurations import (
    MutatingWebhookConfigurationStrategy,
    WebhookConfigurationStrategy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.registry.strategies.kind import BuiltinStrategy

_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"


def make_builtin(
    compile_expression: CompileExpression = trust_expression,
) -> Mapping[tuple[str, str], BuiltinStrategy]:
    """Strategies by group and resource, with CEL expressions checked by this compiler."""
    strategies: dict[tuple[str, str], BuiltinStrategy] = {
        ("", "namespaces"): NamespaceStrategy(),
        ("", "configmaps"): ConfigMapStrategy(),
        ("", "secrets"): SecretStrategy(),
        ("", "serviceaccounts"): ServiceAccountStrategy(),
        ("", "events"): CoreEventStrategy(),
        ("", "resourcequotas"): ResourceQuotaStrategy(),
        ("", "limitranges"): LimitRangeStrategy(),
        ("events.k8s.io", "events"): EventStrategy(),
        ("coordination.k8s.io", "leases"): LeaseStrategy(),
        (_RBAC, "roles"): RoleStrategy(),
        (_RBAC, "rolebindings"): RoleBindingStrategy(),
        (_RBAC, "clusterroles"): ClusterRoleStrategy(),
        (_RBAC, "clusterrolebindings"): ClusterRoleBindingStrategy(),
        ("certificates.k8s.io", "certificatesigningrequests"): CertificateSigningRequestStrategy(),
        (_ADMISSION, "mutatingwebhookconfigurations"): MutatingWebhookConfigurationStrategy(compile_expression),
        (_ADMISSION, "validatingwebhookconfigurations"): WebhookConfigurationStrategy(compile_expression),
        (_ADMISSION, "validatingadmissionpolicies"): ValidatingAdmissionPolicyStrategy(compile_expression),
        (_ADMISSION, "validatingadmissionpolicybindings"): ValidatingAdmissionPolicyBindingStrategy(),
        (_ADMISSION, "mutatingadmissionpolicies"): MutatingAdmissionPolicyStrategy(compile_expression),
        (_ADMISSION, "mutatingadmissionpolicybindings"): MutatingAdmissionPolicyBindingStrategy(),
    }
    return MappingProxyType(strategies)


BUILTIN: Final = make_builtin()
