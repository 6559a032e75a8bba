"""Events end."""

from __future__ import annotations

from kcp.reconcilers import event_expiry
from kcp.reconcilers.event_expiry import ExpiryOptions
from tests.reconcilers.control_plane import CONFIGMAPS, EVENTS, ControlPlane


async def make_event(plane: ControlPlane, name: str, cluster: str = "root") -> None:
    regarding = {"namespace": "default", "name": "x", "kind": "ConfigMap"}
    await plane.create(EVENTS, name, "default", cluster, involvedObject=regarding)


async def test_events_live_for_an_hour_after_their_last_change(plane: ControlPlane) -> None:
    await plane.create_namespace("default", cluster="other")
    plane.start(event_expiry.new(plane.registry))
    await make_event(plane, "early")
    await make_event(plane, "repeated")
    await make_event(plane, "early", "other")
    await plane.create(CONFIGMAPS, "c", "default")
    await plane.pass_time(1800)
    await make_event(plane, "late")
    await plane.update(EVENTS, "repeated", "default", lambda event: event.update(count=2))
    await plane.pass_time(1700)
    assert plane.names(EVENTS) == ["early", "late", "repeated"]
    await plane.pass_time(400)
    assert plane.names(EVENTS) == ["late", "repeated"]
    assert plane.names(EVENTS, cluster="other") == []
    await plane.pass_time(1800)
    assert plane.names(EVENTS) == []
    assert plane.names(CONFIGMAPS) == ["c"]


async def test_a_restart_does_not_give_them_another_hour(plane: ControlPlane) -> None:
    plane.start(event_expiry.new(plane.registry))
    await make_event(plane, "e")
    await plane.pass_time(3000)
    await plane.stop()
    plane.start(event_expiry.new(plane.registry))
    await plane.pass_time(1000)
    assert plane.names(EVENTS) == []


async def test_without_events_nothing_is_written(plane: ControlPlane) -> None:
    plane.start(event_expiry.new(plane.registry))
    before = plane.store.revision
    await plane.pass_time(10_000)
    assert plane.store.revision == before


async def test_many_events_go_in_parts(plane: ControlPlane) -> None:
    for number in range(1200):
        await make_event(plane, f"e{number:04}")
    plane.start(event_expiry.new(plane.registry, ExpiryOptions(ttl_seconds=60, parts_per_tick=1)))
    await plane.pass_time(60)
    await make_event(plane, "new")
    left = len(plane.names(EVENTS))
    seen = {left}
    while left > 1:
        await plane.pass_time(20)
        left = len(plane.names(EVENTS))
        seen.add(left)
    assert plane.names(EVENTS) == ["new"]
    assert len(seen) > 2, "each look takes only a part"


def test_the_newest_note_from_before_counts() -> None:
    notes = [(10.0, 5), (20.0, 9), (30.0, 12)]
    assert event_expiry.choose_target(notes, 25.0) == 9
    assert event_expiry.choose_target(notes, 5.0) == 0
