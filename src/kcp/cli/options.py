"""Options that several commands share."""

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

_STORE_OPTIONS = (
    click.option(
        "--root-directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".kcp"),
        show_default=True,
        help="Where the server keeps its data.",
    ),
    click.option(
        "--etcd-servers",
        metavar="URL,URL",
        help="Keep the data in this etcd, which several servers may share, instead of the root directory.",
    ),
    click.option("--etcd-prefix", default="/kcp", show_default=True, help="What this installation's keys begin with."),
    click.option("--etcd-cafile", metavar="FILE", default="", help="Authority that signed etcd's certificates."),
    click.option("--etcd-certfile", metavar="FILE", default="", help="Client certificate for etcd."),
    click.option("--etcd-keyfile", metavar="FILE", default="", help="Private key of the client certificate."),
)


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which store a command works on."""
    for option in reversed(_STORE_OPTIONS):
        command = option(command)
    return command


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
    return f"{error.filename}: {error.strerror}" if getattr(error, "filename", None) else str(error)
