"""Definitions of custom resources: their defaults, their rules and what happens to their status."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from kcp.meta.clock import parse_time
from kcp.meta.gotext import quote
from kcp.meta.wellknown import FINALIZER_CUSTOM_RESOURCES
from kcp.registry.strategies.crd_internal import make_internal
from kcp.registry.strategies.crd_metadata import EMBEDDED_METADATA
from kcp.registry.strategies.crd_names import TERMINATING, naming_conditions, set_condition
from kcp.registry.strategies.crd_ratchets import find_unknown_formats
from kcp.registry.strategies.crd_schema import SchemaOptions
from kcp.registry.strategies.crd_validation import (
    Options,
    validate_definition,
    validate_definition_update,
    validate_status,
)
from kcp.registry.strategies.kind import BuiltinStrategy, Step, keep

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategies.crd_schema import RuleCompiler
    from kcp.registry.strategy import Strategy, WriteContext

__all__ = ["CustomResourceDefinitionStrategy", "naming_conditions"]

_NAMES: Final = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
_HTTPS_PORT: Final = 443


class CustomResourceDefinitionStrategy(BuiltinStrategy):
    """`compile_rules` judges the CEL rules of a schema; without it they are taken as they come."""

    namespaced: ClassVar[bool] = False
    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("status",),)
    update_steps: ClassVar[tuple[Step, ...]] = (Step.METADATA_UPDATE, Step.TRANSITION)
    kube_finalizers: ClassVar[bool] = False
    allow_unconditional_update = False
    generation = True

    def __init__(self, compile_rules: RuleCompiler | None = None) -> None:
        self._options = Options(schema=replace(SchemaOptions(), compile_rules=compile_rules))
        self._status = CustomResourceDefinitionStatusStrategy()

    def default(self, obj: Object) -> None:
        spec: Object = obj.setdefault("spec", {})
        names: Object = spec.get("names") or {}
        kind = names.get("kind") or ""
        if kind and not names.get("singular"):
            names["singular"] = kind.lower()
        if kind and not names.get("listKind"):
            names["listKind"] = f"{kind}List"
        spec["names"] = {name: names[name] for name in _NAMES if name in names}
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
            if "preserveUnknownFields" in spec:  # comes last
                spec["preserveUnknownFields"] = spec.pop("preserveUnknownFields")
        service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = _HTTPS_PORT
        status: Object = obj.setdefault("status", _empty_status())
        if not status.get("storedVersions"):
            status["storedVersions"] = _add_storage_version(spec, None)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = _empty_status()
        obj["status"]["storedVersions"] = _add_storage_version(obj["spec"], None)

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return validate_definition(obj, EMBEDDED_METADATA, self._options)

    def warnings_on_create(self, obj: Object, context: WriteContext) -> list[str]:
        return [_warn_of_format(name) for name in find_unknown_formats(make_internal(obj["spec"]))]

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        status: Object = dict(old.get("status") or _empty_status())
        status["storedVersions"] = _add_storage_version(obj["spec"], status.get("storedVersions"))
        obj["status"] = status

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return validate_definition_update(obj, old, EMBEDDED_METADATA, self._options)

    def warnings_on_update(self, obj: Object, old: Object, context: WriteContext) -> list[str]:
        before = find_unknown_formats(make_internal(old["spec"]))
        after = find_unknown_formats(make_internal(obj["spec"]))
        return [_warn_of_format(name) for name in after if name not in before]

    def mark_deleted(self, obj: Object) -> None:
        """The instances have to go first, which the cleanup finalizer waits for."""
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER_CUSTOM_RESOURCES not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER_CUSTOM_RESOURCES]
        # Kubernetes marks definitions itself, without the grace period and the generation of other kinds.
        metadata.pop("deletionGracePeriodSeconds", None)
        if "generation" in metadata:
            metadata["generation"] -= 1
        status: Object = dict(obj.get("status") or _empty_status())
        conditions = [dict(condition) for condition in status.get("conditions") or ()]
        set_condition(
            conditions,
            TERMINATING,
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            now=parse_time(metadata["deletionTimestamp"]),
        )
        status["conditions"] = conditions
        obj["status"] = status

    def subresource(self, name: str) -> Strategy | None:
        return self._status if name == "status" else None


class CustomResourceDefinitionStatusStrategy(BuiltinStrategy):
    """Writes to `status`. Metadata can be changed through it: upstream resets it to itself."""

    namespaced: ClassVar[bool] = False
    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("metadata",), ("spec",))
    update_steps: ClassVar[tuple[Step, ...]] = (Step.METADATA_UPDATE, Step.TRANSITION)
    kube_finalizers: ClassVar[bool] = False
    allow_unconditional_update = False

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "spec")

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return validate_status(obj)


def _empty_status() -> Object:
    return {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}


def _add_storage_version(spec: Object, stored: list[str] | None) -> list[str] | None:
    """Objects may now be stored in it; versions once used stay until somebody has migrated their objects."""
    for version in spec.get("versions") or ():
        if version.get("storage"):
            name = version.get("name", "")
            return stored if stored and name in stored else [*(stored or ()), name]
    return stored


def _warn_of_format(name: str) -> str:
    return f"unrecognized format {quote(name)}"
