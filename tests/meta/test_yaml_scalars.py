import math

import pytest

from kcp.meta.yaml_scalars import (
    BINARY,
    BOOL,
    FLOAT,
    INT,
    NULL,
    STR,
    TIMESTAMP,
    Scalar,
    ScalarError,
    as_key,
    as_value,
    needs_quotes,
    resolve,
)

# What go.yaml.in/yaml/v2 makes of plain scalars.
PLAIN: list[tuple[str, Scalar]] = [
    *((word, True) for word in ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")),
    *((word, False) for word in ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")),
    *((word, None) for word in ("", "~", "null", "Null", "NULL")),
    *((word, word) for word in ("yEs", "tRue", "oN", "nULL", "none", "<<", "=", ".", "-", "+", "a", "é")),
    ("0", 0),
    ("-0", 0),
    ("12", 12),
    ("+12", 12),
    ("-12", -12),
    ("1_000", 1000),
    ("1__0_", 10),
    ("_1", "_1"),
    ("017", 15),
    ("0o17", 15),
    ("0O17", 15),
    ("08", 8.0),
    ("0x1F", 31),
    ("0X_1f", 31),
    ("-0x1F", -31),
    ("0x", "0x"),
    ("0xG", "0xG"),
    ("0b101", 5),
    ("-0b101", -5),
    ("0b-1", -1),
    ("0b+1", 1),
    ("-0b-1", "-0b-1"),
    ("0b2", "0b2"),
    ("9223372036854775807", 2**63 - 1),
    ("18446744073709551615", 2**64 - 1),
    ("18446744073709551616", float(2**64)),
    ("+18446744073709551615", float(2**64)),
    ("-9223372036854775808", -(2**63)),
    ("-9223372036854775809", -float(2**63)),
    ("0xFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFF"),
    ("0" * 100 + "1", 1),
    ("1.5", 1.5),
    ("1.", 1.0),
    (".5", 0.5),
    ("-.5", -0.5),
    (".5_5e1_0", 0.55e10),
    (".5_", ".5_"),
    ("1_0.5", 10.5),
    ("1e3", 1000.0),
    ("1E-3", 0.001),
    ("1e", "1e"),
    ("1e400", "1e400"),
    ("1e-400", 0.0),
    (".inf", math.inf),
    ("+.INF", math.inf),
    ("-.Inf", -math.inf),
    ("inf", "inf"),
    ("12:30:45", "12:30:45"),
    ("2001-01-01", "2001-01-01"),
    ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
    ("1.2.3", "1.2.3"),
]


@pytest.mark.parametrize(("text", "value"), PLAIN, ids=lambda case: repr(case)[:24])
def test_plain_scalars(text: str, value: Scalar) -> None:
    resolved = resolve(None, text)
    assert resolved == value
    assert type(resolved) is type(value)


def test_not_a_number() -> None:
    value = resolve(None, ".NaN")
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        (STR, "12", "12"),
        (INT, "12", 12),
        (FLOAT, "12", 12.0),
        (FLOAT, "1.5", 1.5),
        (BOOL, "yes", True),
        (NULL, "", None),
        ("!mine", "12", "12"),
        ("!", "12", "12"),
        ("tag:yaml.org,2002:set", "12", "12"),
        (BINARY, "aGVs\nbG8=", "hello"),
        (BINARY, "/2E=", "\ufffda"),
        (TIMESTAMP, "2001-01-01", "2001-01-01"),
        (TIMESTAMP, "2001-1-1t1:2:3.5+01:00", "2001-1-1t1:2:3.5+01:00"),
        (TIMESTAMP, "2001-01-01 1:2:3", "2001-01-01 1:2:3"),
    ],
)
def test_tagged_scalars(tag: str, text: str, value: Scalar) -> None:
    resolved = resolve(tag, text)
    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize(
    ("tag", "text", "complaint"),
    [
        (INT, "x", "yaml: cannot decode !!str `x` as a !!int"),
        (INT, "1.5", "yaml: cannot decode !!float `1.5` as a !!int"),
        (FLOAT, "x", "yaml: cannot decode !!str `x` as a !!float"),
        (FLOAT, "18446744073709551615", "yaml: cannot decode !!int `18446744073709551615` as a !!float"),
        (BOOL, "1", "yaml: cannot decode !!int `1` as a !!bool"),
        (NULL, "x", "yaml: cannot decode !!str `x` as a !!null"),
        (TIMESTAMP, "2001-02-30", "yaml: cannot decode !!str `2001-02-30` as a !!timestamp"),
        (TIMESTAMP, "2001-01-01T24:00:00Z", "yaml: cannot decode !!str `2001-01-01T24:00:00Z` as a !!timestamp"),
        (TIMESTAMP, "5", "yaml: cannot decode !!int `5` as a !!timestamp"),
        (BINARY, "x", "yaml: !!binary value contains invalid base64 data"),
    ],
)
def test_broken_promises(tag: str, text: str, complaint: str) -> None:
    with pytest.raises(ScalarError) as caught:
        resolve(tag, text)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", "a"),
        (True, True),
        (None, None),
        (1.5, 1.5),
        (1000.0, 1000),
        (-0.0, 0),
        (9.3e18, 9_300_000_000_000_000_000),
        (2.0**63, 9_223_372_036_854_776_000),
        (-9.3e18, -9.3e18),
        (1e20, 1e20),
    ],
    ids=repr,
)
def test_values_are_those_of_the_json_that_go_writes(value: Scalar, expected: Scalar) -> None:
    converted = as_value(value)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("value", "text"), [(math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")], ids=["inf", "minus-inf", "nan"]
)
def test_json_has_no_infinity(value: float, text: str) -> None:
    with pytest.raises(ScalarError) as caught:
        as_value(value)
    assert str(caught.value) == f"json: unsupported value: {text}"


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("a", "a"),
        (1, "1"),
        (-(2**63), "-9223372036854775808"),
        (True, "true"),
        (False, "false"),
        (0.1, "0.1"),
        (1e6, "1e+06"),
        (math.inf, ".inf"),
        (-math.inf, "-.inf"),
        (math.nan, ".nan"),
    ],
    ids=repr,
)
def test_keys_become_text(value: Scalar, key: str) -> None:
    assert as_key(value) == key


@pytest.mark.parametrize("value", [None, 2**63], ids=repr)
def test_some_scalars_cannot_be_keys(value: Scalar) -> None:
    with pytest.raises(ScalarError, match="unsupported map key"):
        as_key(value)


@pytest.mark.parametrize(
    "text", ["", "yes", "y", "null", "~", "1", "0x1", "1e3", ".5", "<<", "=", "12:30", "2001-01-01", "2001-1-1 x"]
)
def test_text_that_would_be_misread_needs_quotes(text: str) -> None:
    assert needs_quotes(text)


@pytest.mark.parametrize("text", ["a", "yesterday", "1.2.3", "v1", "nginx:1.25", "a-b", "é", "1a", "500m"])
def test_other_text_does_not(text: str) -> None:
    assert not needs_quotes(text)
