"""Short words for what tests of the etcd client do all the time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kcp.store.etcd.client import make_put

if TYPE_CHECKING:
    from kcp.store.etcd.client import EtcdClient


def end_of(prefix: bytes) -> bytes:
    """The end of the range of all keys with this prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


async def put(client: EtcdClient, *keys: bytes, value: bytes = b"") -> int:
    """Write all keys in one transaction, and return its revision."""
    return (await client.txn([], [make_put(key, value) for key in keys])).header.revision


async def wait_for_other_tasks() -> None:
    """Return once this is the loop's only task; fail if others stay."""
    current = asyncio.current_task()
    others = {task for task in asyncio.all_tasks() if task is not current}
    if others:
        _, left_over = await asyncio.wait(others, timeout=5)
        assert not left_over
