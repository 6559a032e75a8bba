"""What the strategies of built-in kinds share: when each looks at the metadata again, and which fields others own."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar

from kcp.registry.metadata import (
    mask_trailing_dash,
    validate_kube_finalizers,
    validate_object_meta,
    validate_object_meta_update,
)
from kcp.registry.strategy import Strategy, WriteContext

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError


class Step(Enum):
    """A part of a kind's update check. Upstream's kinds run them in different orders, which the causes show."""

    METADATA_UPDATE = auto()  # the change of metadata
    METADATA = auto()  # the metadata as if it were new
    CONTENT = auto()  # everything else as if it were new
    TRANSITION = auto()  # everything else against what it was


class BuiltinStrategy(Strategy):
    """Rules of a kind that Kubernetes itself defines."""

    namespaced: ClassVar[bool] = True
    # Paths that this endpoint does not write, so that managers never own them through it.
    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = ()
    update_steps: ClassVar[tuple[Step, ...]] = (Step.METADATA_UPDATE, Step.TRANSITION, Step.METADATA, Step.CONTENT)
    # Whether finalizers need a domain. Not so for the kinds that upstream checks with apimachinery's rules alone.
    kube_finalizers: ClassVar[bool] = True
    # Whether the kind has a rule for names, besides the one for all kinds that they fit into a path.
    names_checked_again: ClassVar[bool] = True

    def check_generate_name(self, name: str) -> list[str]:
        """Why a generateName is not allowed."""
        return self.check_name(mask_trailing_dash(name))

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return self._validate_finalizers(obj) + self.validate_content(obj, context)

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Everything wrong with the object but its metadata."""
        return []

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Everything wrong with the change of all but the metadata."""
        return []

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return self._validate_steps(obj, old, context, repeat=False)

    def validate_update_with_metadata(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """As `validate_update`, and what is wrong with the metadata as often as upstream finds it."""
        return self._validate_steps(obj, old, context, repeat=True)

    def _validate_steps(self, obj: Object, old: Object, context: WriteContext, *, repeat: bool) -> list[FieldError]:
        errors: list[FieldError] = []
        for step in self.update_steps:
            if step is Step.TRANSITION:
                errors += self.validate_transition(obj, old, context)
            elif step is Step.CONTENT:
                errors += self.validate_content(obj, context)
            else:
                if step is Step.METADATA:
                    errors += self._validate_metadata(obj["metadata"], repeat=repeat)
                elif repeat:
                    errors += validate_object_meta_update(obj["metadata"], old["metadata"])
                errors += self._validate_finalizers(obj)
        return errors

    def _validate_metadata(self, metadata: Object, *, repeat: bool) -> list[FieldError]:
        # All but a new generateName has been found valid before, unless everything is to be repeated.
        if not repeat and not metadata.get("generateName"):
            return []
        return validate_object_meta(
            metadata,
            namespaced=self.namespaced,
            check_name=self.check_name if self.names_checked_again else _allow_any,
            check_generate_name=self.check_generate_name if self.names_checked_again else _allow_any,
        )

    def _validate_finalizers(self, obj: Object) -> list[FieldError]:
        metadata = obj["metadata"]
        return validate_kube_finalizers(metadata) if self.kube_finalizers and metadata.get("finalizers") else []


def _allow_any(name: str) -> list[str]:
    return []


def keep(obj: Object, old: Object, *fields: str) -> None:
    """Make the fields what they were."""
    for field in fields:
        if field in old:
            obj[field] = old[field]
        else:
            obj.pop(field, None)
