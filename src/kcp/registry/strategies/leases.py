"""Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta.field import FieldPath, invalid
from kcp.registry.metadata import NOT_NEGATIVE
from kcp.registry.strategies.kind import BuiltinStrategy, Step

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext

_SPEC: Final = FieldPath("spec")
# Fields of coordinated leader election, which is off by default in 1.35.
_GATED: Final = ("strategy", "preferredHolder")


class LeaseStrategy(BuiltinStrategy):
    allow_create_on_update = True
    allow_unconditional_update = False
    kube_finalizers = False
    update_steps = (Step.METADATA_UPDATE, Step.CONTENT)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        for field in _GATED:
            obj.get("spec", {}).pop(field, None)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        for field in _GATED:
            if old.get("spec", {}).get(field) is None:
                obj.get("spec", {}).pop(field, None)

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj.get("spec", {})
        errors: list[FieldError] = []
        seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if seconds is not None and seconds <= 0:
            errors.append(invalid(_SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errors.append(invalid(_SPEC.child("leaseTransitions"), transitions, NOT_NEGATIVE))
        return errors
