"""What a controller is: what it looks at, and what it does about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable

    from kcp.registry.changes import Change, ResourceKey

K = TypeVar("K", bound="Hashable")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What follows a reconcile that did not fail."""

    after: float | None = None
    """Seconds after which to look again."""

    keys: tuple[Hashable, ...] = ()
    """What else to look at now."""


DONE: Final = Outcome()


@dataclass(frozen=True, slots=True)
class Later(Generic[K]):
    """A key that has time: what it is about may still be settling."""

    key: K
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Watch(Generic[K]):
    """Follow a resource in all logical clusters; None is every resource."""

    resource: ResourceKey | None
    make_keys: Callable[[Change], Iterable[K | Later[K]]]
    """What has to be looked at because of a change. It says where to look, not what happened."""

    wants: Callable[[Change], bool] | None = None
    """Whether a change can matter at all. Asked on the way of every write: header only, quick, never raising."""


@dataclass(frozen=True, slots=True, eq=False)
class Periodic(Generic[K]):
    """Something to do every so many seconds, besides following changes. It must do a bounded amount at a time."""

    seconds: float
    run: Callable[[Callable[[K], Awaitable[None]]], Awaitable[None]]
    """Called with a function that adds a key, and waits while there are too many."""


@dataclass(frozen=True, slots=True, eq=False)
class Controller(Generic[K]):
    """Changes make keys, keys are reconciled: safe to run twice, and again after any failure."""

    name: str
    reconcile: Callable[[K], Awaitable[Outcome]]
    watches: tuple[Watch[K], ...] = ()
    periodics: tuple[Periodic[K], ...] = ()
    workers: int = 2


AnyController = Controller[Any]
