"""Nobody may hand out permissions that they do not have: checks for writes of roles and bindings.

Who holds the verb `escalate` on the role, or `bind` on the role that a binding names, is free to do it all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.auth.attributes import Attributes
from kcp.auth.bootstrap import GROUP
from kcp.auth.rbac import RoleRef, describe_not_found, join_errors
from kcp.auth.rules import FULL_AUTHORITY, describe_missing, find_missing, quote_list
from kcp.meta import errors, wellknown
from kcp.meta.gotext import quote
from kcp.meta.gvk import GroupResource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.auth.authorizer import Authorizer
    from kcp.auth.user import UserInfo
    from kcp.meta.codec import Object

_ROLE_RESOURCES: Final = {"Role": "roles", "ClusterRole": "clusterroles"}
_GC_FIELDS: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields")


class Write(NamedTuple):
    """The request that writes a role or a binding."""

    user: UserInfo
    cluster: str
    resource: str  # roles, clusterroles, rolebindings or clusterrolebindings
    namespace: str = ""
    name: str = ""  # as in the URL: empty on create


def check_role_escalation(authorizer: Authorizer, write: Write, role: Object, old_role: Object | None = None) -> None:
    """Raises Forbidden if a Role or ClusterRole would grant what its writer does not hold."""
    if _is_admin(write.user) or _may(authorizer, write, "escalate", write.resource, write.name):
        return
    if old_role is not None and _changes_only_gc_fields(role, old_role):
        return
    _confirm(authorizer, write, role, role.get("rules") or ())
    # What an aggregated role gathers is open, so it takes all permissions to make one, or to take one apart.
    if not (_is_aggregated(role) or (old_role is not None and _is_aggregated(old_role))):
        return
    held = authorizer.rules_for(write.user, write.cluster, write.namespace).rules
    if find_missing(held, FULL_AUTHORITY):
        raise _forbidden(write, role, "must have cluster-admin privileges to use the aggregationRule")


def check_binding_escalation(
    authorizer: Authorizer, write: Write, binding: Object, old_binding: Object | None = None
) -> None:
    """Raises Forbidden if the binding grants what its writer does not hold, NotFound if there is no such role."""
    if _is_admin(write.user):
        return
    if old_binding is not None and _changes_only_gc_fields(binding, old_binding):
        return
    ref = binding.get("roleRef") or {}
    kind, name = ref.get("kind", ""), ref.get("name", "")
    resource = _ROLE_RESOURCES.get(kind)
    if resource is not None and _may(authorizer, write, "bind", resource, name, ref.get("apiGroup", "")):
        return
    role_ref = RoleRef(kind, write.namespace, name)
    role = authorizer.rbac.policy(write.cluster).role(role_ref)
    if role is None:
        if resource is None:
            raise errors.InternalError(describe_not_found("", role_ref))
        # The registry names what the request is about, not what was looked for.
        raise errors.NotFound(GroupResource(GROUP, write.resource), name)
    _confirm(authorizer, write, binding, role.rules)


def _is_admin(user: UserInfo) -> bool:
    """Those who hold everything, here and elsewhere, have nothing to be kept from."""
    return wellknown.GROUP_MASTERS in user.groups or wellknown.GROUP_KCP_ADMIN in user.groups


def _may(authorizer: Authorizer, write: Write, verb: str, resource: str, name: str, group: str = GROUP) -> bool:
    question = Attributes(write.user, verb, write.cluster, group, "*", resource, "", write.namespace, name)
    return authorizer.authorize(question).allowed


def _confirm(authorizer: Authorizer, write: Write, obj: Object, rules: Iterable[Object]) -> None:
    held = authorizer.rules_for(write.user, write.cluster, write.namespace)
    missing = find_missing(held.rules, rules)
    if not missing:
        return
    why = (
        f"user {quote(write.user.name)} (groups={quote_list(write.user.groups)}) is attempting to grant RBAC "
        f"permissions not currently held:\n{describe_missing(missing)}"
    )
    if held.missing:
        why += f"; resolution errors: [{join_errors(describe_not_found(write.resource, ref) for ref in held.missing)}]"
    raise _forbidden(write, obj, why)


def _forbidden(write: Write, obj: Object, why: str) -> errors.Forbidden:
    name = (obj.get("metadata") or {}).get("name", "")
    return errors.Forbidden(GroupResource(GROUP, write.resource), name, why)


def _is_aggregated(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _changes_only_gc_fields(obj: Object, old: Object) -> bool:
    """Whether the garbage collector could have made this change: it must be able to clean up any role."""
    return _without_gc_fields(obj) == _without_gc_fields(old)


def _without_gc_fields(obj: Object) -> Object:
    metadata = {field: value for field, value in obj.get("metadata", {}).items() if field not in _GC_FIELDS and value}
    return {field: value for field, value in obj.items() if value} | {"metadata": metadata}
