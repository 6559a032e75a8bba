"""Definitions that every logical cluster serves without holding them: this project's own kinds."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from kcp.meta import codec

if TYPE_CHECKING:
    from kcp.meta.codec import Object


@cache
def system_crds() -> tuple[Object, ...]:
    folder = resources.files("kcp.apis").joinpath("crds")
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(codec.loads_yaml(file.read_bytes()) for file in files if file.name.endswith(".yaml"))
