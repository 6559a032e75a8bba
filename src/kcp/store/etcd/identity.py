"""Which installation this is: what etcd says of itself and of the data below our prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kcp.store.etcd.client import EtcdClient
    from kcp.store.etcd.keys import EtcdKeys


class Identity(NamedTuple):
    """All of it true at etcd's `revision`. A mirror of one identity is worth nothing to another."""

    cluster_id: int
    base: int  # what is added to etcd's revisions
    is_restoring: bool  # a restore has begun and not ended
    revision: int


async def read_identity(client: EtcdClient, keys: EtcdKeys) -> Identity:
    response = await client.range(*keys.meta)
    found = {kv.key: kv.value for kv in response.kvs}
    header = response.header
    return Identity(header.cluster_id, int(found.get(keys.base, b"0")), keys.restoring in found, header.revision)
