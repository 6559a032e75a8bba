"""Plugins that most installations never need, brought in by the first logical cluster that configures them.

A CEL compiler and an HTTP client take longer to load than the rest of the server together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.admission.chain import Plugin
from kcp.admission.configuration import Configurations

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.admission.attributes import Attributes
    from kcp.auth.reader import Reader


class Deferred(Plugin):
    """Stands for a plugin that does nothing where no object of `resource`, a group and a name, exists."""

    def __init__(self, name: str, reader: Reader, resource: tuple[str, str], load: Callable[[], Plugin]) -> None:
        self.name = name  # type: ignore[misc]  # one class stands for several plugins
        self._resource = resource
        self._reader = reader
        self._load = load
        self._plugin: Plugin | None = None
        self._is_configured = Configurations((resource,), self._look)

    def _look(self, cluster: str) -> bool:
        return bool(self._reader.list(cluster, *self._resource, None))

    def _find(self, a: Attributes) -> Plugin | None:
        if self._plugin is None and self._is_configured.get(a.cluster):
            self._plugin = self._load()
        return self._plugin

    async def admit(self, a: Attributes) -> None:
        plugin = self._find(a)
        if plugin is not None and plugin.handles(a.operation):
            await plugin.admit(a)

    async def validate(self, a: Attributes) -> None:
        plugin = self._find(a)
        if plugin is not None and plugin.handles(a.operation):
            await plugin.validate(a)

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        self._is_configured.forget(cluster, group, resource)
        if self._plugin is not None:
            self._plugin.forget(cluster, group, resource)
