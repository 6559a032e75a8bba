"""Tokens that are known beforehand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from kcp.auth.identity import Identity
from kcp.auth.tokens import StaticTokens, TokenFile, digest_of, parse_token_file
from kcp.auth.user import UserInfo
from kcp.meta.fake_clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

ADMIN = UserInfo("admin", groups=("system:masters",))
ADMIN_FOUND = UserInfo("admin", groups=("system:masters", "system:authenticated"))
JANE = UserInfo("jane", "u1", ("system:authenticated",))
JOE = UserInfo("joe", "u2", ("a", "b", "system:authenticated"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_a_known_token_is_its_user() -> None:
    tokens = StaticTokens({digest_of("secret"): ADMIN})
    assert tokens.find("secret") == ADMIN_FOUND
    assert tokens.find("Secret") is None
    assert tokens.find("\ud800") is None


@pytest.mark.parametrize(
    ("audiences", "found"),
    [
        pytest.param(["api"], Identity(ADMIN_FOUND, ("api",)), id="ours"),
        pytest.param(["x", "api"], Identity(ADMIN_FOUND, ("api",)), id="one of them ours"),
        pytest.param(["x"], None, id="none ours"),
    ],
)
def test_tokens_are_good_for_the_servers_audiences(audiences: list[str], found: Identity | None) -> None:
    tokens = StaticTokens({digest_of("secret"): ADMIN}, ["api", "other"])
    assert tokens.authenticate_token("secret", "c1", audiences) == found
    assert tokens.authenticate_token("wrong", "c1", audiences) is None


def test_without_audiences_tokens_are_good_for_all() -> None:
    assert StaticTokens({digest_of("t"): ADMIN}).authenticate_token("t", "c1", ["x"]) == Identity(ADMIN_FOUND)


def test_a_token_file_is_read() -> None:
    text = 't1,jane,u1\n\nt2,joe,u2,"a,b"\n,nobody,u3\nt3,old,u4,\nt3,new,u5\n'
    assert parse_token_file(text, "f") == {
        digest_of("t1"): UserInfo("jane", "u1"),
        digest_of("t2"): UserInfo("joe", "u2", ("a", "b")),
        digest_of("t3"): UserInfo("new", "u5"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("t1,jane\n", r"token file 'f' must have at least 3 columns .*, found 2", id="columns"),
        pytest.param('"t1,jane', "token file 'f' is not a CSV file", id="quotes"),
    ],
)
def test_a_bad_token_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_token_file(text, "f")


def test_a_changed_token_file_is_read_again(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text("t1,jane,u1\n")
    tokens = TokenFile(path, clock)
    path.write_text('t2,joe,u2,"a,b"\n')
    assert tokens.find("t1") == JANE
    clock.advance(60)
    assert tokens.find("t1") is None
    assert tokens.find("t2") == JOE
    clock.advance(60)
    assert tokens.authenticate_token("t2", "c1", ["x"]) == Identity(JOE)


@pytest.mark.parametrize("damage", ["removed", "broken"])
def test_a_token_file_that_became_useless_changes_nothing(tmp_path: Path, clock: FakeClock, damage: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text("t1,jane,u1\n")
    tokens = TokenFile(path, clock)
    if damage == "removed":
        path.unlink()
    else:
        path.write_text("oops\n")
    clock.advance(60)
    assert tokens.find("t1") == JANE
    path.write_text("t3,jane,u1\n")
    clock.advance(60)
    assert tokens.find("t3") == JANE


def test_a_token_file_that_is_replaced_with_one_of_the_same_size_is_seen(tmp_path: Path, clock: FakeClock) -> None:
    path, other = tmp_path / "tokens.csv", tmp_path / "other.csv"
    path.write_text("t1,jane,u1\n")
    tokens = TokenFile(path, clock)
    other.write_text("t9,jane,u1\n")
    status = path.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    clock.advance(60)
    assert tokens.find("t9") == JANE


def test_a_missing_token_file_is_refused_at_the_start(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(FileNotFoundError):
        TokenFile(tmp_path / "none", clock)
