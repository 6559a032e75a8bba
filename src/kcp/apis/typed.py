"""Decoders of the built-in kinds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from kcp.apis import builtin
from kcp.apis.types import struct_name, type_table
from kcp.schema.typed import Typed

if TYPE_CHECKING:
    from kcp.meta.gvk import GroupVersionKind

# Stored as JSON in Kubernetes, where all others are stored as protobuf.
_STORED_AS_JSON: Final = "apiextensions.k8s.io"


@functools.cache
def typed_for(gvk: GroupVersionKind) -> Typed:
    """The decoder of a kind. Raises KeyError if it is not built in."""
    name = struct_name(gvk)
    if name is None:
        raise KeyError(gvk)
    resource = builtin.BY_GVK.get(gvk)
    is_protobuf = resource is not None and resource.is_stored and gvk.group != _STORED_AS_JSON
    return Typed(type_table(), name, nil_when_empty=is_protobuf)
