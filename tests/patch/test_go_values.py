"""JSON values as Go names, prints and compares them."""

from typing import Any

import pytest

from kcp.patch.go_values import equal, identity, show, show_as_string, type_name, type_name_as_string


@pytest.mark.parametrize(
    ("value", "name", "text", "as_string"),
    [
        (None, "<nil>", "<nil>", "%!s(<nil>)"),
        (True, "bool", "true", "%!s(bool=true)"),
        (1, "int64", "1", "%!s(int64=1)"),
        (1.5, "float64", "1.5", "%!s(float64=1.5)"),
        ("x", "string", "x", "x"),
        ({"b": [1, "y"], "a": False}, "map[string]interface {}", "map[a:false b:[1 y]]", None),
    ],
    ids=str,
)
def test_printing(value: Any, name: str, text: str, as_string: str | None) -> None:  # noqa: ANN401
    assert (type_name(value), show(value)) == (name, text)
    if as_string is not None:
        assert show_as_string(value) == as_string
    assert type_name_as_string(value) == (name if value is not None else "%!s(<nil>)")


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        ([1], [True], False),
        ({"a": [0]}, {"a": [False]}, False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": None}, {}, False),
        ("1", 1, False),
    ],
    ids=str,
)
def test_equality(left: Any, right: Any, is_equal: bool) -> None:  # noqa: ANN401
    assert equal(left, right) is is_equal
    assert equal(left, left)


def test_keys_are_told_apart_by_type() -> None:
    assert len({identity(1), identity(1.0), identity(True), identity("1")}) == 4
    with pytest.raises(TypeError):
        identity({})
