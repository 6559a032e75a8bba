import pytest

from kcp.meta import gotime

AS_RFC3339 = ' as "2006-01-02T15:04:05Z07:00": cannot parse '


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("", f'""{AS_RFC3339}"" as "2006"', id="nothing"),
        pytest.param("soon", f'"soon"{AS_RFC3339}"soon" as "2006"', id="word"),
        pytest.param("2025", f'"2025"{AS_RFC3339}"" as "-"', id="only-a-year"),
        pytest.param("2025-1-01", f'"2025-1-01"{AS_RFC3339}"1-01" as "01"', id="short-month"),
        pytest.param("2025-13-01", '"2025-13-01": month out of range', id="month"),
        pytest.param("2025-02-30T00:00:00Z", '"2025-02-30T00:00:00Z": day out of range', id="day"),
        pytest.param("2023-02-29T00:00:00Z", '"2023-02-29T00:00:00Z": day out of range', id="no-leap-year"),
        pytest.param("2025-01-01T24:00:00Z", '"2025-01-01T24:00:00Z": hour out of range', id="hour"),
        pytest.param("2025-01-01T00:60:00Z", '"2025-01-01T00:60:00Z": minute out of range', id="minute"),
        pytest.param("2025-01-01T00:00:60Z", '"2025-01-01T00:00:60Z": second out of range', id="leap-second"),
        pytest.param("2025-01-01 00:00:00Z", f'"2025-01-01 00:00:00Z"{AS_RFC3339}" 00:00:00Z" as "T"', id="space"),
        pytest.param("2025-01-01T00:00:00", f'"2025-01-01T00:00:00"{AS_RFC3339}"" as "Z07:00"', id="no-zone"),
        pytest.param("2025-01-01T00:00:00.Z", f'"2025-01-01T00:00:00.Z"{AS_RFC3339}".Z" as "Z07:00"', id="lone-point"),
        pytest.param(
            "2025-01-01T00:00:00*01:00", f'"2025-01-01T00:00:00*01:00"{AS_RFC3339}"*01:00" as "Z07:00"', id="sign"
        ),
        pytest.param(
            "2025-01-01T00:00:00+x1:00", f'"2025-01-01T00:00:00+x1:00"{AS_RFC3339}"+x1:00" as "Z07:00"', id="letter"
        ),
        pytest.param(
            "2025-01-01T00:00:00+25:00",
            '"2025-01-01T00:00:00+25:00": time zone offset hour out of range',
            id="offset-hour",
        ),
        pytest.param(
            "2025-01-01T00:00:00+01:61",
            '"2025-01-01T00:00:00+01:61": time zone offset minute out of range',
            id="offset-minute",
        ),
        pytest.param(
            "2025-01-01T00:00:00Zé", r'"2025-01-01T00:00:00Z\xc3\xa9": extra text: "\xc3\xa9"', id="extra-text"
        ),
        pytest.param('"\\\n', rf'"\"\\\x0a"{AS_RFC3339}"\"\\\x0a" as "2006"', id="quoting"),
    ],
)
def test_errors_are_worded_as_in_go(text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        gotime.parse(text, gotime.RFC3339)
    assert str(caught.value) == f"parsing time {complaint}"


@pytest.mark.parametrize(
    ("fraction", "microsecond"),
    [
        pytest.param(".000012", 12, id="point"),
        pytest.param(",120000", 120000, id="comma"),
        pytest.param(".+12345", 12345, id="sign"),
    ],
)
def test_micro_layout_reads_six_places(fraction: str, microsecond: int) -> None:
    fields = gotime.parse(f"2025-01-01T00:00:00{fraction}Z", gotime.RFC3339_MICRO)
    assert fields.microsecond == microsecond


@pytest.mark.parametrize(
    ("fraction", "complaint"),
    [
        pytest.param(".-12345", "fractional second out of range", id="negative"),
        pytest.param(".12345", 'cannot parse ".12345Z" as ".000000"', id="five-digits"),
    ],
)
def test_micro_layout_refuses_other_fractions(fraction: str, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        gotime.parse(f"2025-01-01T00:00:00{fraction}Z", gotime.RFC3339_MICRO)
    assert str(caught.value).endswith(complaint)
