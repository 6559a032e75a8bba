"""PEM texts as Go reads them: certificate requests, certificates and key pairs, with Go's words for what is wrong."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.auth import x509
from kcp.meta.gotext import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([^\n]*?)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_HEADER: Final = re.compile(rb"[^\n:]*:[^\n]*\n")
_UNREADABLE: Final = "x509: malformed certificate"


class PEMBlock(NamedTuple):
    label: str
    has_headers: bool
    der: bytes

    @property
    def text(self) -> bytes:
        label = self.label.encode()
        return b"-----BEGIN " + label + b"-----\n" + base64.encodebytes(self.der) + b"-----END " + label + b"-----\n"


def pem_blocks(text: bytes) -> Iterator[PEMBlock]:
    """The blocks of a PEM text; what stands between them, and what is no base64, is passed over."""
    for found in _BLOCK.finditer(text):
        body, has_headers = found[2], False
        while header := _HEADER.match(body):
            body, has_headers = body[header.end() :], True
        try:
            der = base64.b64decode(b"".join(body.split()), validate=True)
        except binascii.Error:
            continue
        yield PEMBlock(found[1].decode("utf-8", "replace"), has_headers, der)


def explain_request(text: bytes) -> str:
    """Why the text is no PKCS#10 request signed with its own key; empty if it is."""
    block = next(pem_blocks(text), None)
    if block is None or block.label != "CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        x509.parse_request(block.text)
    except ValueError as error:
        return str(error)
    return ""


def explain_certificates(text: bytes) -> str:
    """Why the text is no chain of certificates and nothing else; empty if it is, or if it is empty."""
    if not text:
        return ""
    count = 0
    for block in pem_blocks(text):
        if block.label != "CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.label)}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        if not _is_certificate(block):
            return _UNREADABLE
        count += 1
    return "" if count else "must contain at least one CERTIFICATE PEM block"


def explain_key_pair(certificate: bytes, key: bytes) -> str:
    """Why crypto/tls refuses the pair; empty if it does not."""
    blocks = list(pem_blocks(certificate))
    leaf = next((block for block in blocks if block.label == "CERTIFICATE"), None)
    if leaf is None:
        return _explain_missing_certificate([block.label for block in blocks])
    blocks = list(pem_blocks(key))
    secret = next((block for block in blocks if _is_private_key(block)), None)
    if secret is None:
        return _explain_missing_key([block.label for block in blocks])
    if not _is_certificate(leaf):
        return _UNREADABLE
    try:
        (private_key,) = x509.load_private_keys(secret.text)
    except ValueError:
        return "tls: failed to parse private key"
    (public_key,) = x509.load_public_keys(leaf.text)
    if type(public_key) is not type(private_key.public_key()):
        return "tls: private key type does not match public key type"
    if x509.public_key_der(public_key) != x509.public_key_der(private_key.public_key()):
        return "tls: private key does not match public key"
    return ""


def _explain_missing_certificate(labels: list[str]) -> str:
    if not labels:
        return "tls: failed to find any PEM data in certificate input"
    if len(labels) == 1 and labels[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, "
            "but did find a private key; PEM inputs may have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input '
        f"after skipping PEM blocks of the following types: [{' '.join(labels)}]"
    )


def _explain_missing_key(labels: list[str]) -> str:
    if not labels:
        return "tls: failed to find any PEM data in key input"
    if labels == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input '
        f"after skipping PEM blocks of the following types: [{' '.join(labels)}]"
    )


def _is_private_key(block: PEMBlock) -> bool:
    return block.label == "PRIVATE KEY" or block.label.endswith(" PRIVATE KEY")


def _is_certificate(block: PEMBlock) -> bool:
    try:
        x509.load_public_keys(block.text)
    except ValueError:
        return False
    return True
