"""`kcp backup`, `kcp restore` and `kcp check`"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import click

from kcp.cli.options import describe_store, make_server_options, shown_errors, store_options
from kcp.cli.progress import Progress
from kcp.meta.clock import SystemClock
from kcp.store.backup import write_backup
from kcp.store.check import find_problems
from kcp.store.engine import Engine
from kcp.store.restore import restore_embedded

_SHOWN_PROBLEMS = 20


@click.command()
@store_options
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path, **which: Any) -> None:  # noqa: ANN401 - the shared options, passed on
    """Back up a store to FILE while the server runs.

    The file is a consistent snapshot at one revision. It holds every Secret, so only you may read it. With
    --etcd-servers it is read from this server's mirror of etcd.

    \b
    Examples:
      kcp backup backup.kcp
      kcp backup --root-directory /var/lib/kcp /backups/kcp-monday.kcp
    """
    options = make_server_options(**which)
    progress = Progress("Wrote")
    with shown_errors(), contextlib.ExitStack() as stack:
        stack.callback(progress.clear)
        engine = stack.enter_context(Engine(options.store_directory, readonly=True))
        header, count = write_backup(engine, file, SystemClock().now(), progress.update)
        size = file.stat().st_size
    click.echo(f"Wrote {count:,} objects at revision {header.revision:,} to {file} ({size:,} bytes).")


@click.command()
@store_options
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(file: Path, **which: Any) -> None:  # noqa: ANN401 - the shared options, passed on
    """Make a new store from the backup in FILE.

    The root directory must not hold a store yet; nor must etcd, below its prefix. Clients that were connected to the
    old store are told to list anew.

    \b
    Examples:
      kcp restore backup.kcp --root-directory new
      kcp restore backup.kcp --etcd-servers http://127.0.0.1:2379
    """
    options = make_server_options(**which)
    progress = Progress("Restored")
    with shown_errors(), contextlib.ExitStack() as stack:
        stack.callback(progress.clear)
        if options.etcd is None:
            revision = restore_embedded(file, options.store_directory, progress.update)
        else:
            from kcp.store.etcd.restore import restore_etcd  # brings protobuf along

            revision = asyncio.run(restore_etcd(file, options.etcd, options.etcd_prefix, progress.update))
    click.echo(f"Restored {progress.done:,} objects to {describe_store(options)}; it begins at revision {revision:,}.")


@click.command()
@store_options
def check(**which: Any) -> None:  # noqa: ANN401 - the shared options, passed on
    """Look for contradictions in a store, while the server runs or not. Changes nothing.

    \b
    Example:
      kcp check --root-directory /var/lib/kcp
    """
    options = make_server_options(**which)
    count = 0
    with shown_errors(), Engine(options.store_directory, readonly=True) as engine:
        for count, problem in enumerate(find_problems(engine), 1):
            if count <= _SHOWN_PROBLEMS:
                click.echo(problem, err=True)
    if count:
        raise click.ClickException(f"{count:,} problems. Restore a backup with `kcp restore`.")
    click.echo(f"{options.store_directory} is sound.")
