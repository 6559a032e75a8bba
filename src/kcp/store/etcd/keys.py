"""How objects are named in etcd: readable, the same for every server, in the mirror's order within each resource.

/kcp/objects/_/configmaps/_/root/default/settings         group, resource, identity, then the tail
/kcp/objects/apis.kcp.io/apiexports/_/root//widgets       cluster-scoped
/kcp/meta/base                                            what a restore adds to etcd's revisions
/kcp/meta/restoring                                       there while a restore is unfinished
/kcp/meta/nudge                                           written to make the watch move on
"""

from __future__ import annotations

from kcp.store import layout
from kcp.store.errors import InvalidCommit
from kcp.store.keys import ObjectKey, ResourceKey, after_prefix, encode_tail

_NONE = "_"


class EtcdKeys:
    """The names below one prefix, so that several installations can share an etcd."""

    def __init__(self, prefix: str) -> None:
        self.prefix = "/" + prefix.strip("/")
        self.everything = _range(f"{self.prefix}/")
        self.objects = _range(f"{self.prefix}/objects/")
        self.meta = _range(f"{self.prefix}/meta/")
        self.base = f"{self.prefix}/meta/base".encode()
        self.restoring = f"{self.prefix}/meta/restoring".encode()
        self.nudge = f"{self.prefix}/meta/nudge".encode()
        self._heads: dict[ResourceKey, bytes] = {}

    def encode(self, key: ObjectKey) -> bytes:
        head = self._heads.get(key.resource)
        if head is None:
            layout.pack_resource_name(key.resource)  # refuses what could be taken for another
            head = self.objects[0] + "/".join(part or _NONE for part in key.resource).encode() + b"/"
            if len(self._heads) > 10_000:
                self._heads.clear()
            self._heads[key.resource] = head
        return head + encode_tail(key)

    def decode(self, key: bytes) -> ObjectKey | None:
        """The object that an etcd key names, None for any other key below the prefix."""
        if not key.startswith(self.objects[0]):
            return None
        try:
            parts = key[len(self.objects[0]) :].decode().split("/")
        except UnicodeDecodeError:
            return None
        if len(parts) != 6:
            return None
        group, resource, identity = ("" if part == _NONE else part for part in parts[:3])
        found = ObjectKey(ResourceKey(group, resource, identity), *parts[3:])
        # What cannot be written here is no object, whoever wrote it there: nobody could read, mend or delete it.
        try:
            return found if self.encode(found) == key else None
        except InvalidCommit:
            return None


def _range(prefix: str) -> tuple[bytes, bytes]:
    return prefix.encode(), after_prefix(prefix.encode())
