"""The Go types behind the built-in kinds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from kcp.apis.embedded import read_data
from kcp.schema.typed.table import Field, TypeTable

if TYPE_CHECKING:
    from kcp.meta.gvk import GroupVersionKind

_META: Final = "meta.k8s.io/v1"


@functools.cache
def type_table() -> TypeTable:
    """All types that the kinds reach."""
    content = read_data("zz_types.json")
    return TypeTable(content["structs"], content["named"])


def struct(name: str) -> tuple[Field, ...]:
    """The fields of a struct by its OpenAPI name, such as `io.k8s.api.core.v1.Secret`. Raises KeyError."""
    return type_table().fields(name)


def struct_name(gvk: GroupVersionKind) -> str | None:
    """The struct of a kind. Kinds such as DeleteOptions and Status are known in every group version."""
    kinds: dict[str, str] = read_data("zz_types.json")["kinds"]
    return kinds.get(f"{gvk.api_version}/{gvk.kind}") or kinds.get(f"{_META}/{gvk.kind}")
