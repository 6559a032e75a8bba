"""Keys and certificates of a server: made, renewed, replaced."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kcp.auth import x509
from kcp.meta.fake_clock import FakeClock
from kcp.server.certificates import Certificates, find_own_addresses, load_signing_keys, server_names
from kcp.server.options import AuthenticationOptions, ServerOptions, ServingOptions

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime.now(UTC))


@pytest.fixture
def options(tmp_path: Path) -> ServerOptions:
    return ServerOptions(tmp_path / "root")


def handshake(
    server: ssl.SSLContext, authority: bytes, name: str = "localhost", client_file: Path | None = None
) -> bytes:
    """The server's certificate as a client sees it that trusts only `authority`. Raises ssl.SSLError."""
    context = ssl.create_default_context(cadata=authority.decode())
    if client_file is not None:
        context.load_cert_chain(client_file)
    ends = [ssl.MemoryBIO() for _ in range(2)]
    client_end = context.wrap_bio(ends[0], ends[1], server_hostname=name)
    server_end = server.wrap_bio(ends[1], ends[0], server_side=True)
    for end in (client_end, server_end) * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    shown = client_end.getpeercert(binary_form=True)
    assert shown is not None
    return shown


def expiry(certificates: Certificates) -> datetime:
    return x509.subject_of(handshake(certificates.make_context(), certificates.server_authority))[2]


def write_pair(directory: Path, name: str, now: datetime) -> tuple[Path, Path]:
    """A certificate of somebody else's authority, which it is itself."""
    key = x509.make_key()
    authority = x509.make_ca("their-ca", key, 30, now)
    own = x509.make_key()
    certificate = x509.sign_certificate(
        authority, key, own, common_name=name, dns_names=["localhost"], days=20, now=now, server=True, client=True
    )
    files = directory / "their.crt", directory / "their.key"
    files[0].write_bytes(certificate + authority)
    files[1].write_bytes(own)
    return files


def test_everything_is_made_for_the_owner_only(options: ServerOptions, clock: FakeClock) -> None:
    Certificates(options, clock)
    load_signing_keys(options)
    names = {"apiserver-ca.crt", "apiserver-ca.key", "apiserver.crt", "apiserver.key"}
    names |= {"client-ca.crt", "client-ca.key", "sa.key"}
    assert {path.name for path in options.root_directory.iterdir()} == names
    assert {path.stat().st_mode & 0o777 for path in options.root_directory.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "name", ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc", "kcp.example.com", "10.1.2.3"]
)
def test_clients_reach_the_server_under_its_names(options: ServerOptions, clock: FakeClock, name: str) -> None:
    serving = ServingOptions(bind_address="10.1.2.3", external_hostname="kcp.example.com")
    certificates = Certificates(dataclasses.replace(options, serving=serving), clock)
    handshake(certificates.make_context(), certificates.server_authority, name)


def test_authorities_and_the_signing_key_are_kept_over_a_restart(options: ServerOptions, clock: FakeClock) -> None:
    first, signing = Certificates(options, clock), load_signing_keys(options)
    again = Certificates(options, clock)
    assert again.server_authority == first.server_authority
    assert again.client_authority == first.client_authority
    assert load_signing_keys(options) == signing


def test_an_authority_near_its_end_is_replaced_at_a_start(
    options: ServerOptions, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    first = Certificates(options, clock)
    clock.advance(3650 * DAY * 0.6)
    assert Certificates(options, clock).server_authority == first.server_authority
    clock.advance(3650 * DAY * 0.1)
    assert Certificates(options, clock).server_authority != first.server_authority
    assert "need the new kubeconfig" in caplog.text


async def test_a_server_certificate_is_renewed_while_the_server_runs(options: ServerOptions, clock: FakeClock) -> None:
    certificates = Certificates(options, clock)
    replaced: list[ssl.SSLContext] = []
    before = expiry(certificates)
    task = asyncio.create_task(certificates.keep_fresh(replaced.append))
    for days in (0.01, 240, 4, 0.01):
        await clock.wait_for_sleepers()
        clock.advance(days * DAY)
    await clock.wait_for_sleepers()
    task.cancel()
    assert len(replaced) == 1
    assert (x509.expires((options.root_directory / "apiserver.crt").read_bytes()) - before).days in (244, 243)


def test_given_files_are_used_and_read_again_when_they_change(
    options: ServerOptions, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = write_pair(tmp_path, "first", clock.now())
    serving = ServingOptions(tls_cert_file=files[0], tls_private_key_file=files[1])
    certificates = Certificates(dataclasses.replace(options, serving=serving), clock)
    assert not (options.root_directory / "apiserver.crt").exists()
    replaced: list[ssl.SSLContext] = []
    certificates.refresh(replaced.append)
    assert replaced == []
    write_pair(tmp_path, "second", clock.now())
    certificates.refresh(replaced.append)
    assert x509.subject_of(handshake(replaced[0], certificates.server_authority))[0] == "second"
    files[1].write_text("rubbish")
    certificates.refresh(replaced.append)
    assert len(replaced) == 1
    assert "could not be replaced" in caplog.text


def test_client_certificates_of_both_authorities_are_accepted(
    options: ServerOptions, clock: FakeClock, tmp_path: Path
) -> None:
    theirs = write_pair(tmp_path, "bob", clock.now())
    both = tmp_path / "both.pem"
    both.write_bytes(theirs[0].read_bytes() + theirs[1].read_bytes())
    strict = Certificates(options, clock)
    with pytest.raises(ssl.SSLError):
        handshake(strict.make_context(), strict.server_authority, client_file=both)
    believing = dataclasses.replace(options, authentication=AuthenticationOptions(client_ca_file=theirs[0]))
    certificates = Certificates(believing, clock)
    handshake(certificates.make_context(), certificates.server_authority, client_file=both)
    ours = x509.make_key()
    signed = x509.sign_certificate(
        certificates.client_authority.certificate,
        certificates.client_authority.key,
        ours,
        common_name="alice",
        days=1,
        now=clock.now(),
        server=False,
        client=True,
    )
    both.write_bytes(signed + ours)
    handshake(certificates.make_context(), certificates.server_authority, client_file=both)


def test_files_that_do_not_fit_are_named(options: ServerOptions, clock: FakeClock, tmp_path: Path) -> None:
    files = write_pair(tmp_path, "x", clock.now())
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n")
    files[1].write_bytes(x509.make_key())
    serving = ServingOptions(tls_cert_file=files[0], tls_private_key_file=files[1])
    with pytest.raises(ValueError, match=r"their\.crt and .*their\.key are not a certificate and its key"):
        Certificates(dataclasses.replace(options, serving=serving), clock).make_context()
    believing = dataclasses.replace(options, authentication=AuthenticationOptions(client_ca_file=rubbish))
    for text in (rubbish.read_text(), "nothing of the kind"):
        rubbish.write_text(text)
        with pytest.raises(ValueError, match=r"rubbish\.pem has no certificates"):
            Certificates(believing, clock).make_context()


def test_tokens_of_given_keys_are_believed(options: ServerOptions, tmp_path: Path) -> None:
    signing, former = tmp_path / "signing.key", tmp_path / "former.key"
    signing.write_bytes(x509.make_key())
    former.write_bytes(x509.make_key())
    given = AuthenticationOptions(service_account_signing_key_file=signing, service_account_key_files=(former,))
    keys = load_signing_keys(dataclasses.replace(options, authentication=given))
    assert keys == (signing.read_bytes(), (signing.read_bytes(), former.read_bytes()))
    former.write_text("no key")
    with pytest.raises(ValueError, match=r"former\.key has no key"):
        load_signing_keys(dataclasses.replace(options, authentication=given))
    signing.write_text("no key")
    with pytest.raises(ValueError, match=r"signing\.key has no private key"):
        load_signing_keys(dataclasses.replace(options, authentication=given))


def test_a_wildcard_address_brings_the_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcp.server.certificates.find_own_addresses", lambda: ["10.9.8.7"])
    names, addresses = server_names(ServingOptions(external_hostname="[2001:db8::5]"))
    assert addresses == ["127.0.0.1", "::1", "2001:db8::5", "10.9.8.7"]
    assert "localhost" in names


def test_a_machine_without_a_network_has_no_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("network unreachable")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert list(find_own_addresses()) == []
