"""Certificate requests: who may approve, who may sign, and what nobody may ask for."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kcp.admission.attributes import Attributes, Operation
from kcp.admission.certificates import CertificateApproval, CertificateSigning, CertificateSubjectRestriction
from kcp.meta.errors import Forbidden
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource
from tests.admission.fakes import FakeAuthorizer, write

SIGNER = "example.com/one"
CLIENT = "kubernetes.io/kube-apiserver-client"


def request(status: dict[str, Any] | None = None, signer: str = SIGNER, pem: str = "pem") -> dict[str, Any]:
    encoded = base64.b64encode(pem.encode()).decode()
    return {"metadata": {"name": "r"}, "spec": {"signerName": signer, "request": encoded}, "status": status or {}}


def attributes(obj: dict[str, Any], old: dict[str, Any] | None, **more: Any) -> Attributes:  # noqa: ANN401
    return write(
        obj,
        old_obj=old,
        gvr=GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests"),
        gvk=GroupVersionKind("certificates.k8s.io", "v1", "CertificateSigningRequest"),
        namespace="",
        **({"operation": Operation.UPDATE} | more),
    )


async def test_approving_takes_a_permission_on_the_signer() -> None:
    plugin = CertificateApproval(FakeAuthorizer().authorize)
    with pytest.raises(Forbidden) as caught:
        await plugin.validate(attributes(request(), request(), subresource="approval"))
    assert caught.value.message == (
        'certificatesigningrequests.certificates.k8s.io "r" is forbidden: '
        'user not permitted to approve requests with signerName "example.com/one"'
    )


@pytest.mark.parametrize("name", [SIGNER, "example.com/*"], ids=["by name", "by domain"])
async def test_approvers_may_be_named_for_a_signer_or_its_domain(name: str) -> None:
    authorizer = FakeAuthorizer(("jane", "approve", "signers", name))
    await CertificateApproval(authorizer.authorize).validate(attributes(request(), request(), subresource="approval"))
    assert authorizer.questions[-1].group == "certificates.k8s.io"


async def test_signing_takes_a_permission_on_the_signer() -> None:
    signed = request({"certificate": "abc"})
    with pytest.raises(Forbidden, match="user not permitted to sign requests with signerName"):
        await CertificateSigning(FakeAuthorizer().authorize).validate(
            attributes(signed, request(), subresource="status")
        )
    authorizer = FakeAuthorizer(("jane", "sign", "signers", SIGNER))
    await CertificateSigning(authorizer.authorize).validate(attributes(signed, request(), subresource="status"))


async def test_other_changes_of_the_status_need_no_permission() -> None:
    plugin = CertificateSigning(FakeAuthorizer().authorize)
    await plugin.validate(attributes(request({"note": 1, "conditions": []}), request(), subresource="status"))


async def test_other_resources_and_subresources_pass() -> None:
    authorizer = FakeAuthorizer()
    await CertificateApproval(authorizer.authorize).validate(attributes(request(), request()))
    await CertificateSigning(authorizer.authorize).validate(write(subresource="status"))
    await CertificateSubjectRestriction(parse).validate(write())
    await CertificateSubjectRestriction(parse).validate(attributes(request(), None))
    assert not authorizer.questions


def parse(pem: bytes) -> tuple[str, ...]:
    if pem == b"broken":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    return tuple(pem.decode().split(","))


@pytest.mark.parametrize(
    ("pem", "why"),
    [
        ("devs,system:masters", f"use of {CLIENT} signer with system:masters group is not allowed"),
        ("broken", "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST"),
    ],
    ids=["masters", "broken"],
)
async def test_no_client_certificate_makes_a_master(pem: str, why: str) -> None:
    plugin = CertificateSubjectRestriction(parse)
    asked = request(signer=CLIENT, pem=pem)
    with pytest.raises(Forbidden, match=why):
        await plugin.validate(attributes(asked, None, operation=Operation.CREATE))


async def test_other_client_certificates_may_be_asked_for() -> None:
    asked = request(signer=CLIENT, pem="devs")
    await CertificateSubjectRestriction(parse).validate(attributes(asked, None, operation=Operation.CREATE))
