"""Restoring a backup into etcd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store.backup import open_backup
from kcp.store.errors import InUse
from kcp.store.etcd.client import EtcdClient, make_delete, make_empty_compare, make_put, make_revision_compare
from kcp.store.etcd.keys import EtcdKeys
from kcp.store.keys import Revision
from kcp.store.limits import MAX_COMMIT_BYTES, MAX_COMMIT_OPERATIONS, OPERATION_OVERHEAD
from kcp.store.restore import REVISION_GAP
from kcp.store.value import unstamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from kcp.store.etcd.messages import RequestOp
    from kcp.store.etcd.options import EtcdOptions
    from kcp.store.keys import ObjectKey

_DELETED_AT_ONCE = 1000  # keys in one request, so that etcd has time for others in between


async def restore_etcd(
    backup: Path, options: EtcdOptions, prefix: str, progress: Callable[[int], None] | None = None
) -> Revision:
    """Fill etcd below a prefix, where nothing may be yet, and return the revision it begins with.

    While it runs, and if it is interrupted, a mark in etcd keeps servers from starting on half of the data; running it
    again starts over. etcd gives each object a new revision of its own, so a base is kept that lifts them all above
    those in the backup.
    """
    keys = EtcdKeys(prefix)
    async with EtcdClient(options) as client:
        with open_backup(backup) as (header, objects):
            claim = Claim(client, keys)
            await claim.take(str(backup))
            await claim.clear()
            base = header.revision + REVISION_GAP
            await claim.write([make_put(keys.base, str(base).encode())])
            done = 0
            for batch in _batches(keys, objects):
                await claim.write(batch)
                done += len(batch)
                if progress is not None:
                    progress(done)
            return Revision(await claim.write([make_delete(keys.restoring)]) + base)


class Claim:
    """The mark of a restore, and the right to write that comes with it.

    Each write holds only while the mark is the one that this restore made. An unfinished restore cannot be told from
    one that still runs, so a later one takes the mark over, and the earlier one is refused from then on:

        first     mark@5   write write        write: refused, the mark is not @5
        second                     mark@8   clear   write write   end
    """

    def __init__(self, client: EtcdClient, keys: EtcdKeys) -> None:
        self._client = client
        self._keys = keys
        self._revision = 0

    async def take(self, owner: str) -> None:
        """Raises InUse if there are objects that no restore has left there."""
        restoring = self._keys.restoring
        unfinished = (await self._client.range(restoring)).kvs
        if unfinished:
            compares = [make_revision_compare(restoring, unfinished[0].mod_revision)]
        else:
            compares = [make_revision_compare(restoring, 0), make_empty_compare(*self._keys.objects)]
        response = await self._client.txn(compares, [make_put(restoring, owner.encode())])
        if not response.succeeded:
            raise InUse(
                f"etcd has objects below {self._keys.prefix}, or another restore has just begun there: "
                "restore with another --etcd-prefix, or delete them first"
            )
        self._revision = response.header.revision

    async def clear(self) -> None:
        """Delete what an unfinished restore has left; not what others keep below the same prefix."""
        start, end = self._keys.objects
        more = True
        while more:
            page = await self._client.range(start, end, limit=_DELETED_AT_ONCE, keys_only=True)
            more = page.more
            if page.kvs:
                await self.write([make_delete(start, page.kvs[-1].key + b"\0")])
        await self.write([make_delete(self._keys.base), make_delete(self._keys.nudge)])

    async def write(self, operations: Sequence[RequestOp]) -> int:
        """Returns etcd's revision. Raises InUse once the mark is another's."""
        ours = make_revision_compare(self._keys.restoring, self._revision)
        response = await self._client.txn([ours], operations)
        if not response.succeeded:
            raise InUse(f"another restore into etcd below {self._keys.prefix} has taken over")
        return response.header.revision


def _batches(keys: EtcdKeys, objects: Iterable[tuple[ObjectKey, bytes]]) -> Iterator[list[RequestOp]]:
    batch: list[RequestOp] = []
    size = 0
    for key, stored in objects:
        value = unstamp(stored)
        size += len(value) + OPERATION_OVERHEAD
        if batch and (len(batch) == MAX_COMMIT_OPERATIONS or size > MAX_COMMIT_BYTES):
            yield batch
            batch, size = [], len(value) + OPERATION_OVERHEAD
        batch.append(make_put(keys.encode(key), value))
    if batch:
        yield batch
