"""The names of service accounts."""

from __future__ import annotations

import pytest

from kcp.auth.service_accounts import effective_user, make_groups, make_username, split_username
from kcp.auth.user import UserInfo
from kcp.meta import wellknown


@pytest.mark.parametrize(
    ("username", "parts"),
    [
        pytest.param("system:serviceaccount:ns:bot", ("ns", "bot"), id="good"),
        pytest.param("system:serviceaccount:ns:my.bot", ("ns", "my.bot"), id="dotted name"),
        pytest.param("system:serviceaccount:my.ns:bot", None, id="dotted namespace"),
        pytest.param("system:serviceaccount:ns", None, id="no name"),
        pytest.param("system:serviceaccount:ns:", None, id="empty name"),
        pytest.param("system:serviceaccount:ns:a:b", None, id="too many parts"),
        pytest.param("system:serviceaccount:Ns:a", None, id="capital"),
        pytest.param("jane", None, id="a user"),
    ],
)
def test_user_names_are_split(username: str, parts: tuple[str, str] | None) -> None:
    assert split_username(username) == parts
    if parts:
        assert make_username(*parts) == username


def test_groups_name_the_namespace() -> None:
    assert make_groups("ns") == ("system:serviceaccounts", "system:serviceaccounts:ns")


HOME = {wellknown.EXTRA_CLUSTER_NAME: ("home",)}
BOT = UserInfo("system:serviceaccount:ns:bot", "1", ("system:serviceaccounts", "system:authenticated"), HOME)


def test_at_home_a_service_account_is_itself() -> None:
    assert effective_user(BOT, "home") is BOT


def test_elsewhere_it_is_a_stranger() -> None:
    assert effective_user(BOT, "away") == UserInfo(
        "system:kcp:serviceaccount:home:ns:bot", "1", ("system:authenticated", "system:cluster:home"), HOME
    )


def test_two_homes_are_none() -> None:
    twice = UserInfo(BOT.name, extra={wellknown.EXTRA_CLUSTER_NAME: ("x", "home")})
    assert effective_user(twice, "home").name == "system:kcp:serviceaccount:x:ns:bot"


@pytest.mark.parametrize(
    "user", [UserInfo("jane", extra=HOME), UserInfo(BOT.name)], ids=["a user with the extra", "impersonated without it"]
)
def test_others_are_left_alone(user: UserInfo) -> None:
    assert effective_user(user, "away") is user
