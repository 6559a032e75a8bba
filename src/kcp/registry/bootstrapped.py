"""Objects that every logical cluster has without holding them: the roles of the bootstrap policy.

They are kept once, in the servers' own cluster. A GET finds them everywhere; they are changed nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta import errors
from kcp.meta.wellknown import ADMIN_CLUSTER
from kcp.store import ResourceKey

if TYPE_CHECKING:
    from kcp.meta.gvk import GroupResource
    from kcp.store import ObjectKey, Record, Store

_GROUP: Final = "rbac.authorization.k8s.io"
_RESOURCES: Final = frozenset({ResourceKey(_GROUP, "clusterroles"), ResourceKey(_GROUP, "clusterrolebindings")})


def find_bootstrapped(store: Store, key: ObjectKey) -> Record | None:
    """The object of the bootstrap policy that a key of any cluster leads to."""
    return store.get(key._replace(cluster=ADMIN_CLUSTER)) if key.resource in _RESOURCES else None


def missing(store: Store, key: ObjectKey, resource: GroupResource) -> errors.StatusError:
    """What to say to somebody who wants to change an object that the cluster does not hold."""
    if find_bootstrapped(store, key) is None:
        return errors.NotFound(resource, key.name)
    why = (
        "it belongs to the policy that all logical clusters share, and cannot be changed here; "
        "create one with another name"
    )
    return errors.Forbidden(resource, key.name, why)
