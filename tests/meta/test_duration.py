from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.meta.duration import human_duration

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1.999, "0s"),
        (0, "0s"),
        (0.999, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (3 * MINUTE + 20, "3m20s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (8 * HOUR + MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 4 * HOUR, "2d4h"),
        (8 * DAY + 4 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 21 * DAY, "3y21d"),
        (8 * YEAR + 21 * DAY, "8y"),
    ],
    ids=str,
)
def test_ages_are_printed_as_kubectl_prints_them(seconds: float, expected: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == expected


@settings(deadline=None)
@given(st.timedeltas(timedelta(), timedelta(days=100_000)))
def test_an_age_is_never_exaggerated_and_off_by_a_year_at_most(age: timedelta) -> None:
    units = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    shown, number = 0, ""
    for char in human_duration(age):
        if char in units:
            shown, number = shown + int(number) * units[char], ""
        else:
            number += char
    assert shown <= age.total_seconds() < shown + YEAR
