"""The names under which service accounts act, at home and in other logical clusters."""

from __future__ import annotations

from typing import Final

from kcp.auth.user import UserInfo
from kcp.meta import validation, wellknown

_PREFIX: Final = wellknown.SERVICE_ACCOUNT_USER_PREFIX


def make_username(namespace: str, name: str) -> str:
    return f"{_PREFIX}{namespace}:{name}"


def split_username(username: str) -> tuple[str, str] | None:
    """Namespace and name, if this is the user name of a service account."""
    if not username.startswith(_PREFIX):
        return None
    namespace, colon, name = username[len(_PREFIX) :].partition(":")
    if not colon or validation.check_dns1123_label(namespace) or validation.check_dns1123_subdomain(name):
        return None
    return namespace, name


def make_groups(namespace: str) -> tuple[str, str]:
    return wellknown.GROUP_SERVICE_ACCOUNTS, f"{wellknown.GROUP_SERVICE_ACCOUNTS}:{namespace}"


def effective_user(user: UserInfo, cluster: str) -> UserInfo:
    """Whom RBAC of a logical cluster sees.

    The name of a service account means something only where it lives: `ns/bot` of one cluster and `ns/bot` of another
    have nothing in common. Away from home it counts as `system:kcp:serviceaccount:<home>:<namespace>:<name>`, to which
    the other cluster may bind roles, and has none of the groups of local service accounts.
    """
    home = user.extra.get(wellknown.EXTRA_CLUSTER_NAME)
    if not home or (len(home) == 1 and home[0] == cluster) or not user.name.startswith(_PREFIX):
        return user
    name = f"{wellknown.FOREIGN_SERVICE_ACCOUNT_USER_PREFIX}{home[0]}:{user.name[len(_PREFIX) :]}"
    groups = (wellknown.GROUP_AUTHENTICATED, wellknown.GROUP_CLUSTER_PREFIX + home[0])
    return UserInfo(name, user.uid, groups, user.extra)
