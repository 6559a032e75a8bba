"""create, update and delete"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

from kcp.apis.typed import typed_for
from kcp.endpoints import bodies, negotiation
from kcp.endpoints.options import WriteOptions, check_dry_run, list_options, parse_integer
from kcp.endpoints.reads import media_for, show, show_list
from kcp.endpoints.respond import Response, encode, success_status, wants_pretty
from kcp.meta import codec, errors, field
from kcp.meta.field import FieldPath
from kcp.meta.gvk import GroupKind, GroupVersionKind
from kcp.registry.create import create
from kcp.registry.delete import DeleteOptions, delete
from kcp.registry.listing import list_page
from kcp.registry.request import WriteRequest
from kcp.registry.update import Change, update
from kcp.schema.typed import UnmarshalError

if TYPE_CHECKING:
    from kcp.endpoints.request import Request
    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource
    from kcp.store import Record

DELETED_AT_ONCE = 64
DELETE_OPTIONS = GroupVersionKind("meta.k8s.io", "v1", "DeleteOptions")
_POLICIES = ("Foreground", "Background", "Orphan")
# DeleteOptions are decoded without the sentence around it that other bodies get.
_UNWRAP = re.compile(r"^the object provided is unrecognized \(must be of type \w+\): | \([^()]*\)$")


def write_request(request: Request, options: WriteOptions) -> WriteRequest:
    info = request.info
    return WriteRequest(
        request.cluster,
        request.user,
        namespace=info.namespace,
        name=info.name,
        subresource=info.subresource,
        manager=options.manager,
        dry_run=options.dry_run,
        options=options.shown,
        warnings=request.warnings,
    )


async def decode_body(registry: Registry, resource: Resource, request: Request, options: WriteOptions) -> Object:
    """The body as an object of the resource's kind, normalised and defaulted."""
    data = await request.body()
    content_type = negotiation.parse_content_type(request.header(b"content-type"))
    gvk = resource.gvk
    mode = options.field_validation or "Warn"
    parsed = await bodies.read_body(data, content_type, gvk, strict=mode != "Ignore")
    if resource.custom:
        obj = bodies.check_custom_type(parsed.value, gvk, data)
    else:
        obj = bodies.check_type(parsed.value, gvk, data, registry.catalogue.known_kinds)
    decoded, warnings = bodies.decode(parsed, obj, gvk, resource.decode, mode)
    request.warnings += warnings
    resource.strategy.default(decoded)
    return decoded


async def create_object(registry: Registry, resource: Resource, request: Request) -> Response:
    media = media_for(request, resource, collection=False)
    options = WriteOptions(request, "CreateOptions")
    obj = await decode_body(registry, resource, request, options)
    body = await create(registry, resource, write_request(request, options), obj)
    return show(registry, resource, request, body, media=media, status=201)


async def update_object(registry: Registry, resource: Resource, request: Request) -> Response:
    media = media_for(request, resource, collection=False)
    options = WriteOptions(request, "UpdateOptions")
    obj = await decode_body(registry, resource, request, options)
    name = (obj.get("metadata") or {}).get("name")
    if not name:
        raise errors.BadRequest(
            f"the name of the object ({request.info.name} based on URL) was undeterminable: name must be provided"
        )
    change = Change(lambda old: codec.loads(codec.dumps(obj)), may_create=resource.strategy.allow_create_on_update)
    written = await update(registry, resource, write_request(request, options), change)
    return show(registry, resource, request, written.body, media=media, status=201 if written.created else 200)


async def read_delete_options(request: Request) -> tuple[DeleteOptions, Object, bool]:
    """From the body, or without one from the query. Also as admission shows them, and whether it is a dry run."""
    data = await request.body()
    options: Object = {}
    if data:
        options = _decode_delete_options(data, negotiation.parse_content_type(request.header(b"content-type")))
    elif request.query_string:
        options = _query_delete_options(request)
    dry_run = options.get("dryRun") or []
    _check_delete_options(options, dry_run)
    preconditions = options.get("preconditions") or {}
    found = DeleteOptions(
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation_policy=options.get("propagationPolicy"),
        orphan_dependents=options.get("orphanDependents"),
    )
    shown = {**options, "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    return found, shown, bool(dry_run)


def _decode_delete_options(data: bytes, content_type: str) -> Object:
    try:
        parsed = bodies.parse_body(data, content_type, DELETE_OPTIONS, strict=False)
    except errors.BadRequest as error:
        raise errors.BadRequest(_UNWRAP.sub("", error.message)) from error
    if not isinstance(parsed.value, dict):
        raise errors.BadRequest(f"couldn't get version/kind; {bodies.not_an_object(parsed.value)}")
    kind, version = parsed.value.get("kind", ""), parsed.value.get("apiVersion", "") or "v1"
    if kind not in ("", "DeleteOptions"):
        scheme = "pkg/apis/meta/internalversion/scheme/register.go:27"
        raise errors.BadRequest(f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"')
    try:
        decoded: Object = typed_for(DELETE_OPTIONS).decode(parsed.value, None)
    except UnmarshalError as error:
        raise bodies.cannot_handle("DeleteOptions", "v1", "DeleteOptions", error) from error
    return decoded


def _query_delete_options(request: Request) -> Object:
    options: Object = {}
    if policy := request.parameter("propagationPolicy"):
        options["propagationPolicy"] = policy
    if "orphanDependents" in request.query:
        options["orphanDependents"] = request.flag("orphanDependents")
    if grace := request.parameter("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = parse_integer(grace)
    if "dryRun" in request.query:
        options["dryRun"] = request.query["dryRun"]
    return options


def _check_delete_options(options: Object, dry_run: list[str]) -> None:
    problems: list[field.FieldError] = []
    policy, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    path = FieldPath().child("propagationPolicy")
    if policy is not None and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(field.invalid(path, policy, why))
    if policy is not None and policy not in _POLICIES:
        problems.append(field.not_supported(path, policy, (*_POLICIES, "nil")))
    problems += check_dry_run(dry_run)
    if problems:
        raise errors.Invalid(GroupKind("meta.k8s.io", "DeleteOptions"), "", problems)


async def delete_object(registry: Registry, resource: Resource, request: Request) -> Response:
    media = media_for(request, resource, collection=False)
    options, shown, dry_run = await read_delete_options(request)
    info = request.info
    write = WriteRequest(
        request.cluster,
        request.user,
        namespace=info.namespace,
        name=info.name,
        dry_run=dry_run,
        options=shown,
        warnings=request.warnings,
    )
    deleted = await delete(registry, resource, write, options)
    if not deleted.gone:
        # Other deletions that take time are told as done: clients have come to expect it.
        status = 202 if options.orphan_dependents is False else 200
        return show(registry, resource, request, deleted.body, media=media, status=status)
    return show_gone(resource, request, deleted.last, media.name)


def show_gone(resource: Resource, request: Request, last: Object, media: str) -> Response:
    details = {"name": request.info.name}
    if resource.gvr.group:
        details["group"] = resource.gvr.group
    details["kind"] = resource.gvr.resource
    details["uid"] = last["metadata"].get("uid", "")
    body = encode(codec.dumps(success_status(details)), media, pretty=wants_pretty(request))
    return Response(200, body, media)


async def delete_collection(registry: Registry, resource: Resource, request: Request) -> Response:
    """Every object that the selectors choose, some at a time; the answer is the list that was found."""
    media = media_for(request, resource, collection=False)
    options = list_options(request)
    deletion, shown, dry_run = await read_delete_options(request)
    namespace = request.info.namespace or None if resource.namespaced else ""
    listing = await list_page(registry, resource, request.cluster, namespace, options)
    records = listing.page.records()

    async def remove(record: Record) -> None:
        write = WriteRequest(
            request.cluster,
            request.user,
            namespace=record.key.namespace,
            name=record.key.name,
            dry_run=dry_run,
            options=shown,
            warnings=request.warnings,
        )
        with contextlib.suppress(errors.NotFound):  # someone else was faster, which is as good
            await delete(registry, resource, write, deletion)

    for start in range(0, len(records), DELETED_AT_ONCE):
        # Those that are asked for together are committed together.
        outcomes = await asyncio.gather(
            *(remove(record) for record in records[start : start + DELETED_AT_ONCE]), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
    return show_list(registry, resource, request, listing, media)
