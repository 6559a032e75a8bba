"""Objects shown as something else: tables, and metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.meta import codec, errors, field
from kcp.meta.field import FieldPath
from kcp.registry.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kcp.endpoints.negotiation import MediaType
    from kcp.meta.codec import Object
    from kcp.registry.resource import Resource

INCLUDE_POLICIES = ("Metadata", "Object", "None", "")


def include_policy(value: str) -> str:
    """What of each object goes into a table's rows. Raises BadRequest."""
    if value not in INCLUDE_POLICIES:
        problem = field.invalid(
            FieldPath().child("includeObject"), value, "must be 'Metadata', 'Object', 'None', or empty"
        )
        raise errors.BadRequest(f"Unable to convert to Table as requested: {problem}")
    return value or "Metadata"


def table(
    resource: Resource,
    objects: Sequence[Object],
    list_metadata: Object,
    *,
    media: MediaType,
    include: str,
    now: datetime,
    with_columns: bool = True,
) -> Object:
    shown = make_table(
        resource.convertor,
        objects,
        include_object=include,
        with_columns=with_columns,
        list_metadata=list_metadata,
        now=now,
    )
    shown["apiVersion"] = f"meta.k8s.io/{media.transform_version}"
    return shown


def partial(obj: Object, version: str) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def go_name(resource: Resource, *, is_list: bool) -> str:
    """The type that Go names in this error."""
    if resource.custom:
        return "*unstructured.UnstructuredList" if is_list else "*unstructured.Unstructured"
    package = resource.gvk.group.partition(".")[0] or "core"
    return f"*{package}.{resource.list_kind if is_list else resource.gvk.kind}"


def check_shape(resource: Resource, media: MediaType, *, is_list: bool) -> None:
    """The list form fits lists only, and the other way round."""
    if media.transform == "PartialObjectMetadata" and is_list:
        named = go_name(resource, is_list=True)
        raise errors.NotAcceptable(f"you requested PartialObjectMetadata, but the requested object is a list ({named})")
    if media.transform == "PartialObjectMetadataList" and not is_list:
        named = go_name(resource, is_list=False)
        raise errors.NotAcceptable(
            f"you requested PartialObjectMetadataList, but the requested object is not a list ({named})"
        )


def show_object(resource: Resource, body: bytes, *, media: MediaType, include: str, now: datetime) -> bytes:
    """One object's JSON as the transform asked for."""
    check_shape(resource, media, is_list=False)
    obj = codec.loads(body)
    if media.transform == "Table":
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        shown = table(resource, [obj], metadata, media=media, include=include_policy(include), now=now)
        return codec.dumps(shown)
    return codec.dumps(partial(obj, media.transform_version))
