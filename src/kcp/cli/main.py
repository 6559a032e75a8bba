"""The `kcp` command."""

from __future__ import annotations

import click

import kcp
from kcp.cli.start import start
from kcp.cli.storage import backup, check, restore


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(kcp.__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """A Kubernetes-style control plane for anything, multi-tenant to the core.

    \b
    Try it:
      kcp start                              start a server, with its data in .kcp
      kcp backup backup.kcp                  back it up while it runs
    """


for command in (start, backup, restore, check):
    cli.add_command(command)


def main() -> None:
    """Entry point; errors that a user can act on are one line, not a traceback."""
    cli(prog_name="kcp")


if __name__ == "__main__":
    main()
