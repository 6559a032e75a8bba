"""Secrets with tokens of ServiceAccounts."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from kcp.controller.controller import DONE
from kcp.meta import errors
from kcp.reconcilers import token_secrets
from tests.reconcilers.control_plane import SECRETS, SERVICE_ACCOUNTS, ControlPlane

if TYPE_CHECKING:
    from kcp.meta.codec import Object

CA = b"-----BEGIN CERTIFICATE-----"
TYPE = "kubernetes.io/service-account-token"


def sign(cluster: str, account: Object, secret: Object) -> str:
    return f"{cluster}/{account['metadata']['name']}/{secret['metadata']['name']}"


@pytest.fixture
async def tokens(plane: ControlPlane) -> ControlPlane:
    plane.start(token_secrets.new(plane.registry, sign, CA))
    await plane.create(SERVICE_ACCOUNTS, "builder", "default")
    return plane


async def make_secret(plane: ControlPlane, name: str = "token", account: str = "builder", **annotations: str) -> None:
    named = {token_secrets.ACCOUNT_NAME: account, **annotations}
    await plane.create(SECRETS, name, "default", type=TYPE, metadata={"annotations": named})


def data_of(plane: ControlPlane, name: str = "token") -> dict[str, str]:
    secret = plane.get(SECRETS, name, "default")
    assert secret is not None
    return {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}


async def test_a_token_is_filled_in(tokens: ControlPlane) -> None:
    await make_secret(tokens)
    await tokens.settle()
    assert data_of(tokens) == {"ca.crt": CA.decode(), "namespace": "default", "token": "root/builder/token"}
    account, secret = (
        tokens.get(SERVICE_ACCOUNTS, "builder", "default"),
        tokens.get(SECRETS, "token", "default"),
    )
    assert account is not None
    assert secret is not None
    assert secret["metadata"]["annotations"][token_secrets.ACCOUNT_UID] == account["metadata"]["uid"]


async def test_what_is_there_is_kept_but_the_authority(tokens: ControlPlane) -> None:
    data = {"token": "bWluZQ==", "namespace": "aGVyZQ==", "ca.crt": "b2xk", "more": "eA=="}
    annotations = {token_secrets.ACCOUNT_NAME: "builder"}
    await tokens.create(SECRETS, "token", "default", type=TYPE, metadata={"annotations": annotations}, data=data)
    await tokens.settle()
    assert data_of(tokens) == {"token": "mine", "namespace": "here", "ca.crt": CA.decode(), "more": "x"}


async def test_a_removed_token_is_made_again(tokens: ControlPlane) -> None:
    await make_secret(tokens)
    await tokens.settle()

    def strip(secret: Object) -> None:
        del secret["data"]["token"]

    await tokens.update(SECRETS, "token", "default", strip)
    await tokens.settle()
    assert data_of(tokens)["token"] == "root/builder/token"


@pytest.mark.parametrize(
    ("account", "uid"), [("nobody", ""), ("builder", "another")], ids=["no such account", "another account"]
)
async def test_secrets_without_their_account_go(tokens: ControlPlane, account: str, uid: str) -> None:
    await make_secret(tokens, account=account, **({token_secrets.ACCOUNT_UID: uid} if uid else {}))
    await tokens.settle()
    assert tokens.names(SECRETS) == []


async def test_secrets_go_with_their_account(tokens: ControlPlane) -> None:
    await tokens.create(SERVICE_ACCOUNTS, "other", "default")
    await make_secret(tokens)
    await make_secret(tokens, "others", "other")
    await tokens.create(SECRETS, "plain", "default")
    await tokens.settle()
    await tokens.delete(SERVICE_ACCOUNTS, "builder", "default")
    await tokens.settle()
    assert tokens.names(SECRETS) == ["others", "plain"]


async def test_an_account_forgets_a_deleted_secret(tokens: ControlPlane) -> None:
    def name_secrets(account: Object) -> None:
        account["secrets"] = [{"name": "token"}, {"name": "more"}]

    await tokens.update(SERVICE_ACCOUNTS, "builder", "default", name_secrets)
    await make_secret(tokens)
    await make_secret(tokens, "more")
    await tokens.settle()
    await tokens.delete(SECRETS, "token", "default")
    await tokens.settle()
    account = tokens.get(SERVICE_ACCOUNTS, "builder", "default")
    assert account is not None
    assert account["secrets"] == [{"name": "more"}]
    await tokens.delete(SECRETS, "more", "default")
    await tokens.settle()
    account = tokens.get(SERVICE_ACCOUNTS, "builder", "default")
    assert account is not None
    assert "secrets" not in account


async def test_other_secrets_are_left_alone(tokens: ControlPlane) -> None:
    await tokens.create(SECRETS, "plain", "default", data={"x": "eA=="})
    await tokens.create(SECRETS, "decoy", "default", metadata={"annotations": {"type": TYPE}})
    await tokens.settle()
    assert data_of(tokens, "plain") == {"x": "x"}
    assert tokens.names(SECRETS) == ["decoy", "plain"]


async def test_a_secret_or_account_that_goes_meanwhile_is_no_failure() -> None:
    key = token_secrets.SecretKey("root", "default", "token", "builder")
    secret: Object = {
        "type": TYPE,
        "metadata": {"name": "token", "annotations": {token_secrets.ACCOUNT_NAME: "builder"}},
    }
    account: Object = {"metadata": {"name": "builder", "uid": "u"}, "secrets": [{"name": "token"}]}
    found: dict[str, Object | None] = {"secret": secret}

    async def gone(key: object, mutate: object) -> Object:
        raise errors.NotFound(SECRETS.group_resource, "token")

    async def unexpected(key: object, uid: str) -> bool:
        raise AssertionError("not reached")

    deps = token_secrets.Deps(
        get_account=lambda key: account,
        get_secret=lambda key: found["secret"],
        list_secrets=lambda cluster, namespace: [],
        update_secret=gone,
        update_account=gone,
        delete_secret=unexpected,
        sign=sign,
        root_ca=b"",
    )
    assert await token_secrets.reconcile(key, deps) == DONE
    found["secret"] = None
    assert await token_secrets.reconcile(key, deps) == DONE
    found["secret"] = {"type": "Opaque", "metadata": {"name": "token"}}
    assert await token_secrets.reconcile(key, deps) == DONE


async def test_without_an_authority_none_is_written(plane: ControlPlane) -> None:
    plane.start(token_secrets.new(plane.registry, sign, b""))
    await plane.create(SERVICE_ACCOUNTS, "builder", "default")
    await make_secret(plane)
    await plane.settle()
    assert sorted(data_of(plane)) == ["namespace", "token"]
