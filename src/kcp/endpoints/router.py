"""From what a request asks for to the handler that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.endpoints import reads, writes
from kcp.endpoints.patches import patch_object
from kcp.endpoints.respond import Response, not_found_page
from kcp.endpoints.scale import scale_object
from kcp.endpoints.watches import watch_objects
from kcp.meta import errors
from kcp.meta.gvk import GroupVersionResource

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from kcp.endpoints.discovery import Discovery
    from kcp.endpoints.metrics import Metrics
    from kcp.endpoints.openapi import OpenAPI
    from kcp.endpoints.request import Request, Send
    from kcp.endpoints.request_info import RequestInfo
    from kcp.endpoints.reviews import Reviews
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource

    Handler = Callable[[Registry, Resource, Request], Awaitable[Response]]

WILDCARD = "*"
_COLLECTION: dict[str, tuple[str, Handler]] = {
    "GET": ("list", reads.list_objects),
    "HEAD": ("list", reads.list_objects),
    "POST": ("create", writes.create_object),
    "DELETE": ("deletecollection", writes.delete_collection),
}
_OBJECT: dict[str, tuple[str, Handler]] = {
    "GET": ("get", reads.get_object),
    "HEAD": ("get", reads.get_object),
    "PUT": ("update", writes.update_object),
    "PATCH": ("patch", patch_object),
    "DELETE": ("delete", writes.delete_object),
}


def not_found() -> errors.StatusError:
    return errors.NotFound.with_message("the server could not find the requested resource", details={})


def method_not_allowed() -> errors.StatusError:
    why = "the server does not allow this method on the requested resource"
    return errors.MethodNotAllowed.with_message(why, details={})


def _is_namespace(info: RequestInfo) -> bool:
    """Whether it is about the namespace that its path is in, and not about namespaces as if one contained others."""
    return info.resource == "namespaces" and info.namespace == info.name


class Router:
    def __init__(
        self,
        registry: Registry,
        discovery: Discovery,
        openapi: OpenAPI,
        reviews: Reviews,
        draining: asyncio.Event,
        metrics: Metrics,
    ) -> None:
        self._metrics = metrics
        self._registry = registry
        self._catalogue = registry.catalogue
        self._discovery = discovery
        self._openapi = openapi
        self._reviews = reviews
        self._draining = draining

    async def route(self, request: Request, send: Send) -> Response | None:
        """Answer, or stream the answer and return None."""
        info = request.info
        if not info.is_resource:
            return await self._route_path(request)
        gvr = GroupVersionResource(info.group, info.version, info.resource)
        resource = self._catalogue.find(request.cluster, gvr)
        if resource is None:
            return self._unknown_resource(request)
        request.served = True
        if resource.deprecation:
            request.warnings.append(resource.deprecation)
        if request.cluster == WILDCARD and (info.name or info.verb not in ("list", "watch", "get")):
            plain = errors.MethodNotAllowed(resource.group_resource, info.verb)
            raise errors.MethodNotAllowed.with_message(
                f"{plain.message} in the `*` logical cluster", details=plain.details
            )
        if info.namespace and not resource.namespaced and not _is_namespace(info):
            # Before anything else: the question that was authorized is about the namespace.
            if resource.custom:
                return not_found_page()
            raise not_found()
        if resource.custom and resource.namespaced and not info.namespace and info.verb not in ("list", "watch"):
            return not_found_page()
        if info.watch_prefix and request.method != "GET":
            raise method_not_allowed()  # the verb that was authorized is watch, whatever the method
        if info.subresource or len(info.parts) > 3:
            return await self._route_subresource(request, resource)
        if not info.name or info.watch_prefix:
            return await self._route_collection(request, resource, send)
        return await self._route_object(request, resource)

    async def _route_path(self, request: Request) -> Response:
        if request.info.path.startswith("/openapi/"):
            found = await self._openapi.respond(request)
        else:
            found = self._discovery.respond(request) if request.method in ("GET", "HEAD") else None
        if found is not None:
            return found
        if request.info.path.startswith("/api/"):
            raise not_found()
        return not_found_page()

    def _unknown_resource(self, request: Request) -> Response:
        info = request.info
        versions = self._discovery.groups(request.cluster).groups.get(info.group)
        found = versions.get(info.version) if versions else None
        if info.group and (not found or all(each.custom for each in found)):
            return not_found_page()
        raise not_found()

    async def _watch(self, request: Request, resource: Resource, send: Send) -> None:
        gvr = resource.gvr
        scope = "namespace" if request.info.namespace else "cluster"
        running = self._metrics.longrunning.child("WATCH", *gvr, "", scope, "apiserver")
        sent = self._metrics.watch_events.child(*gvr)
        running[0] += 1
        try:
            await watch_objects(self._registry, resource, request, send, draining=self._draining, sent=sent)
        finally:
            running[0] -= 1

    async def _route_collection(self, request: Request, resource: Resource, send: Send) -> Response | None:
        verb, handler = _COLLECTION.get(request.method, ("", None))
        if handler is None or (verb == "deletecollection" and not self._may_delete_collection(request, resource)):
            if resource.custom and request.method in ("PUT", "PATCH"):
                raise errors.BadRequest("name must be provided")
            raise method_not_allowed()
        if verb == "create" and resource.gvr.resource in self._reviews.resources:
            return await self._reviews.create(request, resource)
        if verb not in resource.verbs or (verb == "create" and resource.namespaced and not request.info.namespace):
            raise method_not_allowed()
        if verb == "list" and (request.info.watch_prefix or (request.query_string and request.flag("watch"))):
            if request.method != "GET":
                raise method_not_allowed()
            await self._watch(request, resource, send)
            return None
        return await handler(self._registry, resource, request)

    @staticmethod
    def _may_delete_collection(request: Request, resource: Resource) -> bool:
        return not resource.namespaced or bool(request.info.namespace)

    async def _route_object(self, request: Request, resource: Resource) -> Response:
        if request.method == "POST" and resource.custom:
            return await writes.create_object(self._registry, resource, request)
        verb, handler = _OBJECT.get(request.method, ("", None))
        if handler is None or verb not in resource.verbs:
            raise method_not_allowed()
        if resource.namespaced and not request.info.namespace:
            raise not_found()
        return await handler(self._registry, resource, request)

    async def _route_subresource(self, request: Request, resource: Resource) -> Response:
        info = request.info
        below = resource.subresources.get(info.subresource)
        if below is None or len(info.parts) > 3 or info.watch_prefix or (resource.namespaced and not info.namespace):
            if resource.custom:
                raise errors.NotFound(resource.group_resource, info.name)
            raise not_found()
        if info.subresource == "token":
            if request.method != "POST":
                raise method_not_allowed()
            return await self._reviews.create_token(request, resource)
        verb, handler = _OBJECT.get(request.method, ("", None))
        if handler is None or verb not in below.verbs or verb == "delete":
            if resource.custom:
                raise errors.MethodNotAllowed(resource.group_resource, verb or info.verb)
            raise method_not_allowed()
        if below.scale is not None:
            return await scale_object(self._registry, resource, request, below.scale)
        return await handler(self._registry, resource, request)
