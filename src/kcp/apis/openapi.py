"""The OpenAPI v3 schemas of the built-in kinds, without prose."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from kcp.apis import builtin
from kcp.apis.embedded import read_data
from kcp.meta.gvk import GroupVersionKind
from kcp.schema.openapi.resources import PublishedResource, PublishedSubresource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.meta.codec import Object


# Their storage answers a DELETE with the object it deleted.
_RETURNS_DELETED: Final = frozenset({"resourcequotas", "serviceaccounts"})


def definitions() -> Mapping[str, Object]:
    """All schemas by name, such as `io.k8s.api.core.v1.Secret`; they refer to `#/components/schemas/<name>`."""
    schemas: dict[str, Object] = read_data("zz_openapi_schemas.json")["schemas"]
    return schemas


def definition_name(gvk: GroupVersionKind) -> str | None:
    """The name of a kind's schema, or None if the kind is not built in."""
    return _names().get(gvk)


def schema(gvk: GroupVersionKind) -> Object | None:
    """A kind's schema, to be read only; None if the kind is not built in."""
    name = _names().get(gvk)
    return None if name is None else definitions()[name]


@functools.cache
def published() -> tuple[PublishedResource, ...]:
    """The built-in resources as `kcp.schema.openapi` takes them."""
    return tuple(_publish(resource) for resource in builtin.RESOURCES)


def _publish(resource: builtin.Resource) -> PublishedResource:
    names = _names()
    list_gvk = resource.gvk._replace(kind=resource.list_kind)
    return PublishedResource(
        gvk=resource.gvk,
        plural=resource.gvr.resource,
        namespaced=resource.namespaced,
        verbs=resource.verbs,
        definition=names[resource.gvk],
        list_definition=names.get(list_gvk, ""),
        subresources=tuple(
            PublishedSubresource(subresource.name, subresource.gvk, subresource.verbs, names[subresource.gvk])
            for subresource in resource.subresources.values()
        ),
        returns_deleted=not resource.gvr.group and resource.gvr.resource in _RETURNS_DELETED,
    )


@functools.cache
def _names() -> dict[GroupVersionKind, str]:
    return {
        GroupVersionKind(mark["group"], mark["version"], mark["kind"]): name
        for name, schema in definitions().items()
        for mark in schema.get("x-kubernetes-group-version-kind", ())
    }
