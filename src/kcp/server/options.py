"""What `kcp start` can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcp.endpoints.flow import FlowOptions
from kcp.endpoints.http_options import HTTPOptions
from kcp.store import StoreOptions

if TYPE_CHECKING:
    from pathlib import Path

    from kcp.store.etcd.options import EtcdOptions


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Where and how the API is offered."""

    bind_address: str = "0.0.0.0"
    """The address to listen on. 0.0.0.0 is all of IPv4, :: is all of IPv6 and IPv4."""

    secure_port: int = 6443
    """The port. 0 is any free one."""

    external_hostname: str = ""
    """The name or address that clients on other machines use. It is in the certificate and the kubeconfig."""

    tls_cert_file: Path | None = None
    """The server's certificate and its chain (PEM). None: the server makes its own."""

    tls_private_key_file: Path | None = None
    """Its key (PEM)."""

    shutdown_delay: float = 0.0
    """Seconds to go on serving after the signal to stop, while /readyz fails, so that a load balancer notices."""

    http: HTTPOptions = field(default_factory=HTTPOptions)
    """How connections are served."""

    flow: FlowOptions = field(default_factory=FlowOptions)
    """How many requests at once."""


@dataclass(frozen=True, slots=True)
class AuthenticationOptions:
    """Whom the server believes."""

    client_ca_file: Path | None = None
    """Authorities (PEM) that sign client certificates, besides the server's own."""

    token_auth_file: Path | None = None
    """CSV of tokens: token,user,uid,"group,group"."""

    service_account_issuer: str = "https://kcp.default.svc"
    """The issuer in service account tokens, the same on all servers of an installation."""

    service_account_signing_key_file: Path | None = None
    """The key (PEM) that signs service account tokens. None: the server makes its own."""

    service_account_key_files: tuple[Path, ...] = ()
    """More keys (PEM) whose service account tokens are believed: those of other servers, or former ones."""

    anonymous_auth: bool = True
    """Whether requests without credentials are system:anonymous (and may see little) or refused."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """One server."""

    root_directory: Path
    """Where everything is kept that must survive a restart."""

    etcd: EtcdOptions | None = None
    """The etcd that several servers share. None: this server keeps its own data."""

    etcd_prefix: str = "/kcp"
    """What the names of this installation's keys in etcd begin with."""

    store: StoreOptions = field(default_factory=StoreOptions)
    """How the store is tuned."""

    serving: ServingOptions = field(default_factory=ServingOptions)
    """Where and how the API is offered."""

    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    """Whom the server believes."""

    @property
    def store_directory(self) -> Path:
        """The embedded store, or the mirror of etcd: they never share a directory."""
        return self.root_directory / ("etcd-mirror" if self.etcd else "store")

    @property
    def kubeconfig(self) -> Path:
        """What the admin gives to kubectl."""
        return self.root_directory / "admin.kubeconfig"
