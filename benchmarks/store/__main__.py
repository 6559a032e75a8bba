"""`python -m benchmarks.store`: measure the embedded store and print one table."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.report import format_table, load, save
from benchmarks.store.settings import Settings
from benchmarks.store.suite import BENCHMARKS, BenchmarkFailed, run_alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FILE = click.Path(path_type=Path, dir_okay=False)
_OLD_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_DIRECTORY = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(BENCHMARKS)), help="Run only this; may be repeated.")
@click.option("--workspaces", default=200_000, show_default=True, help="Workspaces to make, of five keys each.")
@click.option("--quick", is_flag=True, help="A smoke run: everything small, and its figures worth nothing.")
@click.option("--directory", type=_DIRECTORY, help="Where to write; its disk is what is measured.")
@click.option("--json", "json_path", type=_FILE, help="Write the results to this file too.")
@click.option("--compare", type=_OLD_FILE, help="Results of an earlier run, written by --json.")
def main(
    only: Sequence[str],
    workspaces: int,
    quick: bool,
    directory: Path | None,
    json_path: Path | None,
    compare: Path | None,
) -> None:
    """Measure the embedded store beside the machine it runs on."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the scratch directory is removed then, too
    earlier = None if compare is None else load(compare)
    sections = []
    for name in only or BENCHMARKS:
        with _scratch(directory) as path:
            settings = replace(Settings(path), workspaces=workspaces)
            try:
                sections.append(run_alone(name, settings.shrunk() if quick else settings))
            except BenchmarkFailed as error:
                raise click.ClickException(str(error)) from error
    click.echo(format_table(sections, earlier))
    if json_path is not None:
        save(json_path, sections)


@contextmanager
def _scratch(directory: Path | None) -> Iterator[Path]:
    """A directory for one benchmark, removed whatever happens."""
    path = Path(tempfile.mkdtemp(prefix="kcp-benchmark-", dir=directory))
    try:
        yield path
    finally:
        shutil.rmtree(path)


if __name__ == "__main__":
    main()
