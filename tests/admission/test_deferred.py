"""Plugins that are loaded by the first logical cluster that configures them."""

from __future__ import annotations

from kcp.admission.attributes import Attributes, Operation
from kcp.admission.chain import Plugin
from kcp.admission.deferred import Deferred
from tests.admission.fakes import FakeReader, widget, write

GROUP, RESOURCE = "admissionregistration.k8s.io", "validatingwebhookconfigurations"


class Recorder(Plugin):
    name = "Recorder"
    operations = frozenset((Operation.CREATE,))

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def admit(self, a: Attributes) -> None:
        self.seen.append("admit")

    async def validate(self, a: Attributes) -> None:
        self.seen.append("validate")

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        self.seen.append(f"forget {resource}")


async def test_nothing_is_loaded_until_a_cluster_has_a_configuration() -> None:
    reader, plugin = FakeReader(), Recorder()
    loads: list[Plugin] = []

    def load() -> Plugin:
        loads.append(plugin)
        return plugin

    deferred = Deferred("Recorder", reader, (GROUP, RESOURCE), load)
    a = write(widget())
    await deferred.admit(a)
    await deferred.validate(a)
    deferred.forget(a.cluster, GROUP, RESOURCE)
    assert loads == []
    reader.add(GROUP, RESOURCE, {"metadata": {"name": "w"}}, a.cluster)
    deferred.forget(a.cluster, GROUP, RESOURCE)
    await deferred.admit(a)
    await deferred.validate(a)
    deferred.forget(a.cluster, GROUP, RESOURCE)
    assert loads == [plugin]
    assert plugin.seen == ["admit", "validate", f"forget {RESOURCE}"]


async def test_a_loaded_plugin_sees_only_the_operations_it_handles() -> None:
    reader, plugin = FakeReader(), Recorder()
    deferred = Deferred("Recorder", reader, (GROUP, RESOURCE), lambda: plugin)
    a = write(widget())
    reader.add(GROUP, RESOURCE, {"metadata": {"name": "w"}}, a.cluster)
    a.operation = Operation.DELETE
    await deferred.admit(a)
    await deferred.validate(a)
    assert plugin.seen == []
