"""Options that several commands share, and how a command's options are shown."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kcp.server.options import ServerOptions
from kcp.store import StoreError
from kcp.store.etcd.options import EtcdOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Option(click.Option):
    """An option that is shown under a heading."""

    def __init__(self, *arguments: Any, heading: str = "Options", **settings: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*arguments, **settings)
        self.heading = heading


class Command(click.Command):
    """A command whose help has its options under their headings, in the order in which they were declared."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(parameter, "heading", "Other"), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def option(*names: str, heading: str, **settings: Any) -> Callable[..., Any]:  # noqa: ANN401 - click's
    return click.option(*names, cls=Option, heading=heading, **settings)


_STORE = "Store"
_STORE_OPTIONS = (
    option(
        "--root-directory",
        heading=_STORE,
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".kcp"),
        show_default=True,
        help="Where the server keeps its data.",
    ),
    option(
        "--etcd-servers",
        heading=_STORE,
        metavar="URL,URL",
        help="The data is in this etcd, which several servers may share, and not in the root directory.",
    ),
    option(
        "--etcd-prefix",
        heading=_STORE,
        default="/kcp",
        show_default=True,
        help="What this installation's keys begin with.",
    ),
    option("--etcd-cafile", heading=_STORE, metavar="FILE", default="", help="Authority of etcd's certificates."),
    option("--etcd-certfile", heading=_STORE, metavar="FILE", default="", help="Client certificate for etcd."),
    option("--etcd-keyfile", heading=_STORE, metavar="FILE", default="", help="Key of the client certificate."),
)


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which store a command works on."""
    return with_options(_STORE_OPTIONS)(command)


def with_options(options: tuple[Callable[..., Any], ...]) -> Callable[..., Callable[..., None]]:
    """Add options to a command, shown in the order of the list."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for declare in reversed(options):
            command = declare(command)
        return command

    return add


def make_server_options(
    *,
    root_directory: Path,
    etcd_servers: str | None,
    etcd_prefix: str,
    etcd_cafile: str,
    etcd_certfile: str,
    etcd_keyfile: str,
) -> ServerOptions:
    """Raises click.UsageError for options that do not fit together."""
    if etcd_servers is None:
        if etcd_cafile or etcd_certfile or etcd_keyfile:
            raise click.UsageError("--etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-servers.")
        return ServerOptions(root_directory)
    endpoints = tuple(endpoint.strip() for endpoint in etcd_servers.split(",") if endpoint.strip())
    try:
        etcd = EtcdOptions(endpoints, ca_file=etcd_cafile, cert_file=etcd_certfile, key_file=etcd_keyfile)
    except ValueError as error:
        raise click.UsageError(f"--etcd-servers: {error}") from error
    return ServerOptions(root_directory, etcd=etcd, etcd_prefix=etcd_prefix)


def describe_store(options: ServerOptions) -> str:
    if options.etcd is None:
        return f"embedded, in {options.store_directory}"
    return f"etcd at {', '.join(options.etcd.endpoints)}, mirrored in {options.store_directory}"


@contextlib.contextmanager
def shown_errors() -> Iterator[None]:
    """What the store or the system refuses, as one line and exit code 1."""
    try:
        yield
    except StoreError as error:
        raise click.ClickException(str(error)) from error
    except (OSError, ValueError) as error:
        raise click.ClickException(_plain(error)) from error


def _plain(error: Any) -> str:  # noqa: ANN401 - any exception
    if getattr(error, "filename", None):
        return f"{error.filename}: {error.strerror}"
    return getattr(error, "strerror", None) or str(error)
