"""ServiceAccounts: references to secrets are names and nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.registry.strategies.kind import BuiltinStrategy

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.registry.strategy import WriteContext

ENFORCE_MOUNTABLE_SECRETS_ANNOTATION: Final = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(BuiltinStrategy):
    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        if secrets := obj.get("secrets"):
            obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        self.prepare_for_create(obj, context)

    def warnings_on_create(self, obj: Object, context: WriteContext) -> list[str]:
        if not _enforces_mountable_secrets(obj):
            return []
        return [
            f"metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS_ANNOTATION}]: deprecated in v1.32+; "
            "prefer separate namespaces to isolate access to mounted secrets"
        ]

    def warnings_on_update(self, obj: Object, old: Object, context: WriteContext) -> list[str]:
        return [] if _enforces_mountable_secrets(old) else self.warnings_on_create(obj, context)


def _enforces_mountable_secrets(obj: Object) -> bool:
    return ENFORCE_MOUNTABLE_SECRETS_ANNOTATION in (obj["metadata"].get("annotations") or ())
