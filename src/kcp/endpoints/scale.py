"""The `scale` subresource: an object's replicas as autoscaling/v1 Scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.apis.typed import typed_for
from kcp.endpoints import bodies, negotiation, patches
from kcp.endpoints.options import WriteOptions
from kcp.endpoints.respond import Response, json_response
from kcp.endpoints.writes import write_request
from kcp.meta import codec, errors, field
from kcp.meta.field import FieldPath
from kcp.meta.gvk import GroupKind, GroupVersionKind
from kcp.patch.json_patch import apply_json_patch, decode_json_patch
from kcp.patch.merge_patch import apply_merge_patch, decode_merge_patch
from kcp.registry.registry import key_of, read_object
from kcp.registry.update import Change, update
from kcp.schema.typed import UnmarshalError

if TYPE_CHECKING:
    from kcp.endpoints.request import Request
    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource, ScaleAccess

SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


async def scale_object(registry: Registry, resource: Resource, request: Request, access: ScaleAccess) -> Response:
    if request.method in ("GET", "HEAD"):
        record = registry.store.get(key_of(resource, request.cluster, request.info.namespace, request.info.name))
        if record is None:
            raise errors.NotFound(resource.group_resource, request.info.name)
        return json_response(200, access.read(read_object(resource, record)))
    is_patch = request.method == "PATCH"
    options = WriteOptions(request, "PatchOptions" if is_patch else "UpdateOptions")
    data = await request.body()
    content_type = negotiation.parse_content_type(request.header(b"content-type"))
    if not is_patch:
        given = _read_scale(request, content_type, data)

    def transform(old: Object | None) -> Object:
        assert old is not None
        scale = _patched(access.read(old), content_type, data) if is_patch else given
        version = (scale.get("metadata") or {}).get("resourceVersion", "")
        changed: Object = codec.loads(codec.dumps(old))
        access.write(changed, scale)
        changed["metadata"]["resourceVersion"] = version or old["metadata"]["resourceVersion"]
        return changed

    write = write_request(request, options)
    write.subresource = ""
    change = Change(transform, tracked_as="scale", attempts=patches.ATTEMPTS if is_patch else 0)
    written = await update(registry, resource, write, change)
    return json_response(200, access.read(codec.loads(written.body)))


def _read_scale(request: Request, content_type: str, data: bytes) -> Object:
    parsed = bodies.parse_body(data, content_type, SCALE, strict=False)
    obj = parsed.value
    if not isinstance(obj, dict):
        raise bodies.unrecognized(SCALE.kind, bodies.not_an_object(obj), data)
    if (obj.get("apiVersion"), obj.get("kind")) not in ((None, None), (SCALE.api_version, SCALE.kind)):
        scheme = "pkg/apiserver/customresource_handler.go:781"
        raise errors.BadRequest(f'no kind is registered for the type v1.Scale in scheme "{scheme}"')
    try:
        scale = typed_for(SCALE).decode(obj, None)
    except UnmarshalError as error:
        raise bodies.cannot_handle(SCALE.kind, SCALE.api_version, SCALE.kind, error) from error
    name = (scale.get("metadata") or {}).get("name", "")
    if name and name != request.info.name:
        raise errors.BadRequest(
            f"the name of the object ({name}) does not match the name on the URL ({request.info.name})"
        )
    return scale


def _patched(scale: Object, content_type: str, data: bytes) -> Object:
    if content_type == patches.JSON_PATCH:
        return _decode(apply_json_patch(scale, decode_json_patch(data)[0]))
    if content_type != patches.MERGE_PATCH:
        raise bodies.unsupported((patches.JSON_PATCH, patches.MERGE_PATCH, patches.APPLY))
    return _decode(apply_merge_patch(scale, decode_merge_patch(data)[0]))


def _decode(scale: Object) -> Object:
    try:
        return typed_for(SCALE).decode(scale, None)
    except UnmarshalError as error:
        shown = codec.dumps(scale).decode()
        problem = field.invalid(FieldPath().child("patch"), shown, str(error))
        raise errors.Invalid(GroupKind("", ""), "", [problem]) from error
