"""Reading: single objects, and lists whole, in pages, as tables and by label."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.api.load import endless
from benchmarks.api.scenario import Scenario, for_a_time, plural
from benchmarks.api.stage import SELECTED, TABLE, config_maps

if TYPE_CHECKING:
    from benchmarks.api.load import Source
    from benchmarks.api.settings import Settings
    from benchmarks.api.stage import Stage
    from benchmarks.api.wire import Connection
    from benchmarks.measure import Timed

_CONTINUE = re.compile(rb'"continue":"([^"]+)"')


def gets(settings: Settings) -> list[Scenario]:
    return [Scenario(f"get, {plural(count)}", partial(_get, connections=count)) for count in (1, 32)]


def lists(settings: Settings) -> list[Scenario]:
    small, large, page = settings.small, settings.large, settings.small
    return [
        Scenario(f"list {small:,}, 8 connections", _list_small),
        Scenario(f"list {small:,} as Table, 8 connections", _list_table),
        Scenario(f"list {large:,}, 2 connections", _list_large),
        Scenario(
            f"pages of {page:,} from {large:,}, 2 connections", _list_pages, note="each with the last one's continue"
        ),
        Scenario(f"list {settings.labelled} of {large:,} by label, 8 connections", _list_labelled),
    ]


def _get(stage: Stage, *, connections: int) -> Timed:
    requests = stage.get_requests()
    return for_a_time(stage, lambda number, _: endless(requests, number), connections)


def _list_small(stage: Stage) -> Timed:
    return _list(stage, config_maps(stage.small), connections=8)


def _list_large(stage: Stage) -> Timed:
    return _list(stage, config_maps(stage.large), connections=2)


def _list_labelled(stage: Stage) -> Timed:
    return _list(stage, f"{config_maps(stage.large)}?labelSelector={SELECTED.replace('=', '%3D')}", connections=8)


def _list(stage: Stage, path: str, *, connections: int) -> Timed:
    request = stage.target.request("GET", path)
    return for_a_time(stage, lambda *_: endless([request]), connections)


def _list_table(stage: Stage) -> Timed:
    request = stage.target.head("GET", config_maps(stage.small), "", 0, accept=TABLE)
    return for_a_time(stage, lambda *_: endless([request]), connections=8)


def _list_pages(stage: Stage) -> Timed:
    return for_a_time(stage, lambda *_: _pages(stage), connections=2)


def _pages(stage: Stage) -> Source:
    path = f"{config_maps(stage.large)}?limit={stage.settings.small}"
    first = stage.target.request("GET", path)

    def next_page(connection: Connection) -> bytes:
        # The continue token stands in the list's metadata, which is before the items or after them.
        body = b"" if connection.answer is None else connection.answer.body
        found = _CONTINUE.search(body, 0, 2_000) or _CONTINUE.search(body, max(0, len(body) - 2_000))
        return first if found is None else stage.target.request("GET", f"{path}&continue={found[1].decode()}")

    return next_page
