"""Putting the API application together from the rooms below.

Must not serve or listen: `run.py` does. It holds no rules either, only who gets what.
"""

from __future__ import annotations

import platform
import resource
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from kcp.admission.plugins import Dependencies, make_chain
from kcp.admission.webhook_client import WebhookClient
from kcp.auth import x509
from kcp.auth.authenticator import Authenticator
from kcp.auth.authorizer import Authorizer
from kcp.auth.bootstrap import GROUP as RBAC_GROUP
from kcp.auth.certificates import ClientCertificates
from kcp.auth.rbac import RBACAuthorizer
from kcp.auth.service_account_tokens import ServiceAccountTokens
from kcp.auth.signing import KeyRing
from kcp.auth.token_requests import TokenRequests
from kcp.auth.tokens import StaticTokens, TokenFile
from kcp.controller.client import LocalClient
from kcp.controller.leader import Leader
from kcp.controller.manager import ControllerManager
from kcp.endpoints.app import Parts as EndpointParts
from kcp.endpoints.app import make_app
from kcp.endpoints.discovery import Discovery
from kcp.endpoints.flow import Flow, Lane
from kcp.endpoints.health import Health
from kcp.endpoints.metrics import Counter, Gauge, Histogram, Metrics
from kcp.endpoints.openapi import OpenAPI
from kcp.endpoints.reviews import Reviews
from kcp.endpoints.router import Router
from kcp.meta import wellknown
from kcp.meta.names import make_uid
from kcp.reconcilers.all import new_all
from kcp.registry.catalogue import Catalogue
from kcp.registry.changes import ChangeFeed
from kcp.registry.charging import QuotaCharger
from kcp.registry.kinds import CatalogueKinds
from kcp.registry.registry import Registry, StoreReader
from kcp.server.store_health import StoreHealth
from kcp.server.version import VERSION
from kcp.store import ResourceKey, Scope

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from kcp.auth.identity import TokenAuthenticator
    from kcp.auth.user import UserInfo
    from kcp.endpoints.http import Application
    from kcp.meta.clock import Clock
    from kcp.server.certificates import Authority
    from kcp.server.options import ServerOptions
    from kcp.store import Store

_PAGE_BYTES: Final = resource.getpagesize()
# What is looked up in every request and remembered until it changes.
FOLLOWED: Final = (
    *(ResourceKey(RBAC_GROUP, name) for name in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")),
    *(
        ResourceKey("admissionregistration.k8s.io", name)
        for name in (
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        )
    ),
    ResourceKey("", "resourcequotas"),
)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the application is made of, besides the options."""

    options: ServerOptions
    store: Store
    clock: Clock
    url: str
    """Where clients find the server, without a path."""

    admins: Mapping[bytes, UserInfo]
    """The admins by the SHA-256 of their tokens."""

    client_authority: Authority
    """Signs client certificates."""

    signing_key: bytes
    """Signs service account tokens (PEM)."""

    verification_keys: tuple[bytes, ...]
    """PEM texts with the keys whose service account tokens are believed; the signing key's is among them."""

    stopping: asyncio.Event
    """Set once the server was told to stop: it goes on serving for a while, but nobody should begin with it."""

    draining: asyncio.Event
    """Set once long-running requests should end."""

    health: Health = field(default_factory=Health)
    metrics: Metrics = field(default_factory=Metrics)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A server's application, and what runs beside it."""

    app: Application
    registry: Registry
    webhooks: WebhookClient
    tokens: ServiceAccountTokens
    store_health: StoreHealth
    on_change: Callable[[str | None, ResourceKey], None]
    """To be told of changes of what `FOLLOWED` names."""


def build(parts: Parts) -> Assembled:
    """The application of one server."""
    reader = StoreReader(parts.store)
    rbac = RBACAuthorizer(reader)
    authorizer = Authorizer(rbac)
    keys = KeyRing(parts.signing_key, parts.verification_keys)
    tokens = ServiceAccountTokens(keys, reader, parts.clock, (parts.options.authentication.service_account_issuer,))
    authenticator = make_authenticator(parts, tokens)
    catalogue = Catalogue(parts.store)
    webhooks = WebhookClient()
    chain = make_chain(
        Dependencies(
            reader=reader,
            kinds=CatalogueKinds(catalogue),
            authorizer=authorizer,
            charger=QuotaCharger(parts.store),
            webhook_caller=webhooks,
            built_in=frozenset((each.gvr.group, each.gvr.resource) for each in catalogue.builtin()),
            parse_organizations=lambda pem: x509.parse_request(pem).organizations,
        )
    )
    registry = Registry(parts.store, catalogue, chain=chain, authorizer=authorizer, clock=parts.clock)
    flow = Flow(parts.options.serving.flow)
    store_health = add_checks(parts)
    add_figures(parts, flow)
    discovery = Discovery(catalogue, parts.url.removeprefix("https://"))
    router = Router(
        registry,
        discovery,
        OpenAPI(discovery, VERSION["gitVersion"]),
        Reviews(registry, authenticator, TokenRequests(tokens, reader, parts.clock)),
        parts.draining,
        parts.metrics,
    )
    app = make_app(
        EndpointParts(
            router=router,
            catalogue=catalogue,
            authenticator=authenticator,
            authorizer=authorizer,
            flow=flow,
            metrics=parts.metrics,
            health=parts.health,
            version=VERSION,
            tokens=tokens,
            url=parts.url,
            request_timeout=parts.options.serving.flow.request_timeout,
        )
    )

    def on_change(cluster: str | None, resource: ResourceKey) -> None:
        if resource.group == RBAC_GROUP:
            rbac.forget(cluster or wellknown.ADMIN_CLUSTER)  # the servers' own cluster stands for all
        chain.forget(cluster, resource.group, resource.resource)

    return Assembled(cast("Application", app), registry, webhooks, tokens, store_health, on_change)


def make_manager(parts: Parts, assembled: Assembled, root_ca: bytes) -> ControllerManager:
    """The controllers. Where servers share a store, one of them runs them."""
    registry = assembled.registry
    controllers = new_all(registry, sign_token=assembled.tokens.issue_legacy, root_ca=root_ca)
    leader = None
    if parts.options.etcd is not None:
        leader = Leader(LocalClient(registry, "leader-election"), parts.clock, f"{platform.node()}_{make_uid()}")
    observer = ControllerFigures(parts.metrics)
    return ControllerManager(controllers, ChangeFeed(parts.store), parts.clock, leader=leader, observer=observer)


def make_authenticator(parts: Parts, tokens: ServiceAccountTokens) -> Authenticator:
    """Certificates, the admins' tokens, the token file, then service accounts."""
    audiences = tokens.api_audiences
    known: list[TokenAuthenticator] = [StaticTokens(parts.admins, audiences)]
    if parts.options.authentication.token_auth_file is not None:
        known.append(TokenFile(parts.options.authentication.token_auth_file, parts.clock, audiences))
    return Authenticator(
        audiences,
        certificates=ClientCertificates(parts.clock),
        tokens=[*known, tokens],
        anonymous=parts.options.authentication.anonymous_auth,
    )


def add_checks(parts: Parts) -> StoreHealth:
    """What /livez and /readyz look at. A server whose etcd is away need not be restarted, but is not to be asked."""
    stopping = parts.stopping
    store_health = StoreHealth(parts.store, parts.clock)
    name = "store" if parts.options.etcd is None else "etcd"
    parts.health.add(name, store_health.check, endpoints=["healthz", "readyz"])
    parts.health.add("shutdown", lambda: "process is shutting down" if stopping.is_set() else "", endpoints=["readyz"])
    return store_health


def add_figures(parts: Parts, flow: Flow) -> None:
    """What is not counted when it happens, but looked up when somebody asks."""
    store, metrics = parts.store, parts.metrics
    metrics.gauge("kcp_store_revision", "The newest revision of the store.", lambda: {(): store.revision})
    metrics.gauge("kcp_store_compacted_revision", "The oldest revision kept.", lambda: {(): store.compacted})
    metrics.gauge("kcp_store_objects", "Objects in the store.", lambda: {(): store.count(Scope())})
    lanes = (Lane.READONLY, Lane.MUTATING)
    metrics.gauge(
        "apiserver_current_inflight_requests",
        "Number of requests that this server works on, per request kind.",
        lambda: {(lane.value,): flow.in_flight(lane) for lane in lanes},
        ["request_kind"],
    )
    metrics.gauge(
        "apiserver_current_inqueue_requests",
        "Number of requests that wait in this server, per request kind.",
        lambda: {(lane.value,): flow.queued(lane) for lane in lanes},
        ["request_kind"],
    )
    metrics.gauge(
        "process_resident_memory_bytes", "Resident memory size in bytes.", lambda: {(): resident_memory_bytes()}
    )


class ControllerFigures:
    """What the controllers do, under the names that Kubernetes' work queues have."""

    def __init__(self, metrics: Metrics) -> None:
        buckets = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
        self._seconds = metrics.register(
            Histogram("workqueue_work_duration_seconds", "Time to handle one key.", ["name"], buckets=buckets)
        )
        self._retries = metrics.register(Counter("workqueue_retries_total", "Keys that failed.", ["name"]))
        self._depth = metrics.register(Gauge("workqueue_depth", "Keys that wait.", ["name"]))

    def reconciled(self, controller: str, seconds: float, *, failed: bool) -> None:
        self._seconds.observe(controller, value=seconds)
        if failed:
            self._retries.add(controller)

    def queued(self, controller: str, length: int) -> None:
        self._depth.set(controller, value=length)


def resident_memory_bytes() -> int:
    """What the process holds in memory; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
