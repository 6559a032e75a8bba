"""Starting and stopping one server."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from kcp.store import EmbeddedStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kcp.server.options import ServerOptions
    from kcp.store import Store
    from kcp.store.etcd.store import EtcdStore


@contextlib.asynccontextmanager
async def open_store(options: ServerOptions) -> AsyncIterator[Store]:
    """The store that the options ask for. Raises StoreError."""
    store: EmbeddedStore | EtcdStore
    if options.etcd is None:
        store = await EmbeddedStore.open(options.store_directory, options=options.store)
    else:
        from kcp.store.etcd.store import EtcdStore as Shared  # brings protobuf along, which only etcd needs

        store = await Shared.open(
            options.store_directory, options.etcd, prefix=options.etcd_prefix, options=options.store
        )
    async with store:
        yield store


async def serve(options: ServerOptions, ready: Callable[[Store], None]) -> None:
    """Run until SIGINT or SIGTERM, then finish what was asked for. Calls `ready` once everything works."""
    async with open_store(options) as store:
        # Only now: while it opens, which can take a while, a signal ends the process as usual, and harms nothing.
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopping.set)
        ready(store)
        await stopping.wait()
