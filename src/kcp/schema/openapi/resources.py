"""What is published of a resource: its names, its verbs and which definitions it uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind

META_V1: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"

_CUSTOM_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CUSTOM_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class PublishedSubresource:
    """A subresource; `definition` names the schema of what it takes and gives."""

    name: str
    gvk: GroupVersionKind
    verbs: tuple[str, ...]
    definition: str


@dataclass(frozen=True, slots=True)
class PublishedResource:
    """A resource of one group version, built in or custom."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    verbs: tuple[str, ...]
    definition: str
    list_definition: str
    subresources: tuple[PublishedSubresource, ...] = ()
    is_custom: bool = False
    returns_deleted: bool = False  # whether DELETE answers with the object instead of a Status


@dataclass(frozen=True, slots=True)
class CustomKind:
    """One served version of a custom resource definition."""

    gvk: GroupVersionKind
    list_kind: str
    plural: str
    namespaced: bool
    schema: Object | None  # openAPIV3Schema
    subresources: tuple[str, ...] = ()  # of "status" and "scale"
    selectable_fields: tuple[str, ...] = ()  # JSON paths

    @property
    def definition(self) -> str:
        return definition_name(self.gvk)

    @property
    def list_definition(self) -> str:
        return definition_name(self.gvk._replace(kind=self.list_kind))

    def publish(self) -> PublishedResource:
        return PublishedResource(
            gvk=self.gvk,
            plural=self.plural,
            namespaced=self.namespaced,
            verbs=_CUSTOM_VERBS,
            definition=self.definition,
            list_definition=self.list_definition,
            subresources=tuple(
                PublishedSubresource(
                    name, self.gvk, _CUSTOM_SUBRESOURCE_VERBS, SCALE if name == "scale" else self.definition
                )
                for name in self.subresources
            ),
            is_custom=True,
        )


def definition_name(gvk: GroupVersionKind) -> str:
    """`com.example.v1.Widget` for the kind Widget of example.com/v1."""
    return ".".join([*reversed(gvk.group.split(".")), gvk.version, gvk.kind])


def gvk_mark(gvk: GroupVersionKind) -> Object:
    """A kind as the extension x-kubernetes-group-version-kind has it."""
    return {"group": gvk.group, "kind": gvk.kind, "version": gvk.version}
