"""The server's keys and certificates: made at the first start, renewed in time, replaced without a restart.

Must not decide who a certificate's owner is. In the root directory, readable by the owner only:

    apiserver-ca.crt, .key    the authority that clients trust; in the kubeconfig
    apiserver.crt, .key       the server's certificate: new at each start, so that it names the present addresses
    client-ca.crt, .key       the authority that signs client certificates
    sa.key                    signs service account tokens

An authority lasts ten years and a server certificate one, and each is replaced before its last third. A new authority
asks for new kubeconfigs, so that happens at a start only; a server certificate is replaced while the server runs.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import ssl
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kcp.auth import x509
from kcp.server.files import read_or_make, version_of, write_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime
    from pathlib import Path

    from kcp.meta.clock import Clock
    from kcp.server.options import ServerOptions, ServingOptions

_log = logging.getLogger(__name__)

_CA_DAYS: Final = 3650
_SERVER_DAYS: Final = 365
_LOOK_SECONDS: Final = 60.0
_CLUSTER_NAMES: Final = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority of ours (PEM)."""

    certificate: bytes
    key: bytes


def open_authority(directory: Path, name: str, now: datetime) -> Authority:
    """The authority in `<name>.crt` and `<name>.key`, made anew if there is none or it ends soon."""
    certificate_file, key_file = directory / f"{name}.crt", directory / f"{name}.key"
    if certificate_file.exists() and key_file.exists():
        authority = Authority(certificate_file.read_bytes(), key_file.read_bytes())
        if not _ends_soon(authority.certificate, _CA_DAYS, now):
            return authority
        _log.warning("authority replaced, clients need the new kubeconfig file=%s", certificate_file)
    key = x509.make_key()
    authority = Authority(x509.make_ca(f"kcp-{name}", key, _CA_DAYS, now), key)
    # The key first: a certificate without its key would be believed and could not be used.
    certificate_file.unlink(missing_ok=True)
    write_private(key_file, authority.key)
    write_private(certificate_file, authority.certificate)
    return authority


class Certificates:
    """All of them for one server. Raises OSError or ValueError for files, of the user or ours, that cannot be used."""

    def __init__(self, options: ServerOptions, clock: Clock) -> None:
        self._serving = options.serving
        self._clock = clock
        self._directory = options.root_directory
        self._client_ca_file = options.authentication.client_ca_file
        self._directory.mkdir(parents=True, exist_ok=True)
        now = clock.now()
        self.client_authority = open_authority(self._directory, "client-ca", now)
        self._authority: Authority | None = None
        if options.serving.tls_cert_file is None:
            self._authority = open_authority(self._directory, "apiserver-ca", now)
            self._issue(now)
        self._versions = self._look()

    @property
    def server_authority(self) -> bytes:
        """What clients must trust (PEM): our authority, or the user's certificate with its chain."""
        if self._authority is not None:
            return self._authority.certificate
        return self._server_files[0].read_bytes()

    @property
    def _server_files(self) -> tuple[Path, Path]:
        certificate, key = self._serving.tls_cert_file, self._serving.tls_private_key_file
        if certificate is not None and key is not None:
            return certificate, key
        return self._directory / "apiserver.crt", self._directory / "apiserver.key"

    def make_context(self) -> ssl.SSLContext:
        """TLS as the files are now. A client may show a certificate; one that no client authority signed is refused."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # Kubernetes' clients do not resume sessions, and a resumed one would outlive a change of authorities.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        certificate, key = self._server_files
        try:
            context.load_cert_chain(certificate, key)
        except ssl.SSLError as error:
            raise ValueError(f"{certificate} and {key} are not a certificate and its key: {error}") from error
        context.verify_mode = ssl.CERT_OPTIONAL
        trusted = self.client_authority.certificate
        if self._client_ca_file is not None:
            given = self._client_ca_file.read_bytes()
            if b"-----BEGIN CERTIFICATE-----" not in given:
                raise ValueError(f"{self._client_ca_file} has no certificates of authorities")
            trusted += b"\n" + given
        try:
            context.load_verify_locations(cadata=trusted.decode("ascii", "replace"))
        except ssl.SSLError as error:
            raise ValueError(f"{self._client_ca_file} has no certificates of authorities: {error}") from error
        return context

    async def keep_fresh(self, replace: Callable[[ssl.SSLContext], None]) -> None:
        """Forever: renew what ends soon, read again what the user has changed, and hand over the new context."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            self.refresh(replace)

    def refresh(self, replace: Callable[[ssl.SSLContext], None]) -> None:
        """One look. Files that cannot be used change nothing: the server goes on with what it has."""
        now = self._clock.now()
        try:
            if self._authority is not None and _ends_soon(self._server_files[0].read_bytes(), _SERVER_DAYS, now):
                self._issue(now)
            versions = self._look()
            if versions == self._versions:
                return
            replace(self.make_context())
        except (OSError, ValueError) as error:
            _log.warning("certificates could not be replaced, the old ones stay error=%r", str(error))
            return
        self._versions = versions
        _log.info("certificates replaced files=%s", [str(path) for path in versions])

    def _issue(self, now: datetime) -> None:
        assert self._authority is not None
        names, addresses = server_names(self._serving)
        key = x509.make_key()
        certificate = x509.sign_certificate(
            self._authority.certificate,
            self._authority.key,
            key,
            common_name="kcp",
            dns_names=names,
            ip_addresses=addresses,
            days=_SERVER_DAYS,
            now=now,
            server=True,
            client=False,
        )
        certificate_file, key_file = self._server_files
        write_private(key_file, key)
        write_private(certificate_file, certificate)

    def _look(self) -> dict[Path, tuple[int, int, int]]:
        files = [*self._server_files, *([self._client_ca_file] if self._client_ca_file else [])]
        return {path: version_of(path) for path in files}


def load_signing_keys(options: ServerOptions) -> tuple[bytes, tuple[bytes, ...]]:
    """The key that signs service account tokens, and all PEM texts whose keys are believed, that one first."""
    given = options.authentication
    if given.service_account_signing_key_file is not None:
        signing = given.service_account_signing_key_file.read_bytes()
    else:
        signing = read_or_make(options.root_directory / "sa.key", x509.make_key)
    if not x509.load_private_keys(signing):
        raise ValueError(f"{given.service_account_signing_key_file or 'sa.key'} has no private key")
    believed = [signing]
    for path in given.service_account_key_files:
        believed.append(path.read_bytes())
        if not x509.load_public_keys(believed[-1]):
            raise ValueError(f"{path} has no key")
    return signing, tuple(believed)


def server_names(serving: ServingOptions) -> tuple[list[str], list[str]]:
    """The names and the addresses under which clients may reach the server."""
    given = [serving.external_hostname.strip("[]")] if serving.external_hostname else []
    own = [socket.gethostname(), "localhost", *_CLUSTER_NAMES]
    if is_wildcard(serving.bind_address):
        given += find_own_addresses()
    else:
        given.append(serving.bind_address)
    names: list[str] = []
    addresses = ["127.0.0.1", "::1"]
    for name in (*own, *given):
        (addresses if is_address(name) else names).append(name)
    # A machine's name may be anything; a certificate's may not.
    return [name for name in dict.fromkeys(names) if name and name.isascii()], list(dict.fromkeys(addresses))


def find_own_addresses() -> Iterable[str]:
    """The address that this machine uses towards others, for each protocol it has. Nothing is sent to find out."""
    for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))
                yield probe.getsockname()[0]
        except OSError:  # not connected, or without that protocol
            continue


def is_wildcard(address: str) -> bool:
    return is_address(address) and ipaddress.ip_address(address).is_unspecified


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _ends_soon(certificate: bytes, days: int, now: datetime) -> bool:
    return x509.expires(certificate) - now < timedelta(days=days) / 3
