"""The admin's kubeconfig and tokens."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from kcp.meta.codec import loads_yaml
from kcp.server.kubeconfig import AdminTokens, make_kubeconfig, open_admin_tokens, write_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://127.0.0.1:6443"


def start(directory: Path) -> AdminTokens:
    tokens = open_admin_tokens(directory, directory / "admin.kubeconfig")
    write_kubeconfig(directory / "admin.kubeconfig", URL, b"authority", tokens)
    return tokens


def test_contexts_clusters_and_users() -> None:
    config = make_kubeconfig(URL, b"authority", AdminTokens("t1", "t2"))
    servers = {entry["name"]: entry["cluster"]["server"] for entry in config["clusters"]}
    assert servers == {
        "root": f"{URL}/clusters/root",
        "base": URL,
        "system:admin": f"{URL}/clusters/system:admin",
    }
    contexts = {entry["name"]: (entry["context"]["cluster"], entry["context"]["user"]) for entry in config["contexts"]}
    assert contexts == {
        "root": ("root", "kcp-admin"),
        "base": ("base", "kcp-admin"),
        "system:admin": ("system:admin", "shard-admin"),
        "shard-base": ("base", "shard-admin"),
    }
    assert config["current-context"] == "root"
    assert {entry["name"]: entry["user"]["token"] for entry in config["users"]} == {
        "kcp-admin": "t1",
        "shard-admin": "t2",
    }
    embedded = {entry["cluster"]["certificate-authority-data"] for entry in config["clusters"]}
    assert {base64.b64decode(text) for text in embedded} == {b"authority"}


def test_the_file_is_the_owners_and_can_be_read(tmp_path: Path) -> None:
    tokens = start(tmp_path)
    file = tmp_path / "admin.kubeconfig"
    assert file.stat().st_mode & 0o777 == 0o600
    assert loads_yaml(file.read_bytes()) == make_kubeconfig(URL, b"authority", tokens)


def test_one_token_is_new_at_each_start_and_the_other_kept(tmp_path: Path) -> None:
    first, second = start(tmp_path), start(tmp_path)
    assert first.kcp_admin != second.kcp_admin
    assert first.shard_admin == second.shard_admin


def test_only_a_digest_of_the_kept_token_is_beside_the_kubeconfig(tmp_path: Path) -> None:
    tokens = start(tmp_path)
    kept = (tmp_path / ".admin-token-store").read_text()
    assert kept.strip() == hashlib.sha256(tokens.shard_admin.encode()).hexdigest()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("admin.kubeconfig", None),
        (".admin-token-store", None),
        (".admin-token-store", "0000"),
        ("admin.kubeconfig", "users: [{name: shard-admin, user: {token: guessed}}]"),
        ("admin.kubeconfig", "users: [{name: shard-admin, user: {token: 5}}]"),
        ("admin.kubeconfig", "users: []"),
        ("admin.kubeconfig", "{"),
        ("admin.kubeconfig", "just text"),
    ],
    ids=["no kubeconfig", "no store", "other digest", "other token", "no text", "no user", "no YAML", "no mapping"],
)
def test_files_that_do_not_agree_bring_a_new_token(tmp_path: Path, name: str, content: str | None) -> None:
    first = start(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    second = start(tmp_path)
    assert second.shard_admin not in (first.shard_admin, "guessed")
    assert start(tmp_path).shard_admin == second.shard_admin


def test_who_the_tokens_stand_for() -> None:
    users: dict[bytes, Any] = dict(AdminTokens("t1", "t2").users())
    found = {digest: (user.name, user.groups) for digest, user in users.items()}
    assert found == {
        hashlib.sha256(b"t1").digest(): ("kcp-admin", ("system:kcp:admin",)),
        hashlib.sha256(b"t2").digest(): ("shard-admin", ("system:masters",)),
    }
