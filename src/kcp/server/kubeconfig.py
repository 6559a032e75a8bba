"""The admins: their tokens, and the kubeconfig that lets kubectl use them.

Must not decide what an admin may do: groups say that. Two admins, as kcp has them:

    kcp-admin      may do everything in every workspace; its token is new at each start
    shard-admin    may do everything; its token is kept. The file .admin-token-store has the token's digest, the
                   kubeconfig alone has the token: whoever deletes both gets a new one
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.auth.user import UserInfo
from kcp.meta import wellknown
from kcp.meta.codec import DecodeError, dumps_yaml, loads_yaml
from kcp.server.files import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from kcp.meta.codec import Object

KCP_ADMIN: Final = "kcp-admin"
SHARD_ADMIN: Final = "shard-admin"
TOKEN_STORE: Final = ".admin-token-store"


class AdminTokens(NamedTuple):
    kcp_admin: str
    shard_admin: str

    def users(self) -> dict[bytes, UserInfo]:
        """Who they are, by the SHA-256 of the token."""
        return {
            _digest(self.kcp_admin): UserInfo(KCP_ADMIN, groups=(wellknown.GROUP_KCP_ADMIN,)),
            _digest(self.shard_admin): UserInfo(SHARD_ADMIN, groups=(wellknown.GROUP_MASTERS,)),
        }


def open_admin_tokens(root_directory: Path, kubeconfig: Path) -> AdminTokens:
    """A new token for kcp-admin; the kept one for shard-admin, or a new one if the files do not agree."""
    store = root_directory / TOKEN_STORE
    kept = _read_token(kubeconfig)
    if kept and store.exists() and hmac.compare_digest(store.read_bytes().strip(), _digest(kept).hex().encode()):
        return AdminTokens(_make_token(), kept)
    tokens = AdminTokens(_make_token(), _make_token())
    write_private(store, _digest(tokens.shard_admin).hex().encode() + b"\n")
    return tokens


def write_kubeconfig(path: Path, server: str, authority: bytes, tokens: AdminTokens) -> None:
    write_private(path, dumps_yaml(make_kubeconfig(server, authority, tokens)).encode())


def make_kubeconfig(server: str, authority: bytes, tokens: AdminTokens) -> Object:
    """`server` is the URL without a path. The current context is the root workspace."""
    embedded = base64.b64encode(authority).decode()
    clusters = {
        "root": f"{server}/clusters/{wellknown.ROOT_CLUSTER}",
        "base": server,
        "system:admin": f"{server}/clusters/{wellknown.ADMIN_CLUSTER}",
    }
    contexts = {
        "root": ("root", KCP_ADMIN),
        "base": ("base", KCP_ADMIN),
        "system:admin": ("system:admin", SHARD_ADMIN),
        "shard-base": ("base", SHARD_ADMIN),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"certificate-authority-data": embedded, "server": url}}
            for name, url in clusters.items()
        ],
        "contexts": [
            {"name": name, "context": {"cluster": cluster, "user": user}} for name, (cluster, user) in contexts.items()
        ],
        "current-context": "root",
        "preferences": {},
        "users": [
            {"name": KCP_ADMIN, "user": {"token": tokens.kcp_admin}},
            {"name": SHARD_ADMIN, "user": {"token": tokens.shard_admin}},
        ],
    }


def _read_token(kubeconfig: Path) -> str:
    """The shard admin's token in a kubeconfig of ours; empty if there is none, whatever the file looks like."""
    try:
        config: Any = loads_yaml(kubeconfig.read_bytes())
        found = [entry["user"]["token"] for entry in config["users"] if entry["name"] == SHARD_ADMIN]
    except (FileNotFoundError, DecodeError, LookupError, TypeError):
        return ""
    return found[0] if found and isinstance(found[0], str) else ""


def _make_token() -> str:
    return secrets.token_urlsafe(32)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
