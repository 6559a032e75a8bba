"""The chain that every write passes: first all plugins may change the object, later all may refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.admission.attributes import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import ClassVar

    from kcp.admission.attributes import Attributes

    Step = Callable[[Attributes], Awaitable[None]]


class Plugin:
    """One rule about writes. A plugin overrides `admit`, `validate` or both; what it does not override costs nothing.

    Both are called for the `operations` only. They raise a StatusError to refuse.
    """

    name: ClassVar[str]
    operations: ClassVar[frozenset[Operation]] = frozenset(Operation)

    def handles(self, operation: Operation) -> bool:
        return operation in self.operations

    async def admit(self, a: Attributes) -> None:
        """Before validation: change `a.obj`, or refuse."""

    async def validate(self, a: Attributes) -> None:
        """After validation: refuse, or let pass. The object must not be changed any more."""

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        """An object of this resource changed in the logical cluster, or with None in any: drop what was remembered."""


class Chain:
    """Plugins in their order, sorted out by operation once, so that a write calls only those that may act on it."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = tuple(plugins)
        self._admit = {operation: self._steps(operation, "admit") for operation in Operation}
        self._validate = {operation: self._steps(operation, "validate") for operation in Operation}
        self._forgetful = tuple(plugin for plugin in self.plugins if _overrides(plugin, "forget"))

    async def mutate(self, a: Attributes) -> None:
        """Let every plugin change the object; the first refusal ends it."""
        for step in self._admit[a.operation]:
            await step(a)

    async def validate(self, a: Attributes) -> None:
        """Ask every plugin whether the write, now in its final form, may be done; the first refusal ends it."""
        for step in self._validate[a.operation]:
            await step(a)

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        """To be called for every committed change of what plugins are configured by (quotas, policies, webhooks)."""
        for plugin in self._forgetful:
            plugin.forget(cluster, group, resource)

    def _steps(self, operation: Operation, method: str) -> tuple[Step, ...]:
        return tuple(
            getattr(plugin, method)
            for plugin in self.plugins
            if plugin.handles(operation) and _overrides(plugin, method)
        )


def _overrides(plugin: Plugin, method: str) -> bool:
    return getattr(type(plugin), method) is not getattr(Plugin, method)
