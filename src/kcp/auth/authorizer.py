"""May they: the chain of authorization, and the answer to those who may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.auth.attributes import Attributes, Decision
from kcp.meta import errors, wellknown
from kcp.meta.clusters import SYSTEM_PREFIX, WILDCARD
from kcp.meta.gotext import quote
from kcp.meta.gvk import GroupResource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kcp.auth.rbac import RBACAuthorizer, Rules
    from kcp.auth.user import UserInfo

ALWAYS_ALLOW_PATHS: Final = ("/healthz", "/readyz", "/livez")

_ALLOWED: Final = Decision(True)
_NO_OPINION: Final = Decision(False)
_WILDCARD: Final = WILDCARD.text
_ALL_CLUSTERS_GROUPS: Final = frozenset({wellknown.GROUP_KCP_ADMIN})
_OPEN_CLUSTERS: Final = frozenset({wellknown.ROOT_CLUSTER, ""})  # the root, and paths of the server itself
# What the policy that counts everywhere lets all who are known do.
_ABOUT_ONESELF: Final = frozenset({"selfsubjectaccessreviews", "selfsubjectreviews", "selfsubjectrulesreviews"})
_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Authorizer:
    """Members of system:masters may do everything; some paths are open to all; then the RBAC of the cluster decides."""

    def __init__(self, rbac: RBACAuthorizer, *, always_allow_paths: Iterable[str] = ALWAYS_ALLOW_PATHS) -> None:
        self._rbac = rbac
        paths = [path.removeprefix("/") for path in always_allow_paths]
        self._open_paths = frozenset(path for path in paths if not path.endswith("*"))
        self._open_prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))

    def authorize(self, attributes: Attributes) -> Decision:
        groups, cluster = attributes.user.groups, attributes.cluster
        if wellknown.GROUP_MASTERS in groups:
            return _ALLOWED
        if not attributes.resource and self._is_open(attributes.path):
            return _ALLOWED
        if cluster == _WILDCARD:
            return _NO_OPINION if _ALL_CLUSTERS_GROUPS.isdisjoint(groups) else _ALLOWED
        if cluster.startswith(SYSTEM_PREFIX):
            # What the server keeps for itself is for those who may do everything, and who have passed above.
            return _NO_OPINION
        if wellknown.GROUP_KCP_ADMIN in groups:
            return _ALLOWED  # as the shared policy says, without a look at it
        about_oneself = not attributes.resource or attributes.resource in _ABOUT_ONESELF
        if about_oneself and cluster not in _OPEN_CLUSTERS and not self._may_enter(attributes.user, cluster):
            return _NO_OPINION
        return self._rbac.authorize(attributes)

    def _may_enter(self, user: UserInfo, cluster: str) -> bool:
        """Whether a user may look at a logical cluster at all. The policy that counts everywhere shows to all who are
        known what a server has to offer; but what a tenant has defined is nobody's business who has no access there.
        Its own service accounts have; others need the verb `access` on `/`, or whatever includes it."""
        if user.extra.get(wellknown.EXTRA_CLUSTER_NAME) == (cluster,):
            return True
        return self._rbac.authorize(Attributes(user, "access", cluster, path="/")).allowed

    def rules_for(self, user: UserInfo, cluster: str, namespace: str) -> Rules:
        return self._rbac.rules_for(user, cluster, namespace)

    @property
    def rbac(self) -> RBACAuthorizer:
        return self._rbac

    def asker(self, user: UserInfo, cluster: str) -> Callable[[str, str, str, str, str, str], bool]:
        """A function (verb, group, resource, subresource, namespace, name) that tells whether this user may."""

        def may(verb: str, group: str, resource: str, subresource: str, namespace: str, name: str) -> bool:
            question = Attributes(user, verb, cluster, group, "*", resource, subresource, namespace, name)
            return self.authorize(question).allowed

        return may

    def _is_open(self, path: str) -> bool:
        if not path:
            return False
        path = path.removeprefix("/")
        return path in self._open_paths or path.startswith(self._open_prefixes)


def forbidden_message(attributes: Attributes) -> str:
    """Who cannot do what and where, in the words of responsewriters/errors.go."""
    user, verb = quote(attributes.user.name), attributes.verb
    if not attributes.resource and attributes.path:
        return f"User {user} cannot {verb} path {quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    scope = f"in the namespace {quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"User {user} cannot {verb} resource {quote(resource)} in API group {quote(attributes.group)} {scope}"


def forbidden(attributes: Attributes, reason: str = "") -> errors.Forbidden:
    """The error to send; `reason` is what the decision gave."""
    why = forbidden_message(attributes).translate(_HTML)
    resource = GroupResource(attributes.group, attributes.resource)
    return errors.Forbidden(resource, attributes.name, f"{why}: {reason}" if reason else why)
