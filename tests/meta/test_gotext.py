import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.meta.gotext import format_float, marshal_json, quote, quote_byte


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param("a", '"a"', id="plain"),
        pytest.param('a"b\\', r'"a\"b\\"', id="quotes"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="named-escapes"),
        pytest.param("\x00\x1f\x7f", r'"\x00\x1f\x7f"', id="control"),
        pytest.param("é世😀", '"é世😀"', id="printable"),
        pytest.param("\u0085\u200b\u2028\ufeff", r'"\u0085\u200b\u2028\ufeff"', id="unprintable"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="beyond-the-basic-plane"),
        pytest.param("\ud800", '"\ufffd"', id="half-a-pair"),
        pytest.param("<>&'", '"<>&\'"', id="no-html"),
    ],
)
def test_quoting(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@pytest.mark.parametrize(
    ("byte", "quoted"), [(ord("x"), "'x'"), (ord("'"), r"'\''"), (ord('"'), "'\"'"), (0, r"'\x00'"), (0xE9, "'é'")]
)
def test_quoting_a_byte(byte: int, quoted: str) -> None:
    assert quote_byte(byte) == quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (1.5, "1.5"),
        (999999.0, "999999"),
        (1e6, "1e+06"),
        (123456789.0, "1.23456789e+08"),
        (100000.5, "100000.5"),
        (1234567.5, "1.2345675e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-2.5e-9, "-2.5e-09"),
        (5e-324, "5e-324"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_floats_as_percent_v(value: float, text: str) -> None:
    assert format_float(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (3.14159265358979, "3.1415927"), (16777217.0, "1.6777216e+07"), (1e300, "+Inf"), (-1e300, "-Inf")],
)
def test_floats_of_32_bits(value: float, text: str) -> None:
    assert format_float(value, bits=32) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        (1.0, "1"),
        (-0.0, "-0"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        ({"b": [1, "x"], "a": {}}, '{"a":{},"b":[1,"x"]}'),
        ("<a>&\u2028", r'"\u003ca\u003e\u0026\u2028"'),
        ('"\\\b\f\n\r\t\x01é', r'"\"\\\b\f\n\r\t\u0001é"'),
        ("\ud800", '"\ufffd"'),
    ],
    ids=repr,
)
def test_json_as_go_marshals_it(value: Any, text: str) -> None:  # noqa: ANN401
    assert marshal_json(value) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None)
@given(JSON)
def test_marshalled_json_reads_back(value: Any) -> None:  # noqa: ANN401
    # Whole floats come back as integers with the same shortest digits, so compare as the floats they were.
    def as_floats(text: str) -> Any:  # noqa: ANN401
        return json.loads(text, parse_int=float)

    assert as_floats(marshal_json(value)) == as_floats(json.dumps(value))
