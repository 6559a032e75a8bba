"""Writing: create, update, patch, apply and delete; and writes among many reads."""

from __future__ import annotations

import random
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from benchmarks.api.load import endless, from_iterable
from benchmarks.api.scenario import NO_END, Scenario, for_a_time, for_all, plural
from benchmarks.api.stage import config_maps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.api.load import Source
    from benchmarks.api.settings import Settings
    from benchmarks.api.stage import Stage
    from benchmarks.api.wire import Connection
    from benchmarks.measure import Timed


def writes(settings: Settings) -> list[Scenario]:
    return [
        *(Scenario(f"create, {plural(count)}", partial(_create, connections=count)) for count in (1, 32)),
        Scenario("update, 8 connections", _update),
        Scenario("merge patch, 8 connections", _merge_patch),
        Scenario("apply, 8 connections", _apply),
        Scenario("delete, 8 connections", _delete),
    ]


def mixed(settings: Settings) -> list[Scenario]:
    return [Scenario(f"80 % get, 10 % list {settings.small:,}, 10 % update, 32 connections", _mixed)]


def _create(stage: Stage, *, connections: int) -> Timed:
    stage.begin_turns()
    serial = stage.new_names(1)[0]

    def make_source(number: int, _: int) -> Source:
        names = (f"{serial}-{number}-{turn}" for turn in range(NO_END))
        return from_iterable(stage.create_requests(stage.scratch, names))

    return for_a_time(stage, make_source, connections)


def _update(stage: Stage) -> Timed:
    return _change(stage, stage.update_requests)


def _merge_patch(stage: Stage) -> Timed:
    return _change(stage, stage.merge_patch_requests)


def _apply(stage: Stage) -> Timed:
    stage.send_all(stage.apply_requests(stage.settings.small))  # what is measured is a change
    return _change(stage, stage.apply_requests)


def _change(stage: Stage, requests: Callable[[int], Iterable[bytes]]) -> Timed:
    stage.begin_turns()

    def make_source(number: int, clients: int) -> Source:
        return from_iterable(islice(requests(NO_END), number, None, clients))

    return for_a_time(stage, make_source, connections=8)


def _delete(stage: Stage) -> Timed:
    names = stage.new_names(stage.settings.deletes)
    stage.send_all(stage.create_requests(stage.scratch, names))
    paths = (f"{config_maps(stage.scratch)}/{name}" for name in names)
    return for_all(stage, [stage.target.request("DELETE", path) for path in paths], connections=8)


def _mixed(stage: Stage) -> Timed:
    stage.begin_turns()
    requests = stage.get_requests()
    listing = stage.target.request("GET", config_maps(stage.small))

    def make_source(number: int, clients: int) -> Source:
        get = endless(requests, number)
        update = from_iterable(islice(stage.update_requests(NO_END), number, None, clients))
        draw = random.Random(number).random

        def next_request(connection: Connection) -> bytes | None:
            drawn = draw()
            return get(connection) if drawn < 0.8 else listing if drawn < 0.9 else update(connection)

        return next_request

    return for_a_time(stage, make_source, connections=32)
