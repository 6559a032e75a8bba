"""Client certificates as identities."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from cryptography import x509 as library
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcp.auth import certificates
from kcp.auth.certificates import ClientCertificates
from kcp.auth.user import UserInfo
from kcp.meta import wellknown
from kcp.meta.fake_clock import FakeClock

UID = library.ObjectIdentifier("1.3.6.1.4.1.57683.2")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def make(clock: FakeClock, *attributes: tuple[library.ObjectIdentifier, str]) -> bytes:
    name = library.Name([library.NameAttribute(oid, text, _validate=False) for oid, text in attributes])
    key = ec.generate_private_key(ec.SECP256R1())
    builder = library.CertificateBuilder(name, name, key.public_key(), 1, clock.now(), clock.now() + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def extra_of(der: bytes) -> dict[str, tuple[str, ...]]:
    return {wellknown.EXTRA_CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}


def test_common_name_and_organizations_are_user_and_groups(clock: FakeClock) -> None:
    der = make(clock, (NameOID.ORGANIZATION_NAME, "a"), (NameOID.ORGANIZATION_NAME, "b"), (NameOID.COMMON_NAME, "jane"))
    found = ClientCertificates(clock).find(der)
    assert found == UserInfo("jane", groups=("a", "b", "system:authenticated"), extra=extra_of(der))


def test_a_uid_may_be_told(clock: FakeClock) -> None:
    der = make(clock, (NameOID.COMMON_NAME, "jane"), (UID, "u1"))
    assert ClientCertificates(clock).find(der) == UserInfo("jane", "u1", ("system:authenticated",), extra_of(der))


@pytest.mark.parametrize(
    ("uids", "message"),
    [pytest.param(["a", "b"], "expected 1 UID", id="two"), pytest.param([""], "cannot be an empty string", id="empty")],
)
def test_a_doubtful_uid_is_refused(clock: FakeClock, uids: list[str], message: str) -> None:
    der = make(clock, (NameOID.COMMON_NAME, "jane"), *((UID, uid) for uid in uids))
    with pytest.raises(ValueError, match=message):
        ClientCertificates(clock).find(der)


def test_without_a_common_name_there_is_no_user(clock: FakeClock) -> None:
    assert ClientCertificates(clock).find(make(clock, (NameOID.ORGANIZATION_NAME, "a"))) is None


def test_a_certificate_that_expires_is_refused_from_then_on(clock: FakeClock) -> None:
    der = make(clock, (NameOID.COMMON_NAME, "jane"))
    found = ClientCertificates(clock)
    assert found.find(der) is found.find(der)
    clock.advance(2 * 24 * 3600)
    with pytest.raises(ValueError, match="expired"):
        found.find(der)


def test_garbage_is_refused(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="cannot read a certificate"):
        ClientCertificates(clock).find(b"garbage")


def test_few_certificates_are_remembered(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_MAX_KNOWN", 1)
    first, second = (make(clock, (NameOID.COMMON_NAME, name)) for name in "ab")
    known = ClientCertificates(clock)
    before = known.find(first)
    known.find(second)
    assert known.find(first) is not before
    assert known.find(first) == before
