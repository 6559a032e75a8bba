"""Paths and operations of a resource, before they are put in the words of one OpenAPI version.

Names follow `GetOperationIDAndTags` in apiserver/pkg/endpoints/openapi: the verb, the group and version, the rest.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kcp.schema.openapi.resources import META_V1, PublishedResource, PublishedSubresource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kcp.meta.gvk import GroupVersion, GroupVersionKind

PARAMETER_TYPES: Final = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "dryRun": "string",
    "fieldManager": "string",
    "fieldSelector": "string",
    "fieldValidation": "string",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "boolean",
    "labelSelector": "string",
    "limit": "integer",
    "name": "string",
    "namespace": "string",
    "orphanDependents": "boolean",
    "pretty": "string",
    "propagationPolicy": "string",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}  # fmt: skip
PATH_PARAMETERS: Final = frozenset({"name", "namespace"})

_COLLECTION: Final = frozenset(
    {"continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch"}
    | {"sendInitialEvents", "timeoutSeconds"}
)
_LIST: Final = _COLLECTION | {"allowWatchBookmarks", "watch"}
_WRITE: Final = frozenset({"dryRun", "fieldManager", "fieldValidation"})
_DELETE: Final = frozenset(
    {"dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents"}
    | {"propagationPolicy"}
)

_OBJECT_TYPES: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_CUSTOM_TYPES: Final = _OBJECT_TYPES[:2]
_STREAM_TYPES: Final = (
    *_OBJECT_TYPES,
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
)
_ANY_TYPE: Final = ("*/*",)
_CUSTOM_PATCH_TYPES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_PATCH_TYPES: Final = (
    *_CUSTOM_PATCH_TYPES[:2],
    "application/strategic-merge-patch+json",
    *_CUSTOM_PATCH_TYPES[2:],
)

_METHODS: Final = {
    "list": "get", "create": "post", "deletecollection": "delete",
    "get": "get", "update": "put", "patch": "patch", "delete": "delete",
}  # fmt: skip
_ACTIONS: Final = {"create": "post", "update": "put"}
_NAMES: Final = {"get": "read", "update": "replace"}
_CODES: Final = {"create": (200, 201, 202), "update": (200, 201), "patch": (200, 201), "delete": (200, 202)}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path."""

    path: str
    method: str
    operation_id: str
    tag: str
    action: str
    gvk: GroupVersionKind | None
    parameters: frozenset[str]
    returns: str
    codes: tuple[int, ...] = (200,)
    produces: tuple[str, ...] = _OBJECT_TYPES
    body: str = ""
    body_required: bool = True
    consumes: tuple[str, ...] = _ANY_TYPE


def operations_of(resource: PublishedResource) -> Iterator[Operation]:
    """All operations on a resource and its subresources."""
    prefix = path_of(resource.gvk.group_version)
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{prefix}{scope}/{resource.plural}"
    item = f"{collection}/{{name}}"
    if resource.namespaced and "list" in resource.verbs:
        yield _operation(resource, f"{prefix}/{resource.plural}", "list", everywhere=True)
    for verb in ("list", "create", "deletecollection"):
        if verb in resource.verbs:
            yield _operation(resource, collection, verb)
    for verb in ("get", "update", "patch", "delete"):
        if verb in resource.verbs:
            yield _operation(resource, item, verb)
    for subresource in resource.subresources:
        for verb in ("get", "create", "update", "patch"):
            if verb in subresource.verbs:
                yield _operation(resource, f"{item}/{subresource.name}", verb, subresource)
    if "watch" in resource.verbs and not resource.is_custom:
        yield from _watches(resource, prefix, scope)


def resource_list_operation(group_version: GroupVersion) -> Operation:
    """Discovery of a group version."""
    identifier, tag = _identify(group_version, "get", "APIResources")
    returns = META_V1 + "APIResourceList"
    path = path_of(group_version) + "/"
    return Operation(path, "get", identifier, tag, "", None, frozenset(), returns, consumes=_OBJECT_TYPES)


def path_of(group_version: GroupVersion) -> str:
    return f"/apis/{group_version}" if group_version.group else f"/api/{group_version}"


def _operation(
    resource: PublishedResource,
    path: str,
    verb: str,
    subresource: PublishedSubresource | None = None,
    *,
    everywhere: bool = False,
) -> Operation:
    gvk = subresource.gvk if subresource is not None else resource.gvk
    definition = subresource.definition if subresource is not None else resource.definition
    identifier, tag = _identify(resource.gvk.group_version, *_name(resource, verb, subresource, everywhere))
    is_stream = verb == "list" and not resource.is_custom
    produces = _CUSTOM_TYPES if resource.is_custom else _STREAM_TYPES if is_stream else _OBJECT_TYPES
    return Operation(
        path=path,
        method=_METHODS[verb],
        operation_id=identifier,
        tag=tag,
        action=_ACTIONS.get(verb, verb),
        gvk=gvk,
        parameters=_parameters(resource, verb) | _in_path(path),
        returns=_returns(resource, verb, definition),
        codes=(200,) if verb == "patch" and resource.is_custom else _CODES.get(verb, (200,)),
        produces=produces,
        body=_body(resource, verb, definition),
        body_required=not verb.startswith("delete"),
        consumes=_consumes(resource, verb),
    )


def _name(
    resource: PublishedResource, verb: str, subresource: PublishedSubresource | None, everywhere: bool
) -> tuple[str, str]:
    scope = "Namespaced" if resource.namespaced and not everywhere else ""
    suffix = "ForAllNamespaces" if everywhere else subresource.name.title() if subresource is not None else ""
    if verb == "deletecollection":
        return "delete", f"Collection{scope}{resource.gvk.kind}"
    return _NAMES.get(verb, verb), f"{scope}{resource.gvk.kind}{suffix}"


def _identify(group_version: GroupVersion, verb: str, rest: str) -> tuple[str, str]:
    infix, tag = _infix_and_tag(group_version)
    return verb + infix + rest, tag


@functools.lru_cache(maxsize=1024)
def _infix_and_tag(group_version: GroupVersion) -> tuple[str, str]:
    group = (group_version.group or "core").removesuffix(".k8s.io")
    version = group_version.version
    infix = _valid_id(group, capitalize=True) + _valid_id(version, capitalize=True)
    return infix, f"{_valid_id(group)}_{_valid_id(version)}"


def _valid_id(text: str, *, capitalize: bool = False) -> str:
    letters = []
    for index, char in enumerate(text):
        if char.isalpha() or char == "_" or (index and char.isdigit()):
            letters.append(char.upper() if capitalize else char)
            capitalize = False
        else:
            capitalize = True
    return "".join(letters)


def _parameters(resource: PublishedResource, verb: str) -> frozenset[str]:
    if verb == "list":
        return _LIST
    if verb == "deletecollection":
        return _LIST if resource.is_custom else _COLLECTION | _DELETE
    if verb == "get":
        return frozenset({"resourceVersion"}) if resource.is_custom else frozenset()
    if verb == "delete":
        return _DELETE
    return _WRITE | {"force"} if verb == "patch" else _WRITE


def _in_path(path: str) -> frozenset[str]:
    return frozenset({"pretty"} | {name for name in PATH_PARAMETERS if f"{{{name}}}" in path})


def _returns(resource: PublishedResource, verb: str, definition: str) -> str:
    if verb == "list":
        return resource.list_definition
    if verb == "deletecollection" or (verb == "delete" and not resource.returns_deleted):
        return META_V1 + "Status"
    return definition


def _body(resource: PublishedResource, verb: str, definition: str) -> str:
    if verb in ("create", "update"):
        return definition
    if verb == "patch":
        return META_V1 + "Patch"
    has_options = verb == "delete" or (verb == "deletecollection" and not resource.is_custom)
    return META_V1 + "DeleteOptions" if has_options else ""


def _consumes(resource: PublishedResource, verb: str) -> tuple[str, ...]:
    if verb == "patch":
        return _CUSTOM_PATCH_TYPES if resource.is_custom else _PATCH_TYPES
    return _CUSTOM_TYPES if resource.is_custom else _ANY_TYPE


def _watches(resource: PublishedResource, prefix: str, scope: str) -> Iterator[Operation]:
    """The deprecated paths under /watch/, which discovery tools still read."""
    group_version, kind = resource.gvk.group_version, resource.gvk.kind
    scoped = f"Namespaced{kind}" if resource.namespaced else kind
    collection = f"{prefix}/watch{scope}/{resource.plural}"
    found = [
        (collection, f"{scoped}List", "watchlist"),
        (f"{collection}/{{name}}", scoped, "watch"),
    ]
    if resource.namespaced:
        found.append((f"{prefix}/watch/{resource.plural}", f"{kind}ListForAllNamespaces", "watchlist"))
    for path, rest, action in found:
        identifier, tag = _identify(group_version, "watch", rest)
        returns = META_V1 + "WatchEvent"
        operation = Operation(path, "get", identifier, tag, action, resource.gvk, _LIST | _in_path(path), returns)
        yield replace(operation, produces=_STREAM_TYPES)
