"""How measurements become rows: which of the rounds counts, ratios and goals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.api import suite
from benchmarks.api.scenario import Scenario
from benchmarks.api.settings import GOALS, Settings
from benchmarks.api.stage import Stage
from benchmarks.api.target import BenchmarkFailed, make_target, make_tls
from benchmarks.measure import Latency, Timed
from benchmarks.report import Section, Unit, format_table

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = Settings(rounds=2)
NAME = "get, 1 connection"


def stages(*names: str, ready_ms: float | None = None) -> list[Stage]:
    tls = make_tls(insecure=True)
    return [
        Stage(make_target(name, "https://h:1/clusters/a/", "t", tls, "/b", ready_ms=ready_ms), SETTINGS)
        for name in names
    ]


def results(found: dict[str, list[float]]) -> Callable[[Stage], Timed]:
    waiting = {name: iter(values) for name, values in found.items()}
    return lambda stage: Timed(next(waiting[stage.target.name]), Latency(1.0, 2.0))


@pytest.mark.parametrize(
    ("unit", "value", "ratio"), [(Unit.PER_SECOND, 4000.0, 2.0), (Unit.MILLISECONDS, 3000.0, 3.0)], ids=str
)
def test_the_best_round_of_each_server_counts(
    monkeypatch: pytest.MonkeyPatch, unit: Unit, value: float, ratio: float
) -> None:
    scenario = Scenario(NAME, results({"ours": [4000.0, 3000.0], "other": [1000.0, 2000.0]}), unit)
    monkeypatch.setitem(suite.BENCHMARKS, "gets", lambda _: [scenario])
    ((title, (row,)),) = suite.run(["gets"], SETTINGS, stages("ours", "other"))
    assert title == "gets"
    assert (row.value, row.of_machine, row.goal) == (value, ratio, GOALS[NAME])
    assert row.note == "beside: p99 2.000 ms"


def test_a_smoke_run_has_no_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.BENCHMARKS, "gets", lambda _: [Scenario(NAME, results({"ours": [1.0]}), note="so")])
    ((_, (row,)),) = suite.run(["gets"], SETTINGS.shrunk(), stages("ours"))
    assert (row.goal, row.machine, row.note) == (None, None, "so")


def test_a_server_of_our_own_shows_how_soon_it_was_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.BENCHMARKS, "gets", lambda _: [])
    sections = suite.run(["gets"], SETTINGS, stages("ours", ready_ms=500.0))
    assert [(row.name, row.value, row.meets_goal) for row in sections[-1].rows] == [("start to ready", 500.0, True)]
    assert "of beside" in format_table([Section("a", [])], peer="beside")


def test_every_goal_is_of_a_row_that_exists() -> None:
    names = {scenario.name for make in suite.BENCHMARKS.values() for scenario in make(Settings())}
    assert set(GOALS) - names == {"memory after all of it", "start to ready"}


def test_a_path_in_the_url_is_a_prefix_and_the_request_is_complete() -> None:
    (stage,) = stages("ours")
    request = stage.target.request("POST", "/api", b"{}")
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /clusters/a/b/api HTTP/1.1"
    assert b"Content-Length: 2" in head
    assert b"Authorization: Bearer t" in head
    assert body == b"{}"


@pytest.mark.parametrize("url", ["http://h", "h:6443", "https://"], ids=str)
def test_what_is_not_an_https_url_is_refused(url: str) -> None:
    with pytest.raises(BenchmarkFailed, match="no https URL"):
        make_target("x", url, "t", make_tls())
