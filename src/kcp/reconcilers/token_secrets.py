"""Secrets that hold a token of a ServiceAccount.

Watches: Secrets of type kubernetes.io/service-account-token; ServiceAccounts that are deleted.
Writes: such Secrets, and `secrets` of ServiceAccounts.
Steps: delete a Secret whose account is gone or another one; fill in token, namespace and certificate authority where
they are missing; take the name of a deleted Secret out of its account.
"""

from __future__ import annotations

import base64
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.controller.client import LocalClient
from kcp.controller.controller import DONE, Controller, Outcome, Watch
from kcp.controller.keys import NamespacedKey
from kcp.meta import codec, errors
from kcp.meta.gvk import GroupVersionResource
from kcp.registry.changes import ResourceKey
from kcp.registry.delete import DeleteOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from kcp.meta.codec import Object
    from kcp.registry.changes import Change
    from kcp.registry.registry import Registry

    # Of cluster, account and Secret: kcp.auth.service_account_tokens.ServiceAccountTokens.issue_legacy.
    Sign = Callable[[str, Object, Object], str]

NAME: Final = "token-secrets"
TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
SECRETS: Final = GroupVersionResource("", "v1", "secrets")
SERVICE_ACCOUNTS: Final = GroupVersionResource("", "v1", "serviceaccounts")
_TYPE_BYTES: Final = TYPE.encode()


class AccountKey(NamedTuple):
    """An account that was deleted."""

    cluster: str
    namespace: str
    name: str


class SecretKey(NamedTuple):
    """A Secret, and the account that it names."""

    cluster: str
    namespace: str
    name: str
    account: str


@dataclass(frozen=True, slots=True)
class Deps:
    get_account: Callable[[NamespacedKey], Object | None]
    get_secret: Callable[[NamespacedKey], Object | None]
    list_secrets: Callable[[str, str], list[Object]]
    update_secret: Callable[[NamespacedKey, Callable[[Object], None]], Awaitable[Object]]
    update_account: Callable[[NamespacedKey, Callable[[Object], None]], Awaitable[Object]]
    delete_secret: Callable[[NamespacedKey, str], Awaitable[bool]]
    """With the uid it must have."""

    sign: Sign
    root_ca: bytes


async def reconcile(key: SecretKey | AccountKey, deps: Deps) -> Outcome:
    if isinstance(key, AccountKey):
        return reconcile_account(key, deps)
    secret = deps.get_secret(NamespacedKey(*key[:3]))
    if secret is None:
        return await reconcile_reference(key, deps)
    if secret.get("type") != TYPE:
        return DONE
    return await reconcile_secret(key, secret, deps)


def reconcile_account(key: AccountKey, deps: Deps) -> Outcome:
    secrets = deps.list_secrets(key.cluster, key.namespace)
    keys = [
        SecretKey(key.cluster, key.namespace, secret["metadata"]["name"], key.name)
        for secret in secrets
        if secret.get("type") == TYPE and _annotation(secret, ACCOUNT_NAME) == key.name
    ]
    return Outcome(keys=tuple(keys))


async def reconcile_secret(key: SecretKey, secret: Object, deps: Deps) -> Outcome:
    name = _annotation(secret, ACCOUNT_NAME)
    where = NamespacedKey(*key[:3])
    account = deps.get_account(NamespacedKey(key.cluster, key.namespace, name)) if name else None
    uid = _annotation(secret, ACCOUNT_UID)
    if account is None or (uid and uid != account["metadata"]["uid"]):
        with contextlib.suppress(errors.Conflict):  # another one by now, of which we are told
            await deps.delete_secret(where, secret["metadata"]["uid"])
        return DONE
    if not is_complete(secret, deps.root_ca):
        await _fill(where, account, deps)
    return DONE


async def _fill(where: NamespacedKey, account: Object, deps: Deps) -> None:
    def mutate(secret: Object) -> None:
        if is_complete(secret, deps.root_ca):
            return
        data = dict(secret.get("data") or {})
        if deps.root_ca:
            data["ca.crt"] = _encode(deps.root_ca)
        if not data.get("namespace"):
            data["namespace"] = _encode(where.namespace.encode())
        if not data.get("token"):
            data["token"] = _encode(deps.sign(where.cluster, account, secret).encode())
        secret["data"] = dict(sorted(data.items()))
        metadata = secret["metadata"]
        names = {ACCOUNT_NAME: account["metadata"]["name"], ACCOUNT_UID: account["metadata"]["uid"]}
        metadata["annotations"] = dict(sorted({**(metadata.get("annotations") or {}), **names}.items()))

    try:
        await deps.update_secret(where, mutate)
    except errors.NotFound:
        return


async def reconcile_reference(key: SecretKey, deps: Deps) -> Outcome:
    """The Secret is gone: its account should not name it any more."""
    where = NamespacedKey(key.cluster, key.namespace, key.account)
    account = deps.get_account(where)
    if account is None or not any(each.get("name") == key.name for each in account.get("secrets") or ()):
        return DONE

    def mutate(found: Object) -> None:
        kept = [each for each in found.get("secrets") or () if each.get("name") != key.name]
        if kept:
            found["secrets"] = kept
        else:
            found.pop("secrets", None)

    try:
        await deps.update_account(where, mutate)
    except errors.NotFound:
        return DONE
    return DONE


def is_complete(secret: Object, root_ca: bytes) -> bool:
    data = secret.get("data") or {}
    has_ca = not root_ca or data.get("ca.crt") == _encode(root_ca)
    return bool(has_ca and data.get("namespace") and data.get("token"))


def _encode(text: bytes) -> str:
    return base64.b64encode(text).decode()


def _annotation(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def new(registry: Registry, sign: Sign, root_ca: bytes) -> Controller[SecretKey | AccountKey]:
    """`root_ca` is what clients trust the server by (PEM)."""
    client = LocalClient(registry, NAME)

    async def update_secret(key: NamespacedKey, mutate: Callable[[Object], None]) -> Object:
        return await client.update(key.cluster, SECRETS, key.namespace, key.name, mutate)

    async def update_account(key: NamespacedKey, mutate: Callable[[Object], None]) -> Object:
        return await client.update(key.cluster, SERVICE_ACCOUNTS, key.namespace, key.name, mutate)

    async def delete_secret(key: NamespacedKey, uid: str) -> bool:
        return await client.delete(key.cluster, SECRETS, key.namespace, key.name, DeleteOptions(uid=uid))

    deps = Deps(
        get_account=lambda key: client.get(key.cluster, SERVICE_ACCOUNTS, key.namespace, key.name),
        get_secret=lambda key: client.get(key.cluster, SECRETS, key.namespace, key.name),
        list_secrets=lambda cluster, namespace: client.list(cluster, SECRETS, namespace),
        update_secret=update_secret,
        update_account=update_account,
        delete_secret=delete_secret,
        sign=sign,
        root_ca=root_ca,
    )
    return Controller(
        NAME,
        lambda key: reconcile(key, deps),
        watches=(
            Watch(ResourceKey("", "secrets"), _secret_keys, _may_hold_token),
            Watch(ResourceKey("", "serviceaccounts"), _account_keys, _is_deleted),
        ),
    )


def _may_hold_token(change: Change) -> bool:
    return _TYPE_BYTES in (change.new_stored or change.old_stored or b"")


def _is_deleted(change: Change) -> bool:
    return change.new_stored is None


def _secret_keys(change: Change) -> Iterable[SecretKey]:
    record = change.new or change.old
    assert record is not None
    secret: Object = codec.loads(record.body)
    if secret.get("type") == TYPE:
        yield SecretKey(*change.key[1:], _annotation(secret, ACCOUNT_NAME))


def _account_keys(change: Change) -> Iterable[AccountKey]:
    yield AccountKey(*change.key[1:])
