"""The ServiceAccount `default` of every namespace.

Watches: Namespaces; ServiceAccounts that are deleted.
Writes: ServiceAccounts.
Steps: create the account in an active namespace that has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kcp.controller.client import LocalClient
from kcp.controller.controller import DONE, Controller, Outcome, Watch
from kcp.controller.keys import ClusterKey
from kcp.meta import errors
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.changes import DELETING, ResourceKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from kcp.meta.codec import Object
    from kcp.registry.changes import Change
    from kcp.registry.registry import Registry

NAME: Final = "service-accounts"
DEFAULT: Final = "default"
NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
SERVICE_ACCOUNTS: Final = GroupVersionResource("", "v1", "serviceaccounts")


@dataclass(frozen=True, slots=True)
class Deps:
    get_namespace: Callable[[ClusterKey], Object | None]
    has_account: Callable[[ClusterKey], bool]
    create_account: Callable[[ClusterKey], Awaitable[Object]]


async def reconcile(key: ClusterKey, deps: Deps) -> Outcome:
    namespace = deps.get_namespace(key)
    if namespace is None or namespace["metadata"].get("deletionTimestamp") or deps.has_account(key):
        return DONE
    try:
        await deps.create_account(key)
    except errors.AlreadyExists:
        return DONE
    except (errors.NotFound, errors.Forbidden):
        # The namespace went meanwhile; its next change tells. Anything else is worth another try.
        namespace = deps.get_namespace(key)
        if namespace is not None and not namespace["metadata"].get("deletionTimestamp"):
            raise
    return DONE


def new(registry: Registry) -> Controller[ClusterKey]:
    client = LocalClient(registry, NAME, manager="")

    async def create_account(key: ClusterKey) -> Object:
        account = {
            "kind": "ServiceAccount",
            "apiVersion": "v1",
            "metadata": {"name": DEFAULT, "namespace": key.name},
        }
        return await client.create(key.cluster, SERVICE_ACCOUNTS, account)

    deps = Deps(
        get_namespace=lambda key: client.get(key.cluster, NAMESPACES, "", key.name),
        has_account=lambda key: client.get(key.cluster, SERVICE_ACCOUNTS, key.name, DEFAULT) is not None,
        create_account=create_account,
    )
    return Controller(
        NAME,
        lambda key: reconcile(key, deps),
        watches=(
            Watch(ResourceKey("", "namespaces"), _namespace_keys, _is_active),
            Watch(ResourceKey("", "serviceaccounts"), _account_keys, _is_default_deleted),
        ),
        workers=8,
    )


def _is_active(change: Change) -> bool:
    """Changes of an active namespace do not take its account away, so only its beginning matters."""
    record = change.new
    return record is not None and change.old_stored is None and not record.flags & DELETING


def _is_default_deleted(change: Change) -> bool:
    return change.new_stored is None and change.key.name == DEFAULT


def _namespace_keys(change: Change) -> Iterable[ClusterKey]:
    yield ClusterKey(change.key.cluster, change.key.name)


def _account_keys(change: Change) -> Iterable[ClusterKey]:
    yield ClusterKey(change.key.cluster, change.key.namespace)
