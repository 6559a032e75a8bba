"""`python -m benchmarks.api`: measure an API server and print one table."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.api import suite
from benchmarks.api.settings import Settings
from benchmarks.api.stage import Stage
from benchmarks.api.target import BenchmarkFailed, Target, make_target, make_tls, start_kcp
from benchmarks.report import format_table, load, save

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE = click.Path(path_type=Path, dir_okay=False)
_OLD_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_DIRECTORY = click.Path(path_type=Path, file_okay=False, exists=True)
_DEFAULT = Settings()
_NAMES = click.Choice(list(suite.BENCHMARKS))


@click.command()
@click.option("--only", multiple=True, type=_NAMES, help="Run only this; may be repeated.")
@click.option("--quick", is_flag=True, help="A smoke run: everything small, and its figures worth nothing.")
@click.option("--rounds", type=click.IntRange(1), default=_DEFAULT.rounds, show_default=True, help="Best of so many.")
@click.option("--seconds", type=float, default=_DEFAULT.seconds, show_default=True, help="Length of a measurement.")
@click.option("--clients", type=click.IntRange(1), default=1, show_default=True, help="Processes that make the load.")
@click.option("--server", metavar="URL", help="Measure this server. [default: start one of our own]")
@click.option("--token", default="", help="Bearer token of an admin there.")
@click.option("--prefix", default="", metavar="PATH", help="Before every path, such as /clusters/root.")
@click.option("--ca-file", type=_OLD_FILE, help="Authority of its certificate. [default: the system's]")
@click.option("--pid", "pids", type=int, multiple=True, help="Its local process, for its memory; may be repeated.")
@click.option("--beside", metavar="URL", help="Measure this server in turn with the first, for ratios.")
@click.option("--beside-token", default="", help="Bearer token of an admin there.")
@click.option("--beside-prefix", default="", metavar="PATH", help="Before every path there.")
@click.option("--beside-ca-file", type=_OLD_FILE, help="Authority of its certificate.")
@click.option("--beside-pid", "beside_pids", type=int, multiple=True, help="Its local process; may be repeated.")
@click.option("--insecure", is_flag=True, help="Believe any certificate.")
@click.option("--directory", type=_DIRECTORY, help="Where a server of our own writes; its disk is what is measured.")
@click.option("--json", "json_path", type=_FILE, help="Write the results to this file too.")
@click.option("--compare", type=_OLD_FILE, help="Results of an earlier run, written by --json.")
def main(only: tuple[str, ...], quick: bool, **given: Any) -> None:  # noqa: ANN401
    """Measure an API server over TLS as its clients see it.

    \b
    Examples:
      python -m benchmarks.api                          a server of our own, everything
      python -m benchmarks.api --only gets --seconds 5
      python -m benchmarks.api --json now.json --compare before.json
      python -m benchmarks.api --server https://localhost:6443/clusters/root --token T --ca-file .kcp/apiserver-ca.crt
      python -m benchmarks.api --beside https://localhost:7443 --beside-token U --insecure --beside-pid 4711
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are stopped and files removed then, too
    settings = Settings(rounds=given["rounds"], seconds=given["seconds"], clients=given["clients"])
    settings = settings.shrunk() if quick else settings
    earlier = None if given["compare"] is None else load(given["compare"])
    try:
        with _stages(settings, given) as stages:
            sections = suite.run(only, settings, stages)
    except (BenchmarkFailed, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(format_table(sections, earlier, peer="beside" if given["beside"] else "machine"))
    if given["json_path"] is not None:
        save(given["json_path"], sections)


@contextlib.contextmanager
def _stages(settings: Settings, given: dict[str, Any]) -> Iterator[list[Stage]]:
    """The servers, filled with objects to read; those that are not ours are emptied of them at the end."""
    with contextlib.ExitStack() as stack:
        if given["server"]:
            targets = [_make_target("server", given["server"], given, "")]
        else:
            scratch = stack.enter_context(_scratch(given["directory"]))
            targets = [stack.enter_context(start_kcp(scratch))]
        if given["beside"]:
            targets.append(_make_target("beside", given["beside"], given, "beside_"))
        stages = [Stage(target, settings) for target in targets]
        for stage in stages:
            if stage.target.ready_ms is None:
                stack.callback(stage.tear_down)
            stage.set_up()
        yield stages


def _make_target(name: str, url: str, given: dict[str, Any], option: str) -> Target:
    ca_file = given[f"{option}ca_file"]
    tls = make_tls("" if ca_file is None else str(ca_file), insecure=given["insecure"])
    target = make_target(name, url, given[f"{option}token"], tls, given[f"{option}prefix"])
    return replace(target, pids=given[f"{option}pids"])


@contextlib.contextmanager
def _scratch(directory: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kcp-benchmark-", dir=directory) as path:
        yield Path(path)


if __name__ == "__main__":
    main()
