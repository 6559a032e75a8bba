"""Namespaces: the label with their name, the phase, and the finalizers of their content."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kcp.meta import wellknown
from kcp.meta.field import FieldPath, invalid
from kcp.meta.validation import check_dns1123_label
from kcp.registry.gostruct import named
from kcp.registry.metadata import validate_finalizer_name, validate_kube_finalizer
from kcp.registry.strategies.kind import BuiltinStrategy, Step, keep

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import Strategy, WriteContext

ACTIVE: Final = "Active"
TERMINATING: Final = "Terminating"
_FINALIZERS: Final = FieldPath("spec.finalizers")
_PHASE: Final = FieldPath("status.Phase")  # upstream spells it so


class NamespaceStrategy(BuiltinStrategy):
    namespaced = False
    field_labels = ("status.phase",)
    reset_fields = (("status",),)
    update_steps: ClassVar[tuple[Step, ...]] = (Step.METADATA, Step.CONTENT, Step.METADATA_UPDATE)

    def check_name(self, name: str) -> list[str]:
        return check_dns1123_label(name)

    def default(self, obj: Object) -> None:
        metadata = obj["metadata"]
        name = metadata.get("name")
        if name and (metadata.get("labels") or {}).get(wellknown.NAMESPACE_NAME_LABEL) != name:
            metadata["labels"] = (metadata.get("labels") or {}) | {wellknown.NAMESPACE_NAME_LABEL: name}
        status = obj.get("status") or {}
        if not status.get("phase"):
            obj["status"] = status | {"phase": ACTIVE}

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        if not check_dns1123_label(obj["metadata"].get("name", "")):
            self.default(obj)  # labels a generated name; a wrong one should not be blamed twice
        obj["status"] = {"phase": ACTIVE}
        finalizers = obj.get("spec", {}).get("finalizers") or []
        if wellknown.FINALIZER_KUBERNETES not in finalizers:
            obj["spec"] = {**obj.get("spec", {}), "finalizers": [*finalizers, wellknown.FINALIZER_KUBERNETES]}

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "spec", "status")

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        finalizers = obj.get("spec", {}).get("finalizers") or ()
        return [error for finalizer in finalizers for error in _validate_finalizer(finalizer, _FINALIZERS)]

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"status.phase": obj.get("status", {}).get("phase", "")}

    def subresource(self, name: str) -> Strategy | None:
        return {"status": _STATUS, "finalize": _FINALIZE}.get(name)

    def is_held(self, obj: Object) -> bool:
        return super().is_held(obj) or bool(obj.get("spec", {}).get("finalizers"))

    def mark_deleted(self, obj: Object) -> None:
        obj["status"] = {**obj.get("status", {}), "phase": TERMINATING}
        obj["metadata"].pop("deletionGracePeriodSeconds", None)  # a namespace has no period of grace, not even of zero


class NamespaceStatusStrategy(NamespaceStrategy):
    reset_fields = (("spec",),)
    update_steps = (Step.METADATA_UPDATE, Step.TRANSITION)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "spec")

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        phase = obj.get("status", {}).get("phase", "")
        is_deleted = obj["metadata"].get("deletionTimestamp") is not None
        expected, condition = (TERMINATING, "not empty") if is_deleted else (ACTIVE, "empty")
        if phase == expected:
            return []
        return [invalid(_PHASE, named(phase), f"may only be '{expected}' if `deletionTimestamp` is {condition}")]


class NamespaceFinalizeStrategy(NamespaceStrategy):
    update_steps = (Step.METADATA_UPDATE, Step.TRANSITION)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "status")

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        finalizers = enumerate(obj.get("spec", {}).get("finalizers") or ())
        return [error for index, each in finalizers for error in _validate_finalizer(each, _FINALIZERS.index(index))]


def _validate_finalizer(finalizer: str, path: FieldPath) -> list[FieldError]:
    return validate_finalizer_name(finalizer, path) + validate_kube_finalizer(finalizer, path)


_STATUS: Final = NamespaceStatusStrategy()
_FINALIZE: Final = NamespaceFinalizeStrategy()
