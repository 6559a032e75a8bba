"""The chain calls what handles the write, in order, and nothing else."""

from __future__ import annotations

import pytest

from kcp.admission.attributes import Attributes, Operation
from kcp.admission.chain import Chain, Plugin
from kcp.meta.errors import BadRequest
from tests.admission.fakes import write


class Recorder(Plugin):
    name = "Recorder"

    def __init__(self, log: list[str], mark: str) -> None:
        self.log = log
        self.mark = mark

    async def admit(self, a: Attributes) -> None:
        self.log.append(f"admit {self.mark}")

    async def validate(self, a: Attributes) -> None:
        self.log.append(f"validate {self.mark}")

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        self.log.append(f"forget {cluster}|{group}/{resource}")


class OnDelete(Recorder):
    operations = frozenset((Operation.DELETE,))


class Refusing(Plugin):
    name = "Refusing"

    async def admit(self, a: Attributes) -> None:
        raise BadRequest("no")


async def test_plugins_run_in_their_order_and_only_for_their_operations() -> None:
    log: list[str] = []
    chain = Chain([Recorder(log, "1"), OnDelete(log, "2"), Recorder(log, "3")])
    await chain.mutate(write())
    await chain.validate(write(operation=Operation.DELETE))
    assert log == ["admit 1", "admit 3", "validate 1", "validate 2", "validate 3"]


async def test_the_first_refusal_ends_the_round() -> None:
    log: list[str] = []
    chain = Chain([Refusing(), Recorder(log, "1")])
    with pytest.raises(BadRequest):
        await chain.mutate(write())
    await chain.validate(write())
    assert log == ["validate 1"]


def test_changes_are_passed_to_plugins_that_remember_things() -> None:
    log: list[str] = []
    Chain([Recorder(log, "1"), Refusing()]).forget("root", "g", "things")
    assert log == ["forget root|g/things"]


async def test_a_plugin_may_do_nothing() -> None:
    plugin = Plugin()
    await plugin.admit(write())
    await plugin.validate(write())
    plugin.forget("c", "g", "r")
    assert plugin.handles(Operation.CONNECT)
