"""Keys and certificates: make, sign and read them. The door to `cryptography`; must not touch files or decide trust."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict, TypeVar, Unpack

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_T = TypeVar("_T")
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

# A certificate is valid a little into the past, so that a client whose clock is behind can use it at once.
_BACKDATE: Final = timedelta(minutes=5)
_PEM_BLOCK: Final = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\s.*?-----END \1-----", re.DOTALL
)  # whatever stands between blocks is a remark
_USAGES: Final = {
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
}


_UID: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_SIGNING: Final = frozenset({"digital signature", "signing"})
_ENCIPHERING: Final = frozenset({"key encipherment"})


class CertificateSpec(TypedDict):
    """What a certificate says; `server` and `client` name the ends of a connection at which it may be shown."""

    common_name: str
    organizations: NotRequired[Sequence[str]]
    dns_names: NotRequired[Sequence[str]]
    ip_addresses: NotRequired[Sequence[str]]
    days: int
    now: datetime
    server: bool
    client: bool


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """What a PKCS#10 request asks for. Its signature has been checked: the asker holds the key."""

    common_name: str
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    email_addresses: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def make_key() -> bytes:
    """A new EC P-256 key as PEM (PKCS#8)."""
    return _key_to_pem(ec.generate_private_key(ec.SECP256R1()))


def make_rsa_key() -> bytes:
    """A new RSA key of 2048 bits as PEM (PKCS#8)."""
    return _key_to_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def load_private_keys(pem: bytes) -> list[PrivateKey]:
    """Every private key in a PEM file, in its order. Raises ValueError if one cannot be read."""
    blocks = [block.group(0) for block in _PEM_BLOCK.finditer(pem) if block.group(1).endswith(b"PRIVATE KEY")]
    keys = []
    for block in blocks:
        key = _readable(partial(serialization.load_pem_private_key, block, None), "a private key")
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise ValueError(f"a {type(key).__name__} cannot be used here: make an RSA or ECDSA key")
        keys.append(key)
    return keys


def load_public_keys(pem: bytes) -> list[PublicKey]:
    """The public half of each public key, private key and certificate in a PEM file."""
    found: list[PublicKey] = []
    for block in _PEM_BLOCK.finditer(pem):
        label, text = block.group(1), block.group(0)
        if label.endswith(b"PRIVATE KEY"):
            found += [key.public_key() for key in load_private_keys(text)]
        elif label.endswith(b"PUBLIC KEY"):
            found.append(_usable(_readable(partial(serialization.load_pem_public_key, text), "a public key")))
        elif label == b"CERTIFICATE":
            found.append(_usable(_load_certificate(text).public_key()))
    return found


def signature_algorithm(key: PublicKey) -> str:
    """The JOSE name of the algorithm that goes with a key. Raises ValueError for a curve that has none."""
    if isinstance(key, rsa.RSAPublicKey):
        return "RS256"
    algorithm = _CURVES.get(key.curve.name)
    if algorithm is None:
        raise ValueError(f"the curve {key.curve.name} cannot be used here: use P-256, P-384 or P-521")
    return algorithm


def public_key_der(key: PublicKey) -> bytes:
    """The SubjectPublicKeyInfo, from which Kubernetes derives key ids."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def make_ca(common_name: str, key_pem: bytes, days: int, now: datetime) -> bytes:
    """A self-signed certificate authority."""
    key = _load_key(key_pem)
    builder = (
        _begin(_make_name(common_name), None, key.public_key(), now, now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs=True, enciphers=True, certifies=True), critical=True)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def sign_certificate(ca_cert_pem: bytes, ca_key_pem: bytes, key_pem: bytes, **spec: Unpack[CertificateSpec]) -> bytes:
    """A certificate for a key of our own. It never outlives the authority."""
    ca, key, now = _load_certificate(ca_cert_pem), _load_key(key_pem), spec["now"]
    subject = _make_name(spec["common_name"], spec.get("organizations", ()))
    not_after = min(now + timedelta(days=spec["days"]), ca.not_valid_after_utc)
    usages = ["server auth"] * spec["server"] + ["client auth"] * spec["client"]
    alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in spec.get("dns_names", ())]
    alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in spec.get("ip_addresses", ())]
    builder = _begin(subject, ca, key.public_key(), now, not_after)
    builder = _add_usages(builder, usages, signs=True, enciphers=True)
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(_load_key(ca_key_pem), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def sign_request(
    ca_cert_pem: bytes,
    ca_key_pem: bytes,
    request_pem: bytes,
    *,
    usages: Iterable[str],
    lifetime: timedelta,
    now: datetime,
) -> bytes:
    """The certificate that a PKCS#10 request asks for, limited to `usages` (certificates.k8s.io names).

    It never outlives the authority. Raises ValueError for an unreadable request or an unknown usage.
    """
    ca, request, asked = _load_certificate(ca_cert_pem), _load_request(request_pem), set(usages)
    unknown = asked - set(_USAGES) - _SIGNING - _ENCIPHERING
    if unknown:
        raise ValueError(f"unrecognized usage values: {sorted(unknown)}")
    not_after = min(now + lifetime, ca.not_valid_after_utc)
    builder = _begin(request.subject, ca, _usable(request.public_key()), now, not_after)
    builder = _add_usages(
        builder, sorted(asked & set(_USAGES)), signs=bool(asked & _SIGNING), enciphers=bool(asked & _ENCIPHERING)
    )
    alternatives = _alternative_names(request)
    if alternatives is not None:
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(_load_key(ca_key_pem), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def parse_request(pem: bytes) -> CertificateRequest:
    """Read a PKCS#10 request. Raises ValueError, worded as Kubernetes does for the wrong kind of PEM block."""
    request = _load_request(pem)
    names = _alternative_names(request)
    return CertificateRequest(
        common_name=_common_name(request.subject),
        organizations=_organizations(request.subject),
        dns_names=tuple(names.get_values_for_type(x509.DNSName)) if names else (),
        email_addresses=tuple(names.get_values_for_type(x509.RFC822Name)) if names else (),
        ip_addresses=tuple(map(str, names.get_values_for_type(x509.IPAddress))) if names else (),
        uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)) if names else (),
    )


def expires(cert_pem: bytes) -> datetime:
    """When the first certificate of the PEM text ends."""
    return _load_certificate(cert_pem).not_valid_after_utc


def subject_of(der: bytes) -> tuple[str, tuple[str, ...], datetime]:
    """Common name, organizations and end of validity of a certificate. Raises ValueError if it cannot be read."""
    certificate = _readable(lambda: x509.load_der_x509_certificate(der), "a certificate")
    return _common_name(certificate.subject), _organizations(certificate.subject), certificate.not_valid_after_utc


def uids_of(der: bytes) -> tuple[str, ...]:
    """What a certificate's subject says under Kubernetes' own attribute for a user's uid."""
    certificate = _readable(lambda: x509.load_der_x509_certificate(der), "a certificate")
    return tuple(str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(_UID))


def certificate_to_der(pem: bytes) -> bytes:
    """The DER form of the first certificate of the PEM text."""
    return _load_certificate(pem).public_bytes(serialization.Encoding.DER)


def _begin(
    subject: x509.Name, ca: x509.Certificate | None, key: PublicKey, now: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    """What all our certificates say. Without an authority the certificate is its own."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(ca.subject if ca else subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )
    if ca is None:
        return builder
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(_usable(ca.public_key()))
    return builder.add_extension(identifier, critical=False)


def _add_usages(
    builder: x509.CertificateBuilder, usages: Sequence[str], *, signs: bool, enciphers: bool
) -> x509.CertificateBuilder:
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    if signs or enciphers:
        builder = builder.add_extension(_key_usage(signs=signs, enciphers=enciphers), critical=True)
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage([_USAGES[usage] for usage in usages]), critical=False)
    return builder


def _key_usage(*, signs: bool, enciphers: bool, certifies: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs,
        key_encipherment=enciphers,
        key_cert_sign=certifies,
        crl_sign=certifies,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _make_name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _common_name(subject: x509.Name) -> str:
    # Go keeps the last of several.
    found = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[-1].value) if found else ""


def _organizations(subject: x509.Name) -> tuple[str, ...]:
    return tuple(str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))


def _alternative_names(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


def _load_request(pem: bytes) -> x509.CertificateSigningRequest:
    block = _PEM_BLOCK.search(pem)
    if block is None or block.group(1) != b"CERTIFICATE REQUEST":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    request = _readable(lambda: x509.load_pem_x509_csr(block.group(0)), "a certificate request")
    if not _readable(lambda: request.is_signature_valid, "a certificate request"):
        raise ValueError("the certificate request is not signed with its own key")
    return request


def _load_certificate(pem: bytes) -> x509.Certificate:
    return _readable(lambda: x509.load_pem_x509_certificate(pem), "a certificate")


def _load_key(pem: bytes) -> PrivateKey:
    keys = load_private_keys(pem)
    if not keys:
        raise ValueError("there is no private key in the PEM text")
    return keys[0]


def _key_to_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _usable(key: object) -> PublicKey:
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        raise ValueError(f"a {type(key).__name__} cannot be used here: make an RSA or ECDSA key")
    return key


def _readable(read: Callable[[], _T], what: str) -> _T:
    """Give every way in which the library refuses bytes one name."""
    try:
        return read()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"cannot read {what}: {error}") from error
