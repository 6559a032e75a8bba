"""`kcp start`"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import click

import kcp
from kcp.cli.options import describe_store, make_server_options, shown_errors, store_options
from kcp.server.loop import run
from kcp.server.run import serve
from kcp.store import Scope

if TYPE_CHECKING:
    from kcp.store import Store


@click.command()
@store_options
@click.option("-v", "--verbose", count=True, help="Log more: -v for what happens, -vv for everything.")
def start(verbose: int, **which: Any) -> None:  # noqa: ANN401 - the shared options, passed on
    """Start a server and run until it is told to stop.

    \b
    Examples:
      kcp start
      kcp start --root-directory /var/lib/kcp
      kcp start --etcd-servers http://10.0.0.1:2379,http://10.0.0.2:2379
    """
    began = time.monotonic()
    logging.basicConfig(
        level=(logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)],
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
    )
    options = make_server_options(**which)

    def show_ready(store: Store) -> None:
        click.echo(f"kcp {kcp.__version__}")
        click.echo(f"  store     {describe_store(options)}")
        click.echo(f"  content   {store.count(Scope()):,} objects at revision {store.revision:,}")
        click.echo(f"  ready     in {time.monotonic() - began:.2f} s")
        click.echo("This version keeps the data and does not serve the Kubernetes API yet.")
        click.echo("What it can do so far: `kcp backup`, `kcp restore` and `kcp check` (see --help of each),")
        click.echo("and the library: `from kcp.store import EmbeddedStore`.")
        click.echo("Stop with Ctrl-C.")

    with shown_errors():
        run(serve(options, show_ready))
    click.echo("Stopped; everything is on the disk.")
