"""CertificateApproval, CertificateSigning and CertificateSubjectRestriction: who may have certificates made."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from kcp.admission.attributes import Operation
from kcp.admission.chain import Plugin
from kcp.admission.refusal import forbidden
from kcp.auth.attributes import Attributes as Question
from kcp.meta import wellknown
from kcp.meta.gotext import quote
from kcp.meta.gvk import GroupResource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kcp.admission.attributes import Attributes
    from kcp.auth.attributes import Decision

    Authorize = Callable[[Question], Decision]
    # The organizations that a PEM request asks for; raises ValueError if it is none.
    ParseOrganizations = Callable[[bytes], Sequence[str]]

_REQUESTS: Final = GroupResource("certificates.k8s.io", "certificatesigningrequests")
_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"


class CertificateApproval(Plugin):
    """Approving takes the verb `approve` on the signer, besides access to the subresource."""

    name = "CertificateApproval"
    operations = frozenset((Operation.UPDATE,))

    def __init__(self, authorize: Authorize) -> None:
        self._authorize = authorize

    async def validate(self, a: Attributes) -> None:
        if a.subresource != "approval" or a.gvr.group_resource != _REQUESTS:
            return
        # The old object decides: the signer cannot be changed here, though a client may try.
        signer = _signer_of(a)
        if not is_authorized_for_signer(self._authorize, a, "approve", signer):
            raise forbidden(a, f"user not permitted to approve requests with signerName {quote(signer)}")


class CertificateSigning(Plugin):
    """Issuing a certificate takes the verb `sign` on the signer, besides access to the subresource."""

    name = "CertificateSigning"
    operations = frozenset((Operation.UPDATE,))

    def __init__(self, authorize: Authorize) -> None:
        self._authorize = authorize

    async def validate(self, a: Attributes) -> None:
        if a.subresource != "status" or a.gvr.group_resource != _REQUESTS:
            return
        old, new = (a.old_obj or {}).get("status") or {}, (a.obj or {}).get("status") or {}
        if all((old.get(field) or None) == (new.get(field) or None) for field in ("certificate", "conditions")):
            return
        signer = _signer_of(a)
        if not is_authorized_for_signer(self._authorize, a, "sign", signer):
            raise forbidden(a, f"user not permitted to sign requests with signerName {quote(signer)}")


class CertificateSubjectRestriction(Plugin):
    """No client certificate may be asked for that makes its owner a member of system:masters."""

    name = "CertificateSubjectRestriction"
    operations = frozenset((Operation.CREATE,))

    def __init__(self, parse_organizations: ParseOrganizations) -> None:
        self._parse_organizations = parse_organizations

    async def validate(self, a: Attributes) -> None:
        if a.gvr.group_resource != _REQUESTS or a.subresource:
            return
        spec = (a.obj or {}).get("spec") or {}
        if spec.get("signerName") != _CLIENT_SIGNER:
            return
        try:
            organizations = self._parse_organizations(base64.b64decode(spec.get("request") or "", validate=True))
        except (ValueError, binascii.Error) as error:
            raise forbidden(a, f"failed to parse CSR: {error}") from None
        if wellknown.GROUP_MASTERS in organizations:
            raise forbidden(a, f"use of {_CLIENT_SIGNER} signer with {wellknown.GROUP_MASTERS} group is not allowed")


def is_authorized_for_signer(authorize: Authorize, a: Attributes, verb: str, signer: str) -> bool:
    """Whether the user may act for this signer by name, or for all signers of its domain."""
    domain = signer.partition("/")[0]
    return any(authorize(_question(a, verb, name)).allowed for name in (signer, f"{domain}/*"))


def _question(a: Attributes, verb: str, signer: str) -> Question:
    return Question(
        user=a.user,
        verb=verb,
        cluster=a.cluster,
        group=_REQUESTS.group,
        version="*",
        resource="signers",
        name=signer,
    )


def _signer_of(a: Attributes) -> str:
    return str(((a.old_obj or {}).get("spec") or {}).get("signerName") or "")
