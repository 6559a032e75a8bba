"""kubectl asks who it is and what it may do, and other users are kept out."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from tests.e2e.kubectl_command import Kubectl


@pytest.fixture
def robot(kubectl: Kubectl) -> str:
    """A service account that may read config maps, by its user name."""
    kubectl("create", "sa", "robot")
    kubectl("create", "role", "reader", "--verb=get,list,watch", "--resource=configmaps")
    kubectl("create", "rolebinding", "readers", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot")
    return f"system:serviceaccount:{kubectl.namespace}:robot"


@pytest.mark.parametrize(
    ("context", "user", "groups"),
    [
        ("root", "kcp-admin", ["system:kcp:admin", "system:authenticated"]),
        ("system:admin", "shard-admin", ["system:masters", "system:authenticated"]),
    ],
    ids=["root", "system-admin"],
)
def test_whoami(kubectl: Kubectl, context: str, user: str, groups: list[str]) -> None:
    review = yaml.safe_load(kubectl.using(context).within("")("auth", "whoami", "-o", "yaml"))
    assert review["status"]["userInfo"]["username"] == user
    assert review["status"]["userInfo"]["groups"] == groups


def test_can_i_as_admin(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "configmaps") == "yes\n"
    assert kubectl("auth", "can-i", "*", "*", "--all-namespaces") == "yes\n"


def test_can_i_as_another(kubectl: Kubectl, robot: str) -> None:
    assert kubectl("auth", "can-i", "list", "cm", "--as", robot) == "yes\n"
    refused = kubectl.run("auth", "can-i", "delete", "cm", "--as", robot)
    assert (refused.code, refused.out) == (1, "no\n")
    elsewhere = kubectl.within("default").run("auth", "can-i", "list", "cm", "--as", robot)
    assert (elsewhere.code, elsewhere.out) == (1, "no\n")
    rows = [line.split() for line in kubectl("auth", "can-i", "--list", "--as", robot).splitlines()]
    assert rows[0] == ["Resources", "Non-Resource", "URLs", "Resource", "Names", "Verbs"]
    assert ["configmaps", "[]", "[]", "[get", "list", "watch]"] in rows


def test_another_user_is_told_what_is_missing(kubectl: Kubectl, robot: str) -> None:
    assert kubectl.run("get", "cm", "--as", robot).code == 0
    assert kubectl.fails("create", "cm", "x", "--as", robot) == (
        f'error: failed to create configmap: configmaps is forbidden: User "{robot}" cannot create resource '
        f'"configmaps" in API group "" in the namespace "{kubectl.namespace}"\n'
    )


def test_a_token_is_a_service_account(kubectl: Kubectl, robot: str) -> None:
    token = kubectl("create", "token", "robot", "--duration=1h").strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == robot
    assert claims["exp"] - claims["iat"] == 3600
    # A kubeconfig's user may not carry a token beside the one in --token; a nameless user leaves only that one.
    as_robot = ("--token", token, "--user=")
    review = yaml.safe_load(kubectl("auth", "whoami", "-o", "yaml", *as_robot))
    assert review["status"]["userInfo"]["username"] == robot
    assert kubectl.run("get", "cm", *as_robot).code == 0
    assert "is forbidden" in kubectl.fails("get", "secrets", *as_robot)


def test_a_wrong_token_is_nobody(kubectl: Kubectl) -> None:
    complaint = kubectl.fails("get", "cm", "--token=nonsense", "--user=")
    assert "error: You must be logged in to the server" in complaint


def test_a_certificate_can_be_asked_for_and_approved(kubectl: Kubectl) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ann")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    name = f"ann-{kubectl.namespace}"
    spec = {
        "request": base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "example.com/any",
        "usages": ["client auth"],
    }
    manifest = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": spec}
    kubectl("create", "-f", "-", stdin=json.dumps({**manifest, "metadata": {"name": name}}))
    assert kubectl("get", "csr", name, "--no-headers").split()[-1] == "Pending"
    assert kubectl("certificate", "approve", name).endswith("approved\n")
    assert kubectl("get", "csr", name, "--no-headers").split()[-1] == "Approved"
