"""The order of the plugins, and what a chain costs that has nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kcp.admission.plugins import Dependencies, make_chain
from tests.admission.fakes import FakeAuthorizer, FakeKinds, FakeReader, widget, write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.auth.authorizer import Authorizer


class NoCharge:
    async def charge(
        self, cluster: str, namespace: str, name: str, used: Mapping[str, str], expected_resource_version: str
    ) -> bool:
        raise AssertionError("there are no quotas")


class NoCall:
    async def post(self, url: str, body: bytes, *, ca_bundle: bytes, timeout: float) -> bytes:
        raise AssertionError("there are no webhooks")


async def test_plugins_are_in_kubernetes_order_and_read_nothing_twice() -> None:
    reader = FakeReader()
    reader.add_namespace("ns")
    authorizer = cast("Authorizer", FakeAuthorizer())
    needs = Dependencies(
        reader, FakeKinds(), authorizer, NoCharge(), NoCall(), built_in=frozenset(), parse_organizations=lambda pem: ()
    )
    chain = make_chain(needs)
    assert [plugin.name for plugin in chain.plugins] == [
        "NamespaceLifecycle",
        "core.kcp.io/LogicalCluster",
        "kcp.io/ReservedCRDGroups",
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "MutatingAdmissionWebhook",
        "RBACEscalation",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
        "ResourceQuota",
    ]
    for _ in range(2):
        a = write(widget())
        await chain.mutate(a)
        await chain.validate(a)
    assert reader.lists == 4  # mutating and validating webhooks, bindings of policies, quotas
    chain.forget(a.cluster, "admissionregistration.k8s.io", "validatingwebhookconfigurations")
    await chain.validate(a)
    assert reader.lists == 5
