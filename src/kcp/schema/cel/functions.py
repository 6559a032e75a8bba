"""How a library declares the functions that it adds to the language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.schema.cel.types import CelType


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. `implementation` gets plain Python values; a ValueError it raises is the expression's error."""

    id: str
    parameters: tuple[CelType, ...]
    result: CelType
    implementation: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Function:
    """A function, or with `member` a method of its first parameter. Names may have dots."""

    name: str
    overloads: tuple[Overload, ...]
    member: bool = False


def method(name: str, *overloads: Overload) -> Function:
    return Function(name, overloads, member=True)


def function(name: str, *overloads: Overload) -> Function:
    return Function(name, overloads)
