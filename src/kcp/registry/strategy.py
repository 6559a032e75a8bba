"""What one kind does differently from all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kcp.meta import validation

if TYPE_CHECKING:
    from datetime import datetime

    from kcp.auth.user import UserInfo
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError


class WriteContext(NamedTuple):
    """What a strategy may know of the request."""

    cluster: str
    user: UserInfo
    now: datetime
    authorize: Authorize  # asks for the user of this request, in this cluster


class Strategy:
    """Kind-specific rules, in the order in which a write meets them. The defaults here suit a plain kind.

    Objects have gone through `schema.typed` before: fields have the right types, unknown ones are gone, and what Go
    would leave out is left out. Methods that change an object do it in place. Metadata rules that all kinds share
    (labels, annotations, owner references, finalizers, immutable uid and so on) are checked by the registry itself.
    """

    allow_create_on_update = False  # PUT on a name that does not exist creates it
    allow_unconditional_update = True  # PUT without resourceVersion overwrites
    generation = False  # metadata.generation starts at 1 and grows when `spec_of` changes

    def check_name(self, name: str) -> list[str]:
        """Why the name is not allowed; empty if it is."""
        return validation.check_dns1123_subdomain(name)

    def default(self, obj: Object) -> None:
        """Fill in the version's defaults (Kubernetes' SetDefaults_* functions)."""

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Drop what a client may not set (status) and set what the server decides."""

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Everything wrong with a new object, metadata apart."""
        return []

    def warnings_on_create(self, obj: Object, context: WriteContext) -> list[str]:
        return []

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        """Keep what this endpoint may not change (status through the main one, and the reverse)."""

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Everything wrong with the change, metadata apart."""
        return self.validate(obj, context)

    def warnings_on_update(self, obj: Object, old: Object, context: WriteContext) -> list[str]:
        return []

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        """What field selectors see besides metadata.name and metadata.namespace."""
        return {}

    # Names that field selectors of this kind may use besides metadata.name and metadata.namespace.
    field_labels: tuple[str, ...] = ()

    def subresource(self, name: str) -> Strategy | None:
        """The rules for writes through a subresource that stores the same object: `status`, `finalize`, `approval`."""
        return None

    def is_held(self, obj: Object) -> bool:
        """Whether finalizers keep the object from being removed."""
        return bool(obj["metadata"].get("finalizers"))

    def mark_deleted(self, obj: Object) -> None:
        """What changes, besides metadata, when deletion begins. `obj` is a shallow copy: replace, do not change."""

    def spec_of(self, obj: Object) -> object:
        """What a change of raises metadata.generation."""
        return obj.get("spec")


if TYPE_CHECKING:
    from collections.abc import Callable

    # (verb, group, resource, subresource, namespace, name) -> allowed
    Authorize = Callable[[str, str, str, str, str, str], bool]
