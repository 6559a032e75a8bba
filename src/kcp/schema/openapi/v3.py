"""OpenAPI v3: one document for each group version, and the index of them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from kcp.meta import codec
from kcp.schema.openapi.custom import V3_PREFIX, definitions_v3
from kcp.schema.openapi.operations import (
    PARAMETER_TYPES,
    PATH_PARAMETERS,
    Operation,
    operations_of,
    path_of,
    resource_list_operation,
)
from kcp.schema.openapi.resources import META_V1, CustomKind, PublishedResource, gvk_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersion

REASONS: Final = {200: "OK", 201: "Created", 202: "Accepted", 401: "Unauthorized"}


def build_v3(
    group_version: GroupVersion,
    resources: Sequence[PublishedResource],
    custom_kinds: Sequence[CustomKind],
    definitions: Mapping[str, Object],
    *,
    version: str,
) -> tuple[bytes, str]:
    """The document of one group version and its ETag; `definitions` has what schemas may refer to."""
    published = [*resources, *(kind.publish() for kind in custom_kinds)]
    operations = [operation for resource in published for operation in operations_of(resource)]
    if resources:
        operations.append(resource_list_operation(group_version))
    own: dict[str, Object] = {}
    for kind in custom_kinds:
        own |= definitions_v3(kind)
    paths = {path: _path_item(group) for path, group in group_by_path(operations)}
    schemas = own | reachable(roots_of(operations, custom_kinds), definitions, V3_PREFIX)
    document = {
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"BearerToken": {"in": "header", "name": "authorization", "type": "apiKey"}},
        },
        "info": {"title": "Kubernetes", "version": version},
        "openapi": "3.0.0",
        "paths": paths,
        "security": [{"BearerToken": []}],
    }
    return encode(document)


def build_v3_index(etags: Mapping[GroupVersion, str]) -> tuple[bytes, str]:
    """The list of documents, with what each is cached by; and its own ETag."""
    paths = {}
    for group_version, etag in etags.items():
        name = v3_path(group_version)
        paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={etag}"}
    return encode({"paths": dict(sorted(paths.items()))})


def v3_path(group_version: GroupVersion) -> str:
    """`api/v1`, `apis/apps/v1`."""
    return path_of(group_version)[1:]


def encode(document: Object) -> tuple[bytes, str]:
    """The bytes, and what they are cached by: Kubernetes' ETag is the SHA-512 in capitals."""
    body = codec.dumps(document)
    return body, hashlib.sha512(body).hexdigest().upper()


def group_by_path(operations: Iterable[Operation]) -> Iterator[tuple[str, list[Operation]]]:
    """Operations by path, in order of the paths."""
    grouped: dict[str, list[Operation]] = {}
    for operation in operations:
        grouped.setdefault(operation.path, []).append(operation)
    yield from sorted(grouped.items())


def roots_of(operations: Iterable[Operation], custom_kinds: Sequence[CustomKind]) -> set[str]:
    """The definitions that a document refers to from its operations and its custom kinds' schemas."""
    roots = {name for operation in operations for name in (operation.returns, operation.body) if name}
    return roots | ({META_V1 + "ObjectMeta", META_V1 + "ListMeta"} if custom_kinds else set())


def reachable(roots: Iterable[str], definitions: Mapping[str, Object], prefix: str) -> dict[str, Object]:
    """The definitions that the roots refer to, directly or not; names that are not defined are passed over."""
    found: dict[str, Object] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found and name in definitions:
            found[name] = definitions[name]
            waiting += references_in(definitions[name], prefix)
    return found


def references_in(node: object, prefix: str) -> Iterator[str]:
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(prefix)
        for child in node.values():
            yield from references_in(child, prefix)
    elif isinstance(node, list):
        for child in node:
            yield from references_in(child, prefix)


def _path_item(operations: Sequence[Operation]) -> Object:
    shared = frozenset.intersection(*(operation.parameters for operation in operations))
    item = {operation.method: _operation(operation, shared) for operation in operations}
    return item | ({"parameters": _parameters(shared)} if shared else {})


def _operation(operation: Operation, shared: frozenset[str]) -> Object:
    content = {media_type: _schema(operation.returns) for media_type in operation.produces}
    responses: Object = {str(code): {"content": content, "description": REASONS[code]} for code in operation.codes}
    responses["401"] = {"description": REASONS[401]}
    rendered: Object = {"operationId": operation.operation_id, "responses": responses, "tags": [operation.tag]}
    if operation.parameters - shared:
        rendered["parameters"] = _parameters(operation.parameters - shared)
    if operation.body:
        body: dict[str, Any] = {"content": {media_type: _schema(operation.body) for media_type in operation.consumes}}
        rendered["requestBody"] = body | ({"required": True} if operation.body_required else {})
    if operation.gvk is not None:
        rendered["x-kubernetes-action"] = operation.action
        rendered["x-kubernetes-group-version-kind"] = gvk_mark(operation.gvk)
    return rendered


def _parameters(names: Iterable[str]) -> list[Object]:
    return [_parameter(name) for name in sorted(names)]


def _parameter(name: str) -> Object:
    schema = {"type": PARAMETER_TYPES[name], "uniqueItems": True}
    if name in PATH_PARAMETERS:
        return {"in": "path", "name": name, "required": True, "schema": schema}
    return {"in": "query", "name": name, "schema": schema}


def _schema(definition: str) -> Object:
    return {"schema": {"$ref": V3_PREFIX + definition}}
