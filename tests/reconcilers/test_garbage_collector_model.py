"""The garbage collector against a model of what Kubernetes promises."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcp.meta.fake_clock import FakeClock
from kcp.reconcilers import garbage_collector
from kcp.store import EmbeddedStore
from tests.reconcilers.control_plane import CONFIGMAPS, ControlPlane, owned_by

if TYPE_CHECKING:
    from kcp.meta.codec import Object

OBJECTS = 7


class Plan(NamedTuple):
    """Object i is owned by some of those before it; then some are deleted, one after the other."""

    owners: list[list[int]]
    deletions: list[tuple[int, str]]
    is_restarted: bool


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    owners = [
        draw(st.lists(st.integers(0, number - 1), max_size=2, unique=True)) if number else []
        for number in range(OBJECTS)
    ]
    deletion = st.tuples(st.integers(0, OBJECTS - 1), st.sampled_from(["Background", "Foreground", "Orphan"]))
    return Plan(owners, draw(st.lists(deletion, min_size=1, max_size=3)), draw(st.booleans()))


def survivors(plan: Plan) -> dict[int, list[int]]:
    """Who is left, and with which owners."""
    alive = {number: list(owners) for number, owners in enumerate(plan.owners)}
    for number, policy in plan.deletions:
        if number not in alive:
            continue
        del alive[number]
        if policy == "Orphan":
            for owners in alive.values():
                if number in owners:
                    owners.remove(number)
        while dangling := {each for each, owners in alive.items() if set(owners) - alive.keys()}:
            for each in sorted(dangling):
                left = [owner for owner in alive[each] if owner in alive]
                if left:
                    alive[each] = left
                else:
                    del alive[each]
                    break
    return alive


async def collect(plan: Plan, path: Path) -> dict[int, list[int]]:
    async with await EmbeddedStore.open(path) as store:
        plane = ControlPlane(store, FakeClock())
        await plane.create_namespace("default")
        plane.start(garbage_collector.new(plane.registry))
        made: list[Object] = []
        for number, owners in enumerate(plan.owners):
            metadata = owned_by(*(made[owner] for owner in owners), block=bool(number % 2))
            made.append(await plane.create(CONFIGMAPS, f"c{number}", "default", metadata=metadata))
        for number, policy in plan.deletions:
            if plan.is_restarted:
                await plane.settle()
                await plane.stop()
            await plane.delete(CONFIGMAPS, f"c{number}", "default", policy)
            if plan.is_restarted:
                plane.start(garbage_collector.new(plane.registry))
            await plane.settle()
            await plane.pass_time(5)
        left = {}
        for name in plane.names(CONFIGMAPS):
            obj = plane.get(CONFIGMAPS, name, "default")
            assert obj is not None
            assert "deletionTimestamp" not in obj["metadata"]
            references = obj["metadata"].get("ownerReferences") or ()
            left[int(name[1:])] = [int(reference["name"][1:]) for reference in references]
        await plane.stop()
        return left


@given(plan=plans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_left_is_what_the_model_leaves(plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as directory:
        left = asyncio.run(collect(plan, Path(directory) / "store"))
    assert left == survivors(plan)
