"""The parameter `timeout`."""

from __future__ import annotations

import pytest

from kcp.endpoints.flow_deadline import parse_duration, request_timeout
from kcp.meta.errors import BadRequest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("5s", 5),
        ("1h2m3.5s", 3723.5),
        ("-1.5h", -5400),
        ("+10ms", 0.01),
        (".5s", 0.5),
        ("1.s", 1),
        ("3us", 3e-6),
        ("3µs", 3e-6),
        ("100ns", 1e-7),
    ],
)
def test_durations_as_go_reads_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("10", 'time: missing unit in duration "10"'),
        ("1.2.3s", 'time: missing unit in duration "1.2.3s"'),
        ("10x", 'time: unknown unit "x" in duration "10x"'),
        ("1h5", 'time: missing unit in duration "1h5"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="time: ") as refusal:
        parse_duration(text)
    assert str(refusal.value) == complaint


@pytest.mark.parametrize(("asked", "given"), [("", 60), ("10s", 10), ("0s", 60), ("2m", 60), ("-1s", 60)])
def test_a_request_can_ask_for_less_time_only(asked: str, given: float) -> None:
    assert request_timeout(asked, 60.0) == given


def test_a_wrong_timeout_is_a_bad_request() -> None:
    with pytest.raises(BadRequest) as refusal:
        request_timeout("soon", 60.0)
    assert refusal.value.message == 'invalid timeout specified in the request URL - time: invalid duration "soon"'
