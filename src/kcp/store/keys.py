"""Names of things in the store, and their bytes.

A worked example. The ConfigMap `settings` in namespace `default` of the logical cluster `root` has the key

    ObjectKey(ResourceKey("", "configmaps"), "root", "default", "settings")

whose *tail* is `root/default/settings`. In LMDB the tail stands behind four bytes with the resource's interned number,
say 7: `00 00 00 07 root/default/settings`. So all ConfigMaps of a namespace, of a cluster, and of all clusters are each
one contiguous range: `…07 root/default/`, `…07 root/` and `…07`. The separator is `/`, which no part may
contain, because Kubernetes lists in the order of keys joined by `/`. In etcd the resource is spelled out instead of
numbered, so that several servers agree.

A cluster-scoped object has an empty namespace: `root//demo`.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

from kcp.store.errors import InvalidCommit, TooLarge

Revision = NewType("Revision", int)

# LMDB takes keys of 511 bytes. The longest derived key adds the resource number, a revision and an index to the
# cluster's part, so this leaves room for all of them.
MAX_TAIL_BYTES = 480


class ResourceKey(NamedTuple):
    """A resource as the store tells them apart: `identity` separates APIs of the same name from different exporters."""

    group: str
    resource: str
    identity: str = ""

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{name}:{self.identity}" if self.identity else name


class ObjectKey(NamedTuple):
    """One object of one logical cluster."""

    resource: ResourceKey
    cluster: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.cluster}|{self.namespace}/{self.name}"


class Scope(NamedTuple):
    """A set of keys; None means all. `Scope()` is the whole store."""

    resource: ResourceKey | None = None
    cluster: str | None = None
    namespace: str | None = None

    def contains(self, key: ObjectKey) -> bool:
        return (
            (self.resource is None or self.resource == key.resource)
            and (self.cluster is None or self.cluster == key.cluster)
            and (self.namespace is None or self.namespace == key.namespace)
        )


def encode_tail(key: ObjectKey) -> bytes:
    """The part of a key behind its resource. Refuses what would make two keys look alike or not fit."""
    _, cluster, namespace, name = key
    tail = f"{cluster}/{namespace}/{name}"
    if tail.count("/") != 2 or not cluster or not name:
        raise InvalidCommit(f"{key} is not a usable key: a part is empty or contains '/'")
    try:
        encoded = tail.encode()
    except UnicodeEncodeError as error:
        raise InvalidCommit(f"{key!r} is not a usable key: it is not valid Unicode") from error
    if len(encoded) > MAX_TAIL_BYTES:
        raise TooLarge(f"{key} is too long: cluster, namespace and name may have {MAX_TAIL_BYTES} bytes together")
    return encoded


def decode_tail(resource: ResourceKey, tail: bytes) -> ObjectKey:
    cluster, namespace, name = tail.decode().split("/")
    return ObjectKey(resource, cluster, namespace, name)


def can_have_keys(scope: Scope) -> bool:
    """Whether any key can be in the scope. Names come from addresses that clients make up, and one with a `/` in it
    must not lead to what stands for another."""
    if scope.cluster == "":
        return False
    for part in (scope.cluster, scope.namespace):
        if part is not None and ("/" in part or len(part) > MAX_TAIL_BYTES or not _is_unicode(part)):
            return False
    return True


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def scope_prefix(scope: Scope) -> bytes:
    """What every tail in the scope starts with; a namespace over all clusters is no prefix and needs a filter.

    Only for scopes that can have keys.
    """
    if scope.cluster is None:
        return b""
    if scope.namespace is None:
        return f"{scope.cluster}/".encode()
    return f"{scope.cluster}/{scope.namespace}/".encode()


def after_prefix(prefix: bytes) -> bytes:
    """The first key behind all keys that start with `prefix`; empty if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b""
