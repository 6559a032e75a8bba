"""Acting as somebody else: the headers Impersonate-User, -Group, -Uid and -Extra-*, and who may use them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from kcp.auth.attributes import Attributes
from kcp.auth.authorizer import forbidden
from kcp.auth.service_accounts import make_groups, split_username
from kcp.auth.user import UserInfo
from kcp.meta import errors, wellknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.auth.authorizer import Authorizer

HEADER_PREFIX: Final = "impersonate-"

_USER: Final = "impersonate-user"
_GROUP: Final = "impersonate-group"
_UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
_EXTRAS_GROUP: Final = "authentication.k8s.io"
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")

# Groups that mean something beyond one logical cluster. The admin of a workspace may impersonate there as she likes,
# but must not become more than she is.
_PRIVILEGED_GROUPS: Final = frozenset(
    {
        wellknown.GROUP_MASTERS,
        wellknown.GROUP_KCP_ADMIN,
        wellknown.GROUP_WORKSPACE_BOOTSTRAPPER,
        wellknown.GROUP_LOGICAL_CLUSTER_ADMIN,
        wellknown.GROUP_EXTERNAL_LOGICAL_CLUSTER_ADMIN,
        wellknown.GROUP_AUTHENTICATED,
    }
)
_PRIVILEGED_PREFIXES: Final = ("system:kcp:initializer:", "system:kcp:terminator:", wellknown.GROUP_CLUSTER_PREFIX)


class Impersonation(NamedTuple):
    """Who somebody wants to be."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()  # key and one of its values

    def describe(self) -> str:
        """As Go prints a list of object references: kind, namespace, name, uid, apiVersion, resourceVersion, path."""
        version = f"{_EXTRAS_GROUP}/v1"
        references = [("Group", "", group, "", "", "", "") for group in self.groups]
        references += [("UserExtra", "", value, "", version, "", key) for key, value in self.extra]
        references += [("UID", "", self.uid, "", version, "", "")] if self.uid else []
        return "[" + " ".join("{" + " ".join(reference) + "}" for reference in references) + "]"


def parse_impersonation(headers: Iterable[tuple[str, str]]) -> Impersonation | None:
    """Read the headers, given as lower-case names and values; None if nobody is to be impersonated.

    Raises BadRequest for groups, uid or extra without a user.
    """
    user = uid = ""
    groups: list[str] = []
    extra: list[tuple[str, str]] = []
    for name, value in headers:
        if not name.startswith(HEADER_PREFIX):
            continue
        if name == _USER:
            user = user or value
        elif name == _GROUP:
            groups.append(value)
        elif name == _UID:
            uid = uid or value
        elif name.startswith(_EXTRA):
            extra.append((_unescape(name[len(_EXTRA) :]), value))
    wanted = Impersonation(user, tuple(groups), uid, tuple(extra))
    if user:
        return wanted
    if groups or uid or extra:
        raise errors.BadRequest(f"requested {wanted.describe()} without impersonating a user")
    return None


def impersonate(requester: UserInfo, cluster: str, wanted: Impersonation, authorizer: Authorizer) -> UserInfo:
    """The identity to go on with. Raises Forbidden for the first thing that the requester may not be."""
    service_account = split_username(wanted.user)
    for attributes in _questions(requester, cluster, wanted, service_account):
        decision = authorizer.authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)
    _check_privileged_groups(requester, wanted)
    groups = list(wanted.groups)
    if service_account and not groups:
        groups += make_groups(service_account[0])
    if wanted.user == wellknown.USER_ANONYMOUS:
        if wellknown.GROUP_UNAUTHENTICATED not in groups:
            groups.append(wellknown.GROUP_UNAUTHENTICATED)
    elif wellknown.GROUP_AUTHENTICATED not in groups and wellknown.GROUP_UNAUTHENTICATED not in groups:
        groups.append(wellknown.GROUP_AUTHENTICATED)
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in wanted.extra:
        extra[key] = (*extra.get(key, ()), value)
    return UserInfo(wanted.user, wanted.uid, tuple(groups), extra)


def _questions(
    requester: UserInfo, cluster: str, wanted: Impersonation, service_account: tuple[str, str] | None
) -> Iterable[Attributes]:
    if service_account:
        namespace, name = service_account
        yield Attributes(requester, "impersonate", cluster, resource="serviceaccounts", namespace=namespace, name=name)
    else:
        yield Attributes(requester, "impersonate", cluster, resource="users", name=wanted.user)
    for group in wanted.groups:
        yield Attributes(requester, "impersonate", cluster, resource="groups", name=group)
    special = Attributes(requester, "impersonate", cluster, _EXTRAS_GROUP, "v1")
    for key, value in wanted.extra:
        yield special._replace(resource="userextras", subresource=key, name=value)
    if wanted.uid:
        yield special._replace(resource="uids", name=wanted.uid)


def _check_privileged_groups(requester: UserInfo, wanted: Impersonation) -> None:
    if wellknown.GROUP_MASTERS in requester.groups:
        return
    for group in wanted.groups:
        is_privileged = group in _PRIVILEGED_GROUPS or group.startswith(_PRIVILEGED_PREFIXES)
        if is_privileged and group not in requester.groups:
            raise errors.Forbidden(None, "", "impersonation is not allowed for the requestor")


def _unescape(key: str) -> str:
    """Decode percent signs, unless one of them is not part of an escape: then the key is meant as it stands."""
    return key if _BROKEN_ESCAPE.search(key) else unquote(key)
