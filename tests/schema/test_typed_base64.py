"""Go's base64: what it takes, and which byte it complains about."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.schema.typed.base64 import find_corrupt_byte, recode


# Recorded from encoding/base64.StdEncoding.
@pytest.mark.parametrize(
    ("text", "corrupt"),
    [
        ("", None),
        ("YQ==", None),
        ("YW\nJj\r\n", None),
        ("YQ=\n=\n", None),
        ("YQ=", 3),
        ("YQ", 0),
        ("YWJjYQ", 4),
        ("Y", 0),
        ("!!!!", 0),
        ("YW J", 2),
        ("Y===", 1),
        ("====", 0),
        ("YQ=a", 2),
        ("YQ==x", 4),
        ("YWI=x", 4),
        ("YWJj=", 4),
        ("YWJj====", 4),
        ("=", 0),
        ("YQ==YQ==", 4),
        ("é", 0),
        ("YWJjé", 4),
    ],
    ids=repr,
)
def test_position_of_the_first_wrong_byte(text: str, corrupt: int | None) -> None:
    assert find_corrupt_byte(text) == corrupt
    if corrupt is not None:
        with pytest.raises(ValueError, match=r"\w"):
            recode(text)


@settings(deadline=None)
@given(st.text(alphabet="YWa=\r\n! é", max_size=12))
def test_both_roads_agree_on_what_is_wrong(text: str) -> None:
    try:
        recode(text)
    except ValueError:
        assert find_corrupt_byte(text) is not None
    else:
        assert find_corrupt_byte(text) is None


@settings(deadline=None)
@given(st.binary(max_size=20))
def test_canonical_text_stays(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert recode(text) == text
