"""What is stored in the benchmarks: keys, values of a given size, and filling a store with them."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

from kcp.store import ObjectKey, Put, ResourceKey, Scope, pack_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kcp.store import Operation, Store

CONFIGMAPS = ResourceKey("", "configmaps")
NAMESPACE = "default"
KIBIBYTE = 1024

_PUTS_IN_A_COMMIT = 100


def key(number: int, cluster: str = "root") -> ObjectKey:
    return ObjectKey(CONFIGMAPS, cluster, NAMESPACE, f"settings-{number:08d}")


def in_cluster(cluster: str) -> Scope:
    return Scope(CONFIGMAPS, cluster)


def value(size: int = KIBIBYTE) -> bytes:
    """A ConfigMap of about `size` bytes, packed."""
    metadata = {
        "name": "settings",
        "namespace": NAMESPACE,
        "uid": "8f14e45f-ceea-467f-a5d4-6a3b8b3f2a10",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "labels": {"app": "web", "tier": "front"},
    }
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"text": ""}}
    missing = size - len(pack_object(obj))
    return pack_object({**obj, "data": {"text": "x" * max(missing, 0)}})


async def fill(store: Store, keys: Iterable[ObjectKey]) -> None:
    """Put a value of one KiB under each key, in large commits."""
    packed = value()
    puts: Iterator[Operation] = (Put(key, packed) for key in keys)
    await commit_all(store, iter(lambda: list(itertools.islice(puts, _PUTS_IN_A_COMMIT)), []), writers=4)


async def commit_all(store: Store, commits: Iterable[Sequence[Operation]], *, writers: int) -> int:
    """Make the commits, `writers` at a time; returns how many there were."""
    waiting = iter(commits)

    async def write() -> int:
        done = 0
        for operations in waiting:
            await store.commit(operations)
            done += 1
        return done

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(write()) for _ in range(writers)]
    return sum(task.result() for task in tasks)
