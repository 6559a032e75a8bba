"""get and list"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kcp.endpoints import negotiation, transforms
from kcp.endpoints.options import list_options
from kcp.endpoints.respond import Response, encode, wants_pretty
from kcp.meta import codec, errors
from kcp.meta.wellknown import CLUSTER_ANNOTATION
from kcp.registry.bootstrapped import find_bootstrapped
from kcp.registry.errors import too_large_version
from kcp.registry.listing import list_page, parse_version
from kcp.registry.registry import key_of, read_object

if TYPE_CHECKING:
    from kcp.endpoints.negotiation import MediaType
    from kcp.endpoints.request import Request
    from kcp.meta.codec import Object
    from kcp.registry.listing import Listing
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource

ALL_CLUSTERS = "*"
YAML_AT_ONCE = 100  # objects that are written as YAML on the loop; more of them take too long for others to wait


def media_for(request: Request, resource: Resource, *, collection: bool) -> MediaType:
    accept = request.headers.get(b"accept")
    if accept is None:
        return negotiation.PLAIN_JSON
    media = negotiation.negotiate(accept.decode("latin-1"), collection=collection, custom=resource.custom)
    if media.name == negotiation.PROTOBUF and not resource.can_protobuf and not media.transform.startswith("Partial"):
        return _without_protobuf(accept.decode("latin-1"), resource)
    return media


def _without_protobuf(accept: str, resource: Resource) -> MediaType:
    """Custom resources have no protobuf form: the client's next choice counts."""
    rest = ",".join(part for part in accept.split(",") if not part.strip().startswith(negotiation.PROTOBUF))
    if not rest:
        raise negotiation.not_acceptable()
    return negotiation.negotiate(rest, custom=resource.custom)


async def get_object(registry: Registry, resource: Resource, request: Request) -> Response:
    info = request.info
    media = media_for(request, resource, collection=False)
    version = request.parameter("resourceVersion")
    if version != "0":
        await registry.store.sync()
        wanted = parse_version(version)
        if wanted > registry.store.revision:
            raise too_large_version(wanted, registry.store.revision)
    key = key_of(resource, request.cluster, info.namespace, info.name)
    record = registry.store.get(key)
    if record is None:
        record = find_bootstrapped(registry.store, key)
    if record is None:
        raise errors.NotFound(resource.group_resource, info.name)
    body = record.body if resource.from_storage is None else codec.dumps(read_object(resource, record))
    return show(registry, resource, request, body, media=media)


def show(
    registry: Registry, resource: Resource, request: Request, body: bytes, *, media: MediaType, status: int = 200
) -> Response:
    """One object's JSON in the format that was negotiated."""
    if media == negotiation.PLAIN_JSON and not request.query_string and b"user-agent" not in request.headers:
        return Response(status, body)
    if media.transform:
        include = request.parameter("includeObject")
        body = transforms.show_object(resource, body, media=media, include=include, now=registry.clock.now())
    if media.name != negotiation.JSON or wants_pretty(request):
        body = encode(body, media.name, pretty=wants_pretty(request))
    return Response(status, body, media.name)


async def list_objects(registry: Registry, resource: Resource, request: Request) -> Response:
    media = media_for(request, resource, collection=True)
    transforms.check_shape(resource, media, is_list=True)
    options = list_options(request)
    cluster = None if request.cluster == ALL_CLUSTERS else request.cluster
    namespace = request.info.namespace or None
    if not resource.namespaced:
        namespace = ""
    listing = await list_page(registry, resource, cluster, namespace, options)
    if media.name == negotiation.YAML and len(listing.page.pairs) > YAML_AT_ONCE:
        return await asyncio.to_thread(show_list, registry, resource, request, listing, media)
    return show_list(registry, resource, request, listing, media)


def show_list(registry: Registry, resource: Resource, request: Request, listing: Listing, media: MediaType) -> Response:
    """A page in the format that was negotiated."""
    if media.transform:
        return _show_transformed(registry, resource, request, listing, media)
    body = list_body(resource, listing, with_cluster=request.cluster == ALL_CLUSTERS)
    if media.name != negotiation.JSON or wants_pretty(request):
        body = encode(body, media.name, pretty=wants_pretty(request))
    return Response(200, body, media.name)


def list_body(resource: Resource, listing: Listing, *, with_cluster: bool) -> bytes:
    """A list is its head and the stored bytes of its items."""
    metadata = listing.metadata()
    if resource.custom:
        metadata = {"continue": "", **metadata}
    head = codec.dumps({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
    # Items of built-in kinds do not repeat their type: every body starts with the same bytes.
    cut = len(resource.body_prefix)
    if with_cluster or resource.from_storage is not None:
        objects = list_items(resource, listing, with_cluster=with_cluster)
        # What was converted may have its fields in any order.
        items = [codec.dumps({"kind": 0, "apiVersion": 0, **item})[cut:] for item in objects]
    else:
        items = listing.page.bodies(cut)
    if not items:
        return head[:-1] + b',"items":[]}'
    # The ends go onto the first and last item, so that the long bytes are copied once.
    items[0] = b'%b,"items":[%b%b' % (head[:-1], b"{" if cut else b"", items[0])
    items[-1] += b"]}"
    return (b",{" if cut else b",").join(items)


def list_items(resource: Resource, listing: Listing, *, with_cluster: bool) -> list[Object]:
    if with_cluster:
        found = []
        for record in listing.page.records():
            found.append(read_object(resource, record))
            add_cluster(found[-1], record.key.cluster)
        return found
    objects = list(map(codec.loads_own, listing.page.bodies()))
    return objects if resource.from_storage is None else list(map(resource.from_storage, objects))


def add_cluster(obj: Object, cluster: str) -> None:
    """Objects of several logical clusters are told apart by this annotation."""
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), CLUSTER_ANNOTATION: cluster}


def _show_transformed(
    registry: Registry, resource: Resource, request: Request, listing: Listing, media: MediaType
) -> Response:
    objects = list_items(resource, listing, with_cluster=request.cluster == ALL_CLUSTERS)
    if media.transform == "Table":
        include = transforms.include_policy(request.parameter("includeObject"))
        shown = transforms.table(
            resource, objects, listing.metadata(), media=media, include=include, now=registry.clock.now()
        )
    else:
        items = [transforms.partial(obj, media.transform_version) for obj in objects]
        api_version = f"meta.k8s.io/{media.transform_version}"
        metadata = listing.metadata()
        shown = {"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": metadata, "items": items}
    body = encode(codec.dumps(shown), media.name, pretty=wants_pretty(request))
    return Response(200, body, media.name)
