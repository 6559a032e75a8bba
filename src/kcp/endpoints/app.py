"""The API as an ASGI application: one list of filters around a router."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kcp.auth.attributes import Attributes
from kcp.auth.authenticator import Credentials
from kcp.auth.authorizer import forbidden
from kcp.auth.impersonation import impersonate, parse_impersonation
from kcp.auth.service_account_tokens import cluster_of_token
from kcp.endpoints import request_info
from kcp.endpoints.flow import Lane
from kcp.endpoints.flow_bodies import BodyBudget
from kcp.endpoints.flow_deadline import request_timeout
from kcp.endpoints.http import peer_certificate
from kcp.endpoints.metrics import CONTENT_TYPE as METRICS_TYPE
from kcp.endpoints.request import ClientGone, Request
from kcp.endpoints.respond import Response, error_response, json_response, not_found_page, send_response
from kcp.meta import clusters, codec, errors, fields, wellknown
from kcp.meta.gvk import GroupResource
from kcp.registry.errors import translate
from kcp.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kcp.auth.authenticator import Authenticator
    from kcp.auth.authorizer import Authorizer
    from kcp.auth.service_account_tokens import ServiceAccountTokens
    from kcp.endpoints.flow import Flow
    from kcp.endpoints.health import Health
    from kcp.endpoints.metrics import Metrics
    from kcp.endpoints.request import Receive, Send
    from kcp.endpoints.router import Router
    from kcp.meta.codec import Object
    from kcp.registry.catalogue import Catalogue

    Handle = Callable[[Request, Send], Awaitable[Response | None]]
    Filter = Callable[["Parts", Handle], Handle]

_log = logging.getLogger(__name__)
_HEALTH = ("/healthz", "/livez", "/readyz")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_WORKSPACES = GroupResource("tenancy.kcp.io", "workspaces")
_IMPERSONATE = b"impersonate-"
_API_PATHS = ("/api", "/openapi")
_NO_CLUSTER = ""  # requests without /clusters/: only paths that are not resources work


@dataclass(frozen=True, slots=True)
class Parts:
    """What the filters work with."""

    router: Router
    catalogue: Catalogue
    authenticator: Authenticator
    authorizer: Authorizer
    flow: Flow
    metrics: Metrics
    health: Health
    version: Object
    tokens: ServiceAccountTokens
    url: str
    bodies: BodyBudget = field(default_factory=BodyBudget)
    request_timeout: float = 60.0


def make_app(parts: Parts) -> Callable[[dict[str, Any], Receive, Send], Awaitable[None]]:
    """The filters in the order in which a request meets them."""
    handle: Handle = parts.router.route
    for make in reversed(FILTERS):
        handle = make(parts, handle)

    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        request.certificate = peer_certificate(scope)
        try:
            response = await handle(request, send)
        except ClientGone:
            return
        if response is not None and not request.streaming:
            await send_response(response, request, send)

    return app


def with_errors(parts: Parts, handle: Handle) -> Handle:
    """Whatever goes wrong becomes a Status; a defect of ours becomes one too, and a log entry."""

    async def filtered(request: Request, send: Send) -> Response | None:
        try:
            return await handle(request, send)
        except errors.StatusError as error:
            return error_response(error, request)
        except StoreError as error:
            return error_response(translate(error, GroupResource("", ""), ""), request)
        except (ClientGone, asyncio.CancelledError):
            raise
        except Exception:
            _log.exception("request failed method=%s path=%s", request.method, request.path)
            why = "an unexpected error; the server's log has the details"
            return error_response(errors.InternalError(why), request)

    return filtered


def with_request_info(parts: Parts, handle: Handle) -> Handle:
    async def filtered(request: Request, send: Send) -> Response | None:
        cluster, path = request_info.split_cluster(request.path)
        request.cluster = _NO_CLUSTER if cluster is None else cluster
        request.info = request_info.parse(request.method, path)
        if cluster is not None and not _is_cluster(cluster):
            raise errors.BadRequest(f'invalid cluster: "{cluster}" does not match the regex')
        return await handle(request, send)

    return filtered


@lru_cache(maxsize=4096)
def _is_cluster(text: str) -> bool:
    try:
        return text == clusters.WILDCARD.text or clusters.parse_path(text).is_valid
    except ValueError:
        return False


def with_metrics(parts: Parts, handle: Handle) -> Handle:
    observe = parts.metrics.observe_request

    async def filtered(request: Request, send: Send) -> Response | None:
        started = perf_counter()
        code = 200
        try:
            response = await handle(request, send)
            if response is not None:
                code = response.status
            return response
        finally:
            observe(_labels(request), code, perf_counter() - started)

    return filtered


def _labels(request: Request) -> tuple[str, ...]:
    """verb, dry_run, group, version, resource, subresource, scope, component

    Only what exists is named: anyone can ask for anything, and each name would be a series.
    """
    info = request.info
    method = request.method if request.method in _METHODS else "OTHER"
    if not request.served:
        return (method, "", "", "", "", "", "", "apiserver")
    verb = "WATCH" if request.streaming else method if method == "OTHER" else info.verb.upper()
    scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
    return (verb, "", info.group, info.version, info.resource, info.subresource, scope, "apiserver")


def with_health(parts: Parts, handle: Handle) -> Handle:
    """Health is answered before anything that could be in trouble itself."""

    async def filtered(request: Request, send: Send) -> Response | None:
        path = request.info.path
        if not path.startswith(_HEALTH) or request.method not in ("GET", "HEAD"):
            return await handle(request, send)
        query = [(name, value) for name, values in request.query.items() for value in values]
        report = parts.health.respond(path, query)
        if report is None:
            return not_found_page()
        content_type = next(value for name, value in report.headers if name == b"content-type")
        rest = [pair for pair in report.headers if pair[0] != b"content-type"]
        return Response(report.code, report.text.encode(), content_type.decode(), rest)

    return filtered


def with_authentication(parts: Parts, handle: Handle) -> Handle:
    authenticator = parts.authenticator

    async def filtered(request: Request, send: Send) -> Response | None:
        header = request.headers.get(b"authorization", b"")
        token = ""
        if header[:7].lower() == b"bearer ":
            token = header[7:].strip().decode("latin-1")
            if request.cluster == _NO_CLUSTER and request.info.path.startswith(_API_PATHS):
                request.cluster = _home_of(token)
        credentials = Credentials(request.cluster, token, request.certificate or b"")
        user = authenticator.authenticate_now(credentials)
        request.user = user if user is not None else await authenticator.authenticate(credentials)
        return await handle(request, send)

    return filtered


def _home_of(token: str) -> str:
    """Where a request without a cluster goes: programs that know no clusters use their service account's own."""
    cluster = cluster_of_token(token)
    is_one = cluster is not None and cluster != clusters.WILDCARD.text and _is_cluster(cluster)
    return cluster if cluster is not None and is_one else _NO_CLUSTER


def with_impersonation(parts: Parts, handle: Handle) -> Handle:
    async def filtered(request: Request, send: Send) -> Response | None:
        for name in request.headers:
            if name.startswith(_IMPERSONATE):
                headers = ((key.decode("latin-1"), value.decode("latin-1")) for key, value in request.all_headers)
                wanted = parse_impersonation(headers)
                if wanted is not None:
                    request.user = impersonate(request.user, request.cluster, wanted, parts.authorizer)
                break
        return await handle(request, send)

    return filtered


def with_flow_control(parts: Parts, handle: Handle) -> Handle:
    """A bounded number of requests at once, shared fairly between logical clusters."""
    flow = parts.flow

    async def filtered(request: Request, send: Send) -> Response | None:
        if wellknown.GROUP_MASTERS in request.user.groups:
            return await handle(request, send)
        lane, cluster = _lane(request), request.cluster
        if lane is Lane.MUTATING:
            # Before it takes a seat: a body may be long in coming, and must not keep others from working.
            with parts.bodies.reserve(cluster, request.headers.get(b"content-length")):
                await request.body()
        if not flow.try_take(cluster, lane):
            await flow.wait(cluster, lane)
        try:
            return await handle(request, send)
        finally:
            flow.release(cluster, lane)

    return filtered


def _lane(request: Request) -> Lane:
    info = request.info
    if info.watch_prefix or (info.verb == "list" and request.query_string and request.flag("watch")):
        return Lane.WATCH
    return Lane.READONLY if request.method in ("GET", "HEAD") else Lane.MUTATING


def with_timeout(parts: Parts, handle: Handle) -> Handle:
    """No request but a watch runs for ever. A write that was handed to the store still happens."""
    seconds = parts.request_timeout

    async def filtered(request: Request, send: Send) -> Response | None:
        if request.method == "GET":  # reads do not wait for anything but the store, which has limits of its own
            return await handle(request, send)
        limit = request_timeout(request.parameter("timeout"), seconds)
        try:
            async with asyncio.timeout(limit):
                return await handle(request, send)
        except TimeoutError:
            why = "request did not complete within the allotted timeout"
            raise errors.Timeout(why) from None

    return filtered


def with_authorization(parts: Parts, handle: Handle) -> Handle:
    authorize = parts.authorizer.authorize

    async def filtered(request: Request, send: Send) -> Response | None:
        info = request.info
        if info.is_resource:
            verb = info.verb
            if verb == "list" and request.query_string and request.flag("watch"):
                verb = "watch"
            name = info.name or _selected_name(request)
            question = Attributes(
                request.user,
                verb,
                request.cluster,
                info.group,
                info.version,
                info.resource,
                info.subresource,
                info.namespace,
                name,
                info.path,
            )
        else:
            question = Attributes(request.user, info.verb, request.cluster, path=info.path)
        decision = authorize(question)
        if not decision.allowed:
            raise forbidden(question, decision.reason)
        return await handle(request, send)

    return filtered


def _selected_name(request: Request) -> str:
    """A collection narrowed to one name by its field selector is asked for by that name."""
    if b"fieldSelector" not in request.query_string:
        return ""
    try:
        name = fields.parse(request.parameter("fieldSelector")).requires_exact_match("metadata.name") or ""
    except ValueError:
        return ""  # the handler says what is wrong with it
    return "" if name in (".", "..") or "/" in name or "%" in name else name


def with_cluster(parts: Parts, handle: Handle) -> Handle:
    """A logical cluster that does not exist is not found, and never made by asking for it."""
    has_cluster = parts.catalogue.has_cluster

    async def filtered(request: Request, send: Send) -> Response | None:
        cluster, info = request.cluster, request.info
        if cluster in (_NO_CLUSTER, clusters.WILDCARD.text) or has_cluster(cluster):
            if info.is_resource and cluster == _NO_CLUSTER:
                return not_found_page()
            return await handle(request, send)
        if info.resource == "logicalclusters" and info.group == wellknown.GROUP_CORE and request.method == "POST":
            return await handle(request, send)  # this is how one comes into being
        raise errors.NotFound(_WORKSPACES, cluster)

    return filtered


def with_server_paths(parts: Parts, handle: Handle) -> Handle:
    async def filtered(request: Request, send: Send) -> Response | None:
        path = request.info.path
        if path in ("/version", "/version/"):
            return json_response(200, parts.version)
        if path == "/openid/v1/jwks":
            return Response(200, codec.dumps(parts.tokens.jwks()), "application/jwk-set+json")
        if path == "/.well-known/openid-configuration":
            return json_response(200, parts.tokens.openid_configuration(f"{parts.url}/openid/v1/jwks"))
        if path == "/metrics":
            if request.cluster == _NO_CLUSTER:
                return Response(200, parts.metrics.render(), METRICS_TYPE)
            error = errors.StatusError("figures are kept for the server, not for a logical cluster")
            error.reason, error.code = "NotImplemented", 501
            raise error
        return await handle(request, send)

    return filtered


FILTERS: tuple[Filter, ...] = (
    with_metrics,
    with_errors,
    with_request_info,
    with_health,
    with_authentication,
    with_impersonation,
    with_flow_control,
    with_timeout,
    with_authorization,
    with_server_paths,
    with_cluster,
)
