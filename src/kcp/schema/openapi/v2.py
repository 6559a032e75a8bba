"""OpenAPI v2: one document for everything, for clients that do not know v3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.schema.openapi.custom import V2_PREFIX, V3_PREFIX, definitions_v2
from kcp.schema.openapi.operations import (
    PARAMETER_TYPES,
    PATH_PARAMETERS,
    Operation,
    operations_of,
    resource_list_operation,
)
from kcp.schema.openapi.resources import CustomKind, PublishedResource, gvk_mark
from kcp.schema.openapi.v3 import REASONS, encode, group_by_path, reachable, roots_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kcp.meta.codec import Object

_INT_OR_STRING: Final = "IntOrString"


def build_v2(
    resources: Sequence[PublishedResource],
    custom_kinds: Sequence[CustomKind],
    definitions: Mapping[str, Object],
    *,
    version: str,
) -> tuple[bytes, str]:
    """The document and its ETag; `definitions` are those of v3."""
    published = [*resources, *(kind.publish() for kind in custom_kinds)]
    operations = [operation for resource in published for operation in operations_of(resource)]
    group_versions = dict.fromkeys(resource.gvk.group_version for resource in resources)
    operations += [resource_list_operation(group_version) for group_version in group_versions]
    own: dict[str, Object] = {}
    for kind in custom_kinds:
        own |= definitions_v2(kind)
    paths = {path: _path_item(group) for path, group in group_by_path(operations)}
    used = reachable(roots_of(operations, custom_kinds), definitions, V3_PREFIX)
    own |= {name: convert_definition(name, schema) for name, schema in used.items()}
    document = {
        "definitions": dict(sorted(own.items())),
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "security": [{"BearerToken": []}],
        "securityDefinitions": {"BearerToken": {"in": "header", "name": "authorization", "type": "apiKey"}},
        "swagger": "2.0",
    }
    return encode(document)


def convert_definition(name: str, schema: Object) -> Object:
    """A built-in schema of v3 as v2 has it: plain references, no defaults, no alternatives."""
    if "oneOf" in schema:
        is_int_or_string = name.endswith(_INT_OR_STRING)
        return {"type": "string"} | ({"format": "int-or-string"} if is_int_or_string else {})
    converted: Object = _convert(schema)
    return converted


def _convert(node: Any) -> Any:  # noqa: ANN401
    if isinstance(node, list):
        return [_convert(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node and isinstance(node["$ref"], str):
        return {"$ref": V2_PREFIX + node["$ref"].removeprefix(V3_PREFIX)}
    if "properties" in node and isinstance(node["properties"], dict):
        properties = {name: _convert(part) for name, part in node["properties"].items()}
        return {key: _convert(part) for key, part in node.items() if key != "default"} | {"properties": properties}
    converted = {key: _convert(part) for key, part in node.items() if key not in ("default", "allOf")}
    # v3 wraps a reference so that it can have a default beside it.
    return converted | (_convert(node["allOf"][0]) if "allOf" in node else {})


def _path_item(operations: Sequence[Operation]) -> Object:
    shared = frozenset.intersection(*(operation.parameters for operation in operations))
    item = {operation.method: _operation(operation, shared) for operation in operations}
    return item | ({"parameters": _parameters(shared)} if shared else {})


def _operation(operation: Operation, shared: frozenset[str]) -> Object:
    schema = _schema(operation.returns)
    responses: Object = {str(code): {"description": REASONS[code], **schema} for code in operation.codes}
    responses["401"] = {"description": REASONS[401]}
    rendered: Object = {
        "consumes": list(operation.consumes),
        "operationId": operation.operation_id,
        "produces": list(operation.produces),
        "responses": responses,
        "schemes": ["https"],
        "tags": [operation.tag],
    }
    parameters = _parameters(operation.parameters - shared)
    if operation.body:
        required = {"required": True} if operation.body_required else {}
        parameters.insert(0, {"in": "body", "name": "body", **required, **_schema(operation.body)})
    if parameters:
        rendered["parameters"] = parameters
    if operation.gvk is not None:
        rendered["x-kubernetes-action"] = operation.action
        rendered["x-kubernetes-group-version-kind"] = gvk_mark(operation.gvk)
    return rendered


def _parameters(names: Iterable[str]) -> list[Object]:
    return [_parameter(name) for name in sorted(names)]


def _parameter(name: str) -> Object:
    place = {"in": "path", "required": True} if name in PATH_PARAMETERS else {"in": "query"}
    return {"name": name, "type": PARAMETER_TYPES[name], "uniqueItems": True, **place}


def _schema(definition: str) -> Object:
    return {"schema": {"$ref": V2_PREFIX + definition}}
