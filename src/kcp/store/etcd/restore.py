"""Restoring a backup into etcd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store.backup import open_backup
from kcp.store.errors import InUse
from kcp.store.etcd.client import EtcdClient, make_delete, make_put
from kcp.store.etcd.keys import EtcdKeys
from kcp.store.keys import Revision
from kcp.store.limits import MAX_COMMIT_BYTES, MAX_COMMIT_OPERATIONS, OPERATION_OVERHEAD
from kcp.store.restore import REVISION_GAP
from kcp.store.value import unstamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from kcp.store.etcd.messages import RequestOp
    from kcp.store.etcd.options import EtcdOptions
    from kcp.store.keys import ObjectKey


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
            await _prepare(client, keys)
            base = header.revision + REVISION_GAP
            mark = make_put(keys.restoring, str(backup).encode())
            await client.txn([], [mark, make_put(keys.base, str(base).encode())])
            done = 0
            for batch in _batches(keys, objects):
                await client.txn([], batch)
                done += len(batch)
                if progress is not None:
                    progress(done)
            finished = await client.txn([], [make_delete(keys.restoring)])
            return Revision(finished.header.revision + base)


async def _prepare(client: EtcdClient, keys: EtcdKeys) -> None:
    if (await client.range(keys.restoring, count_only=True)).count:
        await client.txn([], [make_delete(*keys.everything)])
    elif (await client.range(*keys.objects, count_only=True)).count:
        raise InUse(f"etcd has objects below {keys.prefix}: restore with another --etcd-prefix, or delete them first")


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
