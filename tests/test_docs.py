"""What the documents must say: every option, every command, every room."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click
import pytest

from kcp.cli.main import cli
from kcp.store import StoreOptions
from kcp.store.etcd.options import EtcdOptions

ROOT = Path(__file__).parent.parent
DOCS = "\n".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
ROOMS = sorted(path.parent.name for path in (ROOT / "src" / "kcp").glob("*/__init__.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_the_architecture_page_draws_every_room(room: str) -> None:
    assert f"`{room}/`" in (ROOT / "docs" / "architecture.md").read_text()


@pytest.mark.parametrize("command", cli.commands.values(), ids=lambda command: command.name)
def test_every_command_and_option_is_documented(command: click.Command) -> None:
    assert f"kcp {command.name}" in DOCS
    assert "Example" in (command.help or ""), "--help shows an example"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert f"`{max(parameter.opts, key=len)}`" in DOCS


@pytest.mark.parametrize("options", [StoreOptions, EtcdOptions], ids=lambda options: options.__name__)
def test_every_store_option_is_documented(options: type) -> None:
    missing = [field.name for field in dataclasses.fields(options) if f"`{field.name}`" not in DOCS]
    assert missing == []


def test_the_readme_has_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make run" in readme
    assert "make test" in readme
