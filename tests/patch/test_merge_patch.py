"""JSON merge patch."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.meta.codec import Object
from kcp.meta.errors import BadRequest
from kcp.patch.merge_patch import apply_merge_patch, decode_merge_patch

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["x", "y"])
VALUES = st.recursive(
    SCALARS,
    # No maps in lists: in the place of an object their nulls stay, in the place of a list they do not.
    lambda values: st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from("abc"), values, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@pytest.mark.parametrize(
    ("document", "patch", "patched"),
    [
        ({"m": {"x": 1, "y": 2}}, {"m": {"x": None, "z": 3}}, {"m": {"y": 2, "z": 3}}),
        ({"l": [1, 2]}, {"l": [9]}, {"l": [9]}),
        ({"n": 1}, {"n": None}, {}),
        ({}, {"n": None}, {}),
        ({}, {"new": {"a": None, "b": {"c": None}}}, {"new": {"b": {}}}),
        ({"a": "x"}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": None}, {"a": {"b": None}}, {"a": {}}),
        ({"a": {}}, {"a": 5}, {"a": 5}),
        ({"a": [1]}, {"a": [{"b": None}, None]}, {"a": [{}, None]}),
        ({"a": {}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
    ],
    ids=str,
)
def test_merging(document: Object, patch: Object, patched: Object) -> None:
    assert apply_merge_patch(document, patch) == patched


@given(OBJECTS, OBJECTS)
def test_a_patch_applied_again_changes_nothing(document: Object, patch: Object) -> None:
    once = apply_merge_patch(copy.deepcopy(document), copy.deepcopy(patch))
    assert apply_merge_patch(copy.deepcopy(once), copy.deepcopy(patch)) == once


@given(OBJECTS)
def test_an_empty_patch_changes_nothing(document: Object) -> None:
    assert apply_merge_patch(copy.deepcopy(document), {}) == document


@pytest.mark.parametrize(
    ("body", "strict", "message"),
    [
        (b"garbage", True, "error decoding patch: invalid character 'g' looking for beginning of value"),
        (b"garbage", False, "Invalid JSON Patch"),
        (
            b"[1]",
            True,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (b"[1]", False, "Invalid JSON Patch"),
        (b"null", True, "Invalid JSON Patch"),
    ],
)
def test_what_is_no_object_is_a_bad_request(body: bytes, strict: bool, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_merge_patch(body, strict=strict)
    assert caught.value.message == message


def test_strict_validation_sees_repeated_fields() -> None:
    assert decode_merge_patch(b'{"a":{"b":1,"b":2}}') == ({"a": {"b": 2}}, ['duplicate field "a.b"'])
    assert decode_merge_patch(b'{"a":1,"a":2}', strict=False) == ({"a": 2}, [])
