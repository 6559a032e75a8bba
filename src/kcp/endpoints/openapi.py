"""OpenAPI documents of what a logical cluster serves; clusters that serve the same share one document."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from kcp.apis import openapi as builtin_schemas
from kcp.endpoints import negotiation
from kcp.endpoints.respond import Response
from kcp.meta.gvk import GroupVersion
from kcp.registry.strategies.customresources import CustomResourceStrategy
from kcp.schema.openapi import (
    CustomKind,
    PublishedResource,
    PublishedSubresource,
    build_v2,
    build_v3,
    build_v3_index,
    to_protobuf,
    v3_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kcp.endpoints.discovery import Discovery, Groups
    from kcp.endpoints.request import Request
    from kcp.registry.resource import Resource

    Document = tuple[bytes, str]

MAX_DOCUMENTS: Final = 64
_TEXT: Final = "text/plain; charset=utf-8"
_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# What a client may ask for, in our order, and what it is called in the answer.
_V2_TYPES: Final = {
    negotiation.JSON: negotiation.JSON,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": _V2_PROTOBUF,
    _V2_PROTOBUF: _V2_PROTOBUF,
}
_V3_TYPES: Final = {negotiation.JSON: negotiation.JSON}


class OpenAPI:
    def __init__(self, discovery: Discovery, version: str) -> None:
        self._discovery = discovery
        self._version = version
        self._documents: OrderedDict[tuple[str, str], Document] = OrderedDict()

    async def respond(self, request: Request) -> Response | None:
        path = request.info.path.rstrip("/")
        groups = self._discovery.groups(request.cluster)
        if path == "/openapi/v2":
            return self._respond_v2(request, groups)
        if path == "/openapi/v3":
            return _answer(request, self._cached(groups, "v3", lambda: self._build_index(groups)), _TEXT)
        if path.startswith("/openapi/v3/"):
            found = _find(groups, path.removeprefix("/openapi/v3/"))
            if found is None:
                return Response(404, b"", "")
            if _choose_type(request, _V3_TYPES) is None:
                return Response(406, b"", "")
            document = self._document(groups, *found)
            asked = request.parameter("hash")
            if asked and asked != document[1]:
                location = f"{request.path}?hash={document[1]}"
                return Response(301, b"", "", [(b"location", location.encode())])
            return _answer(request, document, negotiation.JSON, is_permanent=bool(asked))
        return None

    def _respond_v2(self, request: Request, groups: Groups) -> Response:
        chosen = _choose_type(request, _V2_TYPES)
        if chosen is None:
            return Response(406, b"", "")
        document = self._cached(groups, "v2", lambda: self._build_v2(groups))
        if chosen == _V2_PROTOBUF:
            body, tag = document
            document = self._cached(groups, chosen, lambda: (to_protobuf(body), tag))
        return _answer(request, document, chosen)

    def _cached(self, groups: Groups, name: str, build: Callable[[], Document]) -> Document:
        key = (groups.fingerprint, name)
        found = self._documents.get(key)
        if found is None:
            found = self._documents[key] = build()
            if len(self._documents) > MAX_DOCUMENTS:
                self._documents.popitem(last=False)
        else:
            self._documents.move_to_end(key)
        return found

    def _document(self, groups: Groups, group_version: GroupVersion, resources: Sequence[Resource]) -> Document:
        def build() -> Document:
            plain = [publish(each) for each in resources if not each.custom]
            custom = [publish_custom(each) for each in resources if each.custom]
            return build_v3(group_version, plain, custom, builtin_schemas.definitions(), version=self._version)

        return self._cached(groups, v3_path(group_version), build)

    def _build_index(self, groups: Groups) -> Document:
        tags = {}
        for group, versions in groups.groups.items():
            for version, resources in versions.items():
                group_version = GroupVersion(group, version)
                tags[group_version] = self._document(groups, group_version, resources)[1]
        return build_v3_index(tags)

    def _build_v2(self, groups: Groups) -> Document:
        served = [each for versions in groups.groups.values() for found in versions.values() for each in found]
        plain = [publish(each) for each in served if not each.custom]
        custom = [publish_custom(each) for each in served if each.custom]
        return build_v2(plain, custom, builtin_schemas.definitions(), version=self._version)


def _find(groups: Groups, name: str) -> tuple[GroupVersion, list[Resource]] | None:
    for group, versions in groups.groups.items():
        for version, resources in versions.items():
            group_version = GroupVersion(group, version)
            if v3_path(group_version) == name:
                return group_version, resources
    return None


def _choose_type(request: Request, types: dict[str, str]) -> str | None:
    """The first of the client's wishes that we have."""
    for clause in negotiation.parse_accept(request.header(b"accept") or "*/*"):
        for offered, given in types.items():
            kind, _, subtype = offered.partition("/")
            if clause.type in (kind, "*") and clause.subtype in (subtype, "*"):
                return given
    return None


def _answer(request: Request, document: Document, content_type: str, *, is_permanent: bool = False) -> Response:
    """`is_permanent`: the address names the content, so that a client need never ask again."""
    body, tag = document
    quoted = f'"{tag}"'.encode()
    headers = [(b"etag", quoted), (b"vary", b"Accept-Encoding"), (b"vary", b"Accept")]
    if is_permanent:
        headers.append((b"cache-control", b"public, immutable"))
    if request.headers.get(b"if-none-match") == quoted:
        return Response(304, b"", "", headers)
    return Response(200, body, content_type, headers)


def publish(resource: Resource) -> PublishedResource:
    name = builtin_schemas.definition_name(resource.gvk) or ""
    below = tuple(
        PublishedSubresource(
            each.name, each.gvk, tuple(sorted(each.verbs)), builtin_schemas.definition_name(each.gvk) or ""
        )
        for each in resource.subresources.values()
    )
    return PublishedResource(
        gvk=resource.gvk,
        plural=resource.gvr.resource,
        namespaced=resource.namespaced,
        verbs=tuple(sorted(resource.verbs)),
        definition=name,
        list_definition=f"{name}List",
        subresources=below,
    )


def publish_custom(resource: Resource) -> CustomKind:
    strategy = resource.strategy
    assert isinstance(strategy, CustomResourceStrategy)
    return CustomKind(
        gvk=resource.gvk,
        list_kind=resource.list_kind,
        plural=resource.gvr.resource,
        namespaced=resource.namespaced,
        schema=strategy.schema,
        subresources=tuple(resource.subresources),
        selectable_fields=strategy.field_labels,
    )
