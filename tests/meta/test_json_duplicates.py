import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.meta.json_duplicates import find_duplicate_fields, has_duplicate_fields


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param('{"a": 1, "b": {"a": 1}}', [], id="none"),
        pytest.param('{"data": {"k": 1, "k": 2}}', ["data.k"], id="nested"),
        pytest.param('{"a": 1, "a": 2, "a": 3}', ["a"], id="once-however-often"),
        pytest.param('{"l": [{"a": 1, "a": 2}, {}, {"b": 1, "b": 2}]}', ["l[0].a", "l[2].b"], id="in-lists"),
        pytest.param('[[{"a": 1, "a": 2}]]', ["[0][0].a"], id="without-a-name"),
        pytest.param(
            '{"a": {"x": 1, "x": 1}, "a": {"y": 1, "y": 1}}', ["a.x", "a", "a.y"], id="in-the-order-of-the-text"
        ),
        pytest.param('{"a": "\\u0062", "\\u0061": 1}', ["a"], id="spelled-differently"),
        pytest.param('{"n": ' + "9" * 5000 + ', "n": 1}', ["n"], id="beside-a-huge-number"),
    ],
)
def test_repeated_keys_are_found(text: str, paths: list[str]) -> None:
    assert find_duplicate_fields(text) == find_duplicate_fields(text.encode()) == paths
    assert has_duplicate_fields(text) is bool(paths)


def test_reporting_stops_at_a_hundred() -> None:
    text = "{" + ",".join(f'"a{number}": 1, "a{number}": 2' for number in range(150)) + "}"
    assert find_duplicate_fields(text) == [f"a{number}" for number in range(100)]


@settings(deadline=None)
@given(st.recursive(st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10))
def test_what_python_writes_has_none(value: object) -> None:
    assert find_duplicate_fields(json.dumps(value)) == []
