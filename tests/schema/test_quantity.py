"""Resource quantities: the canonical form, the errors and the arithmetic of Kubernetes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.schema.quantity import BINARY_SI, DECIMAL_EXPONENT, DECIMAL_SI, ZERO, QuantityError, canonical, from_int, parse

MAX_INT64 = 2**63 - 1

amounts = st.from_regex(
    r"[+-]?[0-9]{1,20}(\.[0-9]{0,12})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,2})?", fullmatch=True
)


# Recorded from k8s.io/apimachinery/pkg/api/resource v0.35.0.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"),
        ("1", "1"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("0.1", "100m"),
        ("1.500", "1.500"),  # taken for canonical already
        ("+5", "+5"),
        ("0005", "0005"),
        ("-1.5", "-1500m"),
        ("1000k", "1M"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("8Ti", "8Ti"),
        ("0.5Mi", "512Ki"),
        ("0.001Ki", "1024m"),
        ("0.0001Ki", "102400u"),
        ("1Ei", "1Ei"),
        ("16Ei", "9223372036854775807"),
        ("-16Ei", "-9223372036854775807"),
        ("12345678901234567890", "12345678901234567890"),
        ("0.0000000001", "1n"),
        ("1.5n", "2n"),
        ("-1.5n", "-2n"),
        ("1e3", "1e3"),
        ("1E6", "1E6"),
        ("1000e3", "1e6"),
        ("10e1", "100"),
        ("1e-3", "1e-3"),
        ("1000E", "1"),  # there is no suffix for 10**21
        (".", "0"),
        ("+", "0"),
        ("k", "0"),
        ("e5", "0"),
        (".5", "500m"),
        ("1.", "1."),
        ("1e4294967299", "1e4294967299"),
    ],
)
def test_canonical_form(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "1x", "1.2.3", " 1", "1 ", "1Ki3x", "１", "1\n"])
def test_what_is_no_quantity_is_refused_with_the_pattern(text: str) -> None:
    with pytest.raises(QuantityError, match=r"^quantities must match the regular expression "):
        parse(text)


@pytest.mark.parametrize("text", ["1ki", "--1", "1mm", "1e", "1i", "1Kii", "1k3", "1e99999999999999999999"])
def test_an_unknown_suffix_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match=r"^unable to parse quantity's suffix$"):
        parse(text)


@pytest.mark.parametrize("text", ["Pi", "-Ei", "-e-12", "9" * 1001])
def test_a_number_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match=r"^unable to parse numeric part of quantity$"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", DECIMAL_SI),
        ("1Ki", BINARY_SI),
        ("0.5e3", DECIMAL_EXPONENT),
        ("0.0001Ki", DECIMAL_SI),
        ("2.5Ki", BINARY_SI),
    ],
)
def test_format_follows_the_suffix(text: str, expected: str) -> None:
    assert parse(text).format == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1", "2"),
        ("-1", "1"),
        ("-2", "-1"),
        ("999m", "1"),
        ("1k", "1Ki"),
        ("1", "1e1000000000"),
        ("0", "1n"),
        ("9", "10"),
    ],
)
def test_smaller_is_less(left: str, right: str) -> None:
    assert parse(left) < parse(right)
    assert parse(right) > parse(left)
    assert parse(left) != parse(right)


@pytest.mark.parametrize(
    ("left", "right"), [("1", "1000m"), ("1Ki", "1024"), ("0", "0Ki"), ("1e3", "1k"), ("-1", "-1.0")]
)
def test_equal_amounts_are_equal_in_any_format(left: str, right: str) -> None:
    assert parse(left) == parse(right)
    assert hash(parse(left)) == hash(parse(right))


def test_a_quantity_equals_nothing_else() -> None:
    assert parse("1") != 1


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("1", "500m", "1500m"),
        ("1Gi", "512Mi", "1536Mi"),
        ("0", "1Ki", "1Ki"),
        ("1Ki", "0", "1Ki"),
        ("1Ki", "1", "1025"),
        ("1", "1Ki", "1025"),
        ("1e1000000000", "1", "10e999999999"),
        ("1Gi", "1e1000000000", "10"),  # the format is kept, and has no such suffix
        ("1", "-1", "0"),
    ],
)
def test_sum_keeps_the_format_of_the_first(left: str, right: str, expected: str) -> None:
    assert str(parse(left) + parse(right)) == expected


def test_difference_and_truth() -> None:
    assert str(parse("2") - parse("500m")) == "1500m"
    assert not ZERO
    assert parse("1n")


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("1", 1, 1000),
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("0", 0, 0),
        ("1Ki", 1024, 1024000),
        ("1e1000000000", MAX_INT64, MAX_INT64),
        ("-1e1000000000", -MAX_INT64 - 1, -MAX_INT64 - 1),
        ("9223372036854775807", MAX_INT64, MAX_INT64),
    ],
)
def test_whole_values_are_rounded_away_from_zero(text: str, value: int, milli: int) -> None:
    assert (parse(text).value(), parse(text).milli_value()) == (value, milli)


def test_from_int() -> None:
    assert str(from_int(2048, BINARY_SI)) == "2Ki"
    assert str(from_int(1000)) == "1k"


@settings(deadline=None)
@given(amounts)
def test_the_canonical_form_is_stable_and_means_the_same(text: str) -> None:
    quantity = parse(text)
    written = str(quantity)
    if abs(quantity.unscaled) * 10 ** max(quantity.exponent, 0) < 10**21:
        assert parse(written) == quantity
        assert canonical(written) == written


@settings(deadline=None)
@given(amounts, amounts)
def test_sums_and_comparisons_agree(left: str, right: str) -> None:
    assert parse(left) + parse(right) == parse(right) + parse(left)
    assert (parse(left) < parse(right)) == ((parse(right) - parse(left)).unscaled > 0)
