"""Making, signing and reading keys and certificates."""

from __future__ import annotations

import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509 as library
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcp.auth import x509

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.x509.base import CertificateSigningRequestBuilder

NOW = datetime(2025, 1, 1, tzinfo=UTC)
CA_KEY = x509.make_key()
CA = x509.make_ca("test-ca", CA_KEY, 100, NOW)
USAGES = ["client auth", "digital signature", "key encipherment"]


def load(pem: bytes) -> library.Certificate:
    return library.load_pem_x509_certificate(pem)


def make_request(builder: CertificateSigningRequestBuilder | None = None, *, key: object = None) -> bytes:
    name = library.Name(
        [
            library.NameAttribute(NameOID.ORGANIZATION_NAME, "dev"),
            library.NameAttribute(NameOID.ORGANIZATION_NAME, "ops"),
            library.NameAttribute(NameOID.COMMON_NAME, "jane"),
        ]
    )
    builder = builder or library.CertificateSigningRequestBuilder()
    signer = key or ec.generate_private_key(ec.SECP256R1())
    algorithm = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    request = builder.subject_name(name).sign(signer, algorithm)  # type: ignore[arg-type]
    return request.public_bytes(serialization.Encoding.PEM)


def test_a_certificate_tells_who_may_use_it_for_what() -> None:
    key = x509.make_rsa_key()
    pem = x509.sign_certificate(
        CA,
        CA_KEY,
        key,
        common_name="alice",
        organizations=["a", "b"],
        dns_names=["localhost"],
        ip_addresses=["127.0.0.1", "::1"],
        days=10,
        now=NOW,
        server=True,
        client=False,
    )
    assert x509.subject_of(x509.certificate_to_der(pem)) == ("alice", ("a", "b"), NOW + timedelta(days=10))
    assert x509.expires(pem) == NOW + timedelta(days=10)
    certificate = load(pem)
    certificate.verify_directly_issued_by(load(CA))
    usage = certificate.extensions.get_extension_for_class(library.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    names = certificate.extensions.get_extension_for_class(library.SubjectAlternativeName).value
    assert names.get_values_for_type(library.DNSName) == ["localhost"]
    assert list(map(str, names.get_values_for_type(library.IPAddress))) == ["127.0.0.1", "::1"]


def test_a_certificate_does_not_outlive_its_authority() -> None:
    pem = x509.sign_certificate(
        CA, CA_KEY, x509.make_key(), common_name="x", days=1000, now=NOW, server=False, client=True
    )
    assert x509.expires(pem) == x509.expires(CA)
    with pytest.raises(library.ExtensionNotFound):
        load(pem).extensions.get_extension_for_class(library.SubjectAlternativeName)


def test_tls_accepts_what_was_made_on_both_ends(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority_key = x509.make_key()
    authority = x509.make_ca("ca", authority_key, 10, now)
    contexts = []
    for side, protocol in (("server", ssl.PROTOCOL_TLS_SERVER), ("client", ssl.PROTOCOL_TLS_CLIENT)):
        key = x509.make_key()
        certificate = x509.sign_certificate(
            authority,
            authority_key,
            key,
            common_name=side,
            dns_names=["localhost"],
            days=1,
            now=now,
            server=side == "server",
            client=side == "client",
        )
        file = tmp_path / f"{side}.pem"
        file.write_bytes(certificate + key)
        context = ssl.SSLContext(protocol)
        context.load_cert_chain(file)
        context.load_verify_locations(cadata=authority.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        contexts.append(context)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = contexts[0].wrap_bio(to_server, to_client, server_side=True)
    client = contexts[1].wrap_bio(to_client, to_server, server_hostname="localhost")
    for end in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    der = server.getpeercert(binary_form=True)
    assert der is not None
    assert x509.subject_of(der)[0] == "client"


def test_a_request_is_read() -> None:
    names = library.SubjectAlternativeName(
        [library.DNSName("h"), library.RFC822Name("j@x.test"), library.UniformResourceIdentifier("spiffe://a/b")]
    )
    builder = library.CertificateSigningRequestBuilder().add_extension(names, critical=False)
    assert x509.parse_request(make_request(builder)) == x509.CertificateRequest(
        "jane", ("dev", "ops"), dns_names=("h",), email_addresses=("j@x.test",), uris=("spiffe://a/b",)
    )
    assert x509.parse_request(make_request()) == x509.CertificateRequest("jane", ("dev", "ops"))


def test_a_request_is_signed_for_what_was_approved() -> None:
    names = library.SubjectAlternativeName([library.DNSName("h")])
    builder = library.CertificateSigningRequestBuilder().add_extension(names, critical=False)
    pem = x509.sign_request(CA, CA_KEY, make_request(builder), usages=USAGES, lifetime=timedelta(hours=1), now=NOW)
    certificate = load(pem)
    certificate.verify_directly_issued_by(load(CA))
    assert x509.subject_of(x509.certificate_to_der(pem)) == ("jane", ("dev", "ops"), NOW + timedelta(hours=1))
    assert certificate.extensions.get_extension_for_class(library.KeyUsage).value.key_encipherment
    assert not certificate.extensions.get_extension_for_class(library.BasicConstraints).value.ca
    assert certificate.extensions.get_extension_for_class(library.SubjectAlternativeName).value == names


def test_a_request_without_usages_gets_none() -> None:
    pem = x509.sign_request(CA, CA_KEY, make_request(), usages=[], lifetime=timedelta(days=1000), now=NOW)
    assert x509.expires(pem) == x509.expires(CA)
    with pytest.raises(library.ExtensionNotFound):
        load(pem).extensions.get_extension_for_class(library.ExtendedKeyUsage)


def test_an_unknown_usage_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unrecognized usage values: \['flying'\]"):
        x509.sign_request(CA, CA_KEY, make_request(), usages=["flying"], lifetime=timedelta(1), now=NOW)


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        pytest.param(b"", "PEM block type must be CERTIFICATE REQUEST", id="nothing"),
        pytest.param(CA, "PEM block type must be CERTIFICATE REQUEST", id="a certificate"),
        pytest.param(
            b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----",
            "cannot read a certificate request",
            id="garbage",
        ),
    ],
)
def test_what_is_no_request_is_refused(pem: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        x509.parse_request(pem)


def test_a_request_with_somebody_elses_signature_is_refused() -> None:
    der = library.load_pem_x509_csr(make_request()).public_bytes(serialization.Encoding.DER)
    other = library.load_pem_x509_csr(make_request()).public_bytes(serialization.Encoding.DER)
    forged = library.load_der_x509_csr(der).tbs_certrequest_bytes
    assert forged in der
    mixed = der.replace(forged, library.load_der_x509_csr(other).tbs_certrequest_bytes)
    pem = library.load_der_x509_csr(mixed).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(ValueError, match="not signed with its own key"):
        x509.parse_request(pem)


def test_keys_are_found_in_any_pem_text() -> None:
    first, second = x509.make_key(), x509.make_rsa_key()
    found_private = x509.load_private_keys(b"a remark\n" + first + b"another\n" + second)
    assert [x509.signature_algorithm(key.public_key()) for key in found_private] == ["ES256", "RS256"]
    public = x509.load_private_keys(first)[0].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    found = x509.load_public_keys(pem + CA + second + make_request())
    assert [x509.signature_algorithm(key) for key in found] == ["ES256", "ES256", "RS256"]
    assert x509.public_key_der(found[0]) == x509.public_key_der(public)


def test_a_text_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no private key"):
        x509.make_ca("x", b"nothing", 1, NOW)


def test_a_broken_key_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot read a private key"):
        x509.load_private_keys(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----")


def test_keys_of_another_kind_are_refused() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(ValueError, match="make an RSA or ECDSA key"):
        x509.load_private_keys(private)
    with pytest.raises(ValueError, match="make an RSA or ECDSA key"):
        x509.load_public_keys(public)


@pytest.mark.parametrize(
    ("curve", "algorithm"),
    [
        pytest.param(ec.SECP256R1(), "ES256", id="P-256"),
        pytest.param(ec.SECP384R1(), "ES384", id="P-384"),
        pytest.param(ec.SECP521R1(), "ES512", id="P-521"),
    ],
)
def test_each_curve_has_its_algorithm(curve: ec.EllipticCurve, algorithm: str) -> None:
    assert x509.signature_algorithm(ec.generate_private_key(curve).public_key()) == algorithm


def test_a_curve_without_an_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="secp256k1 cannot be used here"):
        x509.signature_algorithm(ec.generate_private_key(ec.SECP256K1()).public_key())


def test_what_is_no_certificate_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot read a certificate"):
        x509.subject_of(b"nothing")
