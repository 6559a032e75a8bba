"""patch: four kinds of patch bodies become one kind of change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kcp.apis.typed import typed_for
from kcp.endpoints import bodies, negotiation
from kcp.endpoints.options import WriteOptions
from kcp.endpoints.reads import media_for, show
from kcp.endpoints.writes import write_request
from kcp.meta import codec, errors, field
from kcp.meta.field import FieldPath
from kcp.meta.gvk import GroupKind, parse_gvk
from kcp.patch.apply import apply
from kcp.patch.json_patch import apply_json_patch, decode_json_patch
from kcp.patch.merge_patch import apply_merge_patch, decode_merge_patch
from kcp.patch.strategic import apply_strategic_merge_patch, decode_strategic_merge_patch
from kcp.registry.update import Change, update

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.endpoints.request import Request
    from kcp.endpoints.respond import Response
    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource

JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
# A patch without a resource version is tried again when someone else was faster, but not for ever.
ATTEMPTS = 5


def accepted_types(resource: Resource) -> tuple[str, ...]:
    return (JSON_PATCH, MERGE_PATCH, APPLY) if resource.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY)


async def patch_object(registry: Registry, resource: Resource, request: Request) -> Response:
    content_type = negotiation.parse_content_type(request.header(b"content-type"))
    accepted = accepted_types(resource)
    if content_type not in accepted:
        if resource.custom:
            raise bodies.unsupported(accepted)
        raise errors.UnsupportedMediaType("415: Unsupported Media Type", details={})
    media = media_for(request, resource, collection=False)
    options = WriteOptions(request, "PatchOptions")
    data = await request.body()
    if content_type == APPLY:
        change = await _make_apply(registry, resource, request, options, data)
    else:
        change = _make_patch(registry, resource, request, options, content_type, data)
    write = write_request(request, options)
    written = await update(registry, resource, write, change)
    return show(registry, resource, request, written.body, media=media, status=201 if written.created else 200)


def _make_patch(
    registry: Registry, resource: Resource, request: Request, options: WriteOptions, content_type: str, data: bytes
) -> Change:
    mode = options.field_validation or "Warn"
    patched, objections = _patcher(resource, content_type, data, strict=mode != "Ignore")

    def transform(old: Object | None) -> Object:
        assert old is not None
        request.warnings.clear()  # those of an attempt that lost
        return _decode_patched(registry, resource, request, patched(old), mode, objections)

    return Change(transform, consumes=True, attempts=ATTEMPTS)


def _patcher(
    resource: Resource, content_type: str, data: bytes, *, strict: bool
) -> tuple[Callable[[Object], Any], list[str]]:
    """The function that patches, and what strict field validation has to say about the patch itself.

    Patches are consumed, so each attempt reads its own.
    """
    if content_type == JSON_PATCH:
        _, objections = decode_json_patch(data, strict=strict)
        return lambda old: apply_json_patch(old, decode_json_patch(data, strict=False)[0]), objections
    if content_type == MERGE_PATCH:
        _, objections = decode_merge_patch(data, strict=strict)
        return lambda old: apply_merge_patch(old, codec.loads(data)), objections
    _, objections = decode_strategic_merge_patch(data, strict=strict)
    return lambda old: apply_strategic_merge_patch(old, codec.loads(data) or {}, resource.schema_of()), objections


def _decode_patched(
    registry: Registry,
    resource: Resource,
    request: Request,
    obj: Any,  # noqa: ANN401 - a patch may have made anything of it
    mode: str,
    objections: list[str],
) -> Object:
    """A patch may have made anything of the object: it is read as if it had been sent."""
    if not isinstance(obj, dict):
        raise _invalid_patch(obj, "json: cannot unmarshal array into Go value of type map[string]interface {}")
    gvk = resource.gvk
    if (obj.get("apiVersion"), obj.get("kind")) != (gvk.api_version, gvk.kind):
        named, version = obj.get("kind") or "", obj.get("apiVersion") or ""
        if not isinstance(named, str) or not isinstance(version, str) or not named:
            raise _invalid_patch(obj, "Object 'Kind' is missing in '" + codec.dumps(obj).decode() + "'")
        if resource.custom:
            obj = bodies.check_custom_type(obj, gvk, b"")
        else:
            _check_other_kind(registry, obj)
            obj = bodies.check_type(obj, gvk, b"", registry.catalogue.known_kinds)
    unknown: list[str] | None = None if mode == "Ignore" else []
    try:
        decoded = resource.decode(obj, unknown)
    except ValueError as error:
        raise _invalid_patch(obj, str(error)) from error
    found = [*objections, *(unknown or ())]
    if found and mode == "Strict":
        raise _invalid_patch(obj, f"strict decoding error: {', '.join(found)}")
    request.warnings += found
    resource.strategy.default(decoded)
    return decoded


def _check_other_kind(registry: Registry, obj: Object) -> None:
    """A patch that makes another kind of the object is first read as that kind."""
    if f"{obj['apiVersion']}/{obj['kind']}" not in registry.catalogue.known_kinds:
        raise _invalid_patch(obj, bodies.not_registered(obj["kind"], obj["apiVersion"]))
    try:
        typed_for(parse_gvk(obj["apiVersion"], obj["kind"])).decode(obj)
    except ValueError as error:
        raise _invalid_patch(obj, str(error)) from error


def _invalid_patch(obj: Any, why: str) -> errors.Invalid:  # noqa: ANN401
    shown = codec.dumps(obj).decode()
    return errors.Invalid(GroupKind("", ""), "", [field.invalid(FieldPath().child("patch"), shown, why)])


class _Configuration(NamedTuple):
    """What is applied: as JSON, because each attempt consumes its own, and what a strict reader says of the YAML."""

    text: bytes
    objection: str


def _read_configuration(data: bytes, mode: str) -> _Configuration:
    """Raises BadRequest."""
    try:
        configuration = codec.loads_yaml(data)
    except codec.DecodeError as error:
        raise errors.BadRequest(f"error decoding YAML: error converting YAML to JSON: {error}") from error
    if not isinstance(configuration, dict):
        why = bodies.cannot_unmarshal(configuration, "map[string]interface {}")
        raise errors.BadRequest(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    objection = ""
    if mode != "Ignore":
        try:
            codec.loads_yaml(data, strict=True)
        except codec.DecodeError as error:
            objection = str(error)
    return _Configuration(codec.dumps(configuration), objection)


async def _make_apply(
    registry: Registry, resource: Resource, request: Request, options: WriteOptions, data: bytes
) -> Change:
    mode = options.field_validation or "Warn"
    configuration = await bodies.read_yaml(data, _read_configuration, mode)

    def transform(old: Object | None) -> Object:
        request.warnings.clear()
        applied = apply(
            old,
            codec.loads_own(configuration.text),
            resource.write_scope(request.info.subresource),
            manager=options.manager,
            now=registry.clock.now(),
            force=bool(options.force),
        )
        if configuration.objection:
            if mode == "Strict":
                raise errors.BadRequest(f"error strict decoding YAML: {configuration.objection}")
            request.warnings += bodies.yaml_warnings(configuration.objection)
        return _decode_patched(registry, resource, request, applied, mode, [])

    return Change(transform, consumes=True, may_create=True, sets_managers=True, attempts=ATTEMPTS)
