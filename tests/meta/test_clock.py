import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.meta.clock import Clock, SystemClock, format_micro_time, format_time, parse_micro_time, parse_time
from kcp.meta.fake_clock import FakeClock

MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@pytest.mark.parametrize(
    ("moment", "seconds", "micros"),
    [
        pytest.param(
            datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC), "2025-01-02T03:04:05Z", "2025-01-02T03:04:05.000000Z", id="whole"
        ),
        pytest.param(
            datetime(2025, 1, 2, 3, 4, 5, 999999, tzinfo=UTC),
            "2025-01-02T03:04:05Z",
            "2025-01-02T03:04:05.999999Z",
            id="fraction-is-dropped-not-rounded",
        ),
        pytest.param(
            datetime(2025, 1, 2, 1, 0, tzinfo=timezone(timedelta(hours=2))),
            "2025-01-01T23:00:00Z",
            "2025-01-01T23:00:00.000000Z",
            id="zone-becomes-utc",
        ),
        pytest.param(
            datetime(7, 1, 1, tzinfo=UTC), "0007-01-01T00:00:00Z", "0007-01-01T00:00:00.000000Z", id="early-year"
        ),
    ],
)
def test_times_are_written_as_kubernetes_writes_them(moment: datetime, seconds: str, micros: str) -> None:
    assert format_time(moment) == seconds
    assert format_micro_time(moment) == micros


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware datetime"):
        format_time(datetime(2025, 1, 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2025-01-02T03:04:05Z", "2025-01-02T03:04:05.000000Z", id="usual"),
        pytest.param("2025-01-02T03:04:05.5Z", "2025-01-02T03:04:05.500000Z", id="fraction"),
        pytest.param("2025-01-02T03:04:05.123456789Z", "2025-01-02T03:04:05.123456Z", id="nanoseconds"),
        pytest.param("2025-01-02T03:04:05.1234567891234Z", "2025-01-02T03:04:05.123456Z", id="many-digits"),
        pytest.param("2025-01-02T03:04:05,5Z", "2025-01-02T03:04:05.500000Z", id="comma"),
        pytest.param("2025-01-02T3:04:05Z", "2025-01-02T03:04:05.000000Z", id="short-hour"),
        pytest.param("2025-01-02T03:04:05+05:30", "2025-01-01T21:34:05.000000Z", id="east"),
        pytest.param("2025-01-02T03:04:05-05:30", "2025-01-02T08:34:05.000000Z", id="west"),
        pytest.param("2025-01-02T03:04:05+24:60", "2025-01-01T02:04:05.000000Z", id="whole-day-of-offset"),
        pytest.param("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z", id="leap-day"),
    ],
)
def test_times_are_read_as_go_reads_them(text: str, expected: str) -> None:
    moment = parse_time(text)
    assert format_micro_time(moment) == expected
    assert moment.tzinfo is UTC


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"], ids=str
)
def test_times_outside_of_the_calendar_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="year out of range"):
        parse_time(text)


def test_micro_time_needs_six_digits() -> None:
    assert parse_micro_time("2025-01-02T03:04:05.000006Z") == datetime(2025, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    with pytest.raises(ValueError, match=r'cannot parse "Z" as "\.000000"$'):
        parse_micro_time("2025-01-02T03:04:05Z")


@settings(deadline=None)
@given(MOMENTS)
def test_what_is_written_reads_back(moment: datetime) -> None:
    assert parse_micro_time(format_micro_time(moment)) == moment
    assert parse_time(format_micro_time(moment)) == moment
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)


@settings(deadline=None)
@given(MOMENTS, ZONES)
def test_the_same_instant_reads_the_same_in_every_zone(moment: datetime, zone: timezone) -> None:
    assert parse_time(moment.astimezone(zone).isoformat()) == moment


@settings(deadline=None)
@given(st.text() | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}.*"))
def test_reading_a_time_never_fails_in_another_way(text: str) -> None:
    for parse in (parse_time, parse_micro_time):
        with contextlib.suppress(ValueError):
            parse(text)


async def test_system_clock_moves_on_its_own() -> None:
    clock = SystemClock()
    wall, monotonic = clock.now(), clock.monotonic()
    await clock.sleep(0)
    await clock.sleep(-1)
    assert wall.tzinfo is UTC
    assert clock.now() >= wall
    assert clock.monotonic() >= monotonic


def test_both_clocks_fit_the_protocol() -> None:
    clocks: list[Clock] = [SystemClock(), FakeClock()]
    assert all(clock.now().utcoffset() == timedelta() for clock in clocks)
