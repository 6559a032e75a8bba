"""Following changes of certain resources in all logical clusters, to drop what was remembered of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kcp.store import Closed, Compacted, Scope, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kcp.store import ResourceKey, Store

    # Called with the cluster, or None when changes of any cluster may have been missed.
    OnChange = Callable[[str | None, ResourceKey], None]

RETRY_SECONDS = 1.0


async def follow(store: Store, resources: Iterable[ResourceKey], on_change: OnChange) -> None:
    """Run until the store is closed. The news arrives before the reply to whoever made the change is sent, since
    both wait for the same commit and this waits longer."""
    async with asyncio.TaskGroup() as tasks:
        for resource in resources:
            tasks.create_task(_follow_one(store, resource, on_change))


async def _follow_one(store: Store, resource: ResourceKey, on_change: OnChange) -> None:
    while True:
        try:
            with store.watch(Scope(resource), store.revision) as watcher:
                on_change(None, resource)
                async for batch in watcher:
                    for cluster in {event.key.cluster for event in batch.events}:
                        on_change(cluster, resource)
        except Closed:
            return
        except Compacted:
            continue
        except StoreError:
            await asyncio.sleep(RETRY_SECONDS)
