"""Starting and stopping one server."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import resource
import signal
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.endpoints.http_server import HTTPServer, listen
from kcp.meta.clock import SystemClock
from kcp.registry.feed import follow
from kcp.server.assemble import FOLLOWED, Parts, build, make_manager
from kcp.server.bootstrap import bootstrap
from kcp.server.certificates import Certificates, is_wildcard, load_signing_keys
from kcp.server.kubeconfig import open_admin_tokens, write_kubeconfig
from kcp.store import EmbeddedStore

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from kcp.endpoints.http_options import HTTPOptions
    from kcp.meta.clock import Clock
    from kcp.server.options import ServerOptions, ServingOptions
    from kcp.store import Store
    from kcp.store.etcd.store import EtcdStore

_log = logging.getLogger(__name__)

_SPARE_FILES: Final = 256  # descriptors that are not connections: the store, etcd, files being read


class Running(NamedTuple):
    """A server that is ready."""

    store: Store
    url: str
    kubeconfig: Path
    stop: Callable[[], None]
    """Tell it to stop; a second time, to stop at once."""


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


async def serve(options: ServerOptions, ready: Callable[[Running], None], clock: Clock | None = None) -> None:
    """Run until SIGINT or SIGTERM, or until told, then finish what was asked for. Calls `ready` once everything works.

    Raises OSError, ValueError or StoreError if it cannot start.
    """
    clock = clock or SystemClock()
    # The store comes first: it says who else uses the root directory.
    async with open_store(options) as store:
        certificates = Certificates(options, clock)
        tls = certificates.make_context()
        http = fit_to_files(options.serving.http)
        stopping, draining = asyncio.Event(), asyncio.Event()
        with contextlib.closing(listen(options.serving.bind_address, options.serving.secure_port, http)) as listener:
            url = find_url(options.serving, listener)
            tokens = open_admin_tokens(options.root_directory, options.kubeconfig)
            signing_key, verification_keys = load_signing_keys(options)
            parts = Parts(
                options=options,
                store=store,
                clock=clock,
                url=url,
                admins=tokens.users(),
                client_authority=certificates.client_authority,
                signing_key=signing_key,
                verification_keys=verification_keys,
                stopping=stopping,
                draining=draining,
            )
            assembled = build(parts)
            await bootstrap(assembled.registry)
            server = HTTPServer(assembled.app, [listener], tls=tls, options=http, clock=clock, draining=draining)
            write_kubeconfig(options.kubeconfig, url, certificates.server_authority, tokens)
            async with server, asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(certificates.keep_fresh(lambda fresh: setattr(server, "tls", fresh))),
                    tasks.create_task(follow(store, FOLLOWED, assembled.on_change)),
                    tasks.create_task(assembled.store_health.run()),
                ]
                manager = make_manager(parts, assembled, certificates.server_authority)
                controllers = tasks.create_task(manager.run(stopping))
                stop = make_stop(stopping, server)
                with signals(stop):
                    ready(Running(store, url, options.kubeconfig, stop))
                    await stopping.wait()
                    _log.info("stopping connections=%d", server.connections)
                    await clock.sleep(options.serving.shutdown_delay)
                    await server.drain()
                await controllers
                for task in background:
                    task.cancel()
                await assembled.webhooks.aclose()


def make_stop(stopping: asyncio.Event, server: HTTPServer) -> Callable[[], None]:
    def stop() -> None:
        if stopping.is_set():
            server.hurry()
        stopping.set()

    return stop


@contextlib.contextmanager
def signals(stop: Callable[[], None]) -> Iterator[None]:
    """Only while the server runs: before, while the store opens, a signal ends the process as usual, and harms nothing.

    In a thread of a larger program signals are that program's business.
    """
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def find_url(serving: ServingOptions, listener: socket.socket) -> str:
    """Where clients find the server: the name that they were promised, the address, or this machine."""
    host = serving.external_hostname or serving.bind_address
    if not serving.external_hostname and is_wildcard(host):
        host = "127.0.0.1"
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"https://{host}:{listener.getsockname()[1]}"


def fit_to_files(http: HTTPOptions) -> HTTPOptions:
    """No more connections than the process may have files, and as many of those as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # some systems name a limit that they do not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return http
    return dataclasses.replace(http, max_connections=min(http.max_connections, max(soft - _SPARE_FILES, 16)))
