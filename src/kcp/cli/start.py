"""`kcp start`"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kcp
from kcp.cli.options import (
    Command,
    describe_store,
    make_server_options,
    option,
    shown_errors,
    store_options,
    with_options,
)
from kcp.endpoints.flow import FlowOptions
from kcp.endpoints.flow_deadline import parse_duration
from kcp.server.log import FORMATS, configure_logging
from kcp.server.loop import run
from kcp.server.options import AuthenticationOptions, ServingOptions
from kcp.store import Scope

if TYPE_CHECKING:
    from kcp.server.options import ServerOptions
    from kcp.server.run import Running


class Duration(click.ParamType):  # type: ignore[type-arg]
    """`10s`, `1m30s`, as everywhere in Kubernetes."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        try:
            seconds = parse_duration(value) if isinstance(value, str) else float(value)
        except ValueError as error:
            self.fail(f"{error}; write it as 10s or 1m30s", param, ctx)
        if seconds < 0:
            self.fail("must not be negative", param, ctx)
        return seconds


_DEFAULT_SERVING = ServingOptions()
_DEFAULT_AUTHENTICATION = AuthenticationOptions()
_SERVING = "Serving"
_AUTHENTICATION = "Authentication"
_PROTECTION = "Protection"
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_START_OPTIONS = (
    option(
        "--bind-address",
        heading=_SERVING,
        metavar="IP",
        default=_DEFAULT_SERVING.bind_address,
        show_default=True,
        help="Address to listen on. 0.0.0.0 is every IPv4 address of this machine, :: every address.",
    ),
    option(
        "--secure-port",
        heading=_SERVING,
        type=click.IntRange(0, 65535),
        metavar="PORT",
        default=_DEFAULT_SERVING.secure_port,
        show_default=True,
        help="Port to listen on, with TLS. 0 is any free one.",
    ),
    option(
        "--external-hostname",
        heading=_SERVING,
        metavar="NAME",
        default="",
        help="Name or address by which other machines reach the server; for the certificate and the kubeconfig.",
    ),
    option("--tls-cert-file", heading=_SERVING, type=_FILE, help="Server certificate and chain. [default: self-made]"),
    option("--tls-private-key-file", heading=_SERVING, type=_FILE, help="Key of the server certificate."),
    option(
        "--shutdown-delay-duration",
        "shutdown_delay",
        heading=_SERVING,
        type=Duration(),
        default="0s",
        show_default=True,
        help="How long to go on serving, while /readyz fails, before stopping.",
    ),
    option(
        "--client-ca-file", heading=_AUTHENTICATION, type=_FILE, help="Authorities whose client certificates count."
    ),
    option(
        "--token-auth-file",
        heading=_AUTHENTICATION,
        type=_FILE,
        help='CSV file of bearer tokens: token,user,uid,"group,group".',
    ),
    option(
        "--anonymous-auth",
        heading=_AUTHENTICATION,
        type=bool,
        metavar="BOOL",
        default=True,
        show_default=True,
        help="Whether a request without credentials is system:anonymous or refused.",
    ),
    option(
        "--service-account-issuer",
        heading=_AUTHENTICATION,
        metavar="URL",
        default=_DEFAULT_AUTHENTICATION.service_account_issuer,
        show_default=True,
        help="Issuer of service account tokens.",
    ),
    option(
        "--service-account-signing-key-file",
        heading=_AUTHENTICATION,
        type=_FILE,
        help="Key that signs service account tokens. [default: self-made]",
    ),
    option(
        "--service-account-key-file",
        "service_account_key_files",
        heading=_AUTHENTICATION,
        type=_FILE,
        multiple=True,
        help="Another key whose service account tokens count. Can be given several times.",
    ),
    option(
        "--max-requests-inflight",
        "max_readonly",
        heading=_PROTECTION,
        type=click.IntRange(1),
        metavar="NUMBER",
        default=_DEFAULT_SERVING.flow.max_readonly,
        show_default=True,
        help="Reading requests at once; more wait in turn.",
    ),
    option(
        "--max-mutating-requests-inflight",
        "max_mutating",
        heading=_PROTECTION,
        type=click.IntRange(1),
        metavar="NUMBER",
        default=_DEFAULT_SERVING.flow.max_mutating,
        show_default=True,
        help="Writing requests at once; more wait in turn.",
    ),
    option(
        "--request-timeout",
        heading=_PROTECTION,
        type=Duration(),
        default="60s",
        show_default=True,
        help="How long a request other than a watch may take.",
    ),
    option(
        "-v",
        "--verbose",
        heading="Logs",
        count=True,
        help="Log more: -v for what happens to the server, -vv also for connections that fail.",
    ),
    option(
        "--log-format",
        heading="Logs",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="Lines for people, or JSON for machines.",
    ),
)


@click.command(cls=Command)
@store_options
@with_options(_START_OPTIONS)
def start(verbose: int, log_format: str, **given: Any) -> None:  # noqa: ANN401 - see make_start_options
    """Start a server and run until it is told to stop.

    It writes admin.kubeconfig to its root directory; kubectl needs nothing else.

    \b
    Examples:
      kcp start
      kcp start --root-directory /var/lib/kcp --external-hostname kcp.example.com
      kcp start --etcd-servers http://10.0.0.1:2379,http://10.0.0.2:2379
      kcp start --token-auth-file tokens.csv --max-requests-inflight 1000
      KUBECONFIG=.kcp/admin.kubeconfig kubectl get namespaces
    """
    began = time.monotonic()
    options = make_start_options(given)
    configure_logging(verbose, log_format)

    def show_ready(running: Running) -> None:
        click.echo(f"kcp {kcp.__version__}")
        click.echo(f"  address   {running.url}")
        click.echo(f"  store     {describe_store(options)}")
        click.echo(f"  content   {running.store.count(Scope()):,} objects at revision {running.store.revision:,}")
        click.echo(f"  ready     in {time.monotonic() - began:.2f} s")
        click.echo(f"Use it:     export KUBECONFIG={running.kubeconfig.absolute()}")
        click.echo("            kubectl get namespaces")
        click.echo("Stop with Ctrl-C.")

    with shown_errors():
        # They bring TLS and HTTP along, which `kcp --help` does not need.
        from kcp.server.process import tune_process
        from kcp.server.run import serve

        def ready(running: Running) -> None:
            tune_process()
            show_ready(running)

        run(serve(options, ready))
    click.echo("Stopped; everything is on the disk.")


def make_start_options(given: dict[str, Any]) -> ServerOptions:
    """Raises click.UsageError for options that do not fit together."""
    if (given["tls_cert_file"] is None) != (given["tls_private_key_file"] is None):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file go together.")
    serving = ServingOptions(
        **_take(given, ServingOptions, leave=("http", "flow")), flow=FlowOptions(**_take(given, FlowOptions))
    )
    authentication = AuthenticationOptions(**_take(given, AuthenticationOptions))
    return dataclasses.replace(make_server_options(**given), serving=serving, authentication=authentication)


def _take(given: dict[str, Any], options: type, leave: tuple[str, ...] = ()) -> dict[str, Any]:
    """Remove what belongs to `options`."""
    names = [field.name for field in dataclasses.fields(options)]
    return {name: given.pop(name) for name in names if name in given and name not in leave}
