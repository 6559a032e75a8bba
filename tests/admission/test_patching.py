# ruff: noqa: E501 - messages are compared whole
"""Patches leave the object alone that they start from, and say why they do not apply."""

from __future__ import annotations

from typing import Any

import pytest

from kcp.admission.patching import PatchFailed, patch

OBJECT: dict[str, Any] = {"a": {"b": [1, 2]}, "s": "text"}


def test_the_original_stays() -> None:
    patched = patch(OBJECT, [{"op": "add", "path": "/a/b/-", "value": 3}, {"op": "remove", "path": "/s"}])
    assert (patched, OBJECT) == ({"a": {"b": [1, 2, 3]}}, {"a": {"b": [1, 2]}, "s": "text"})


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (
            {"op": "remove", "path": "/x"},
            "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"op": "remove", "path": "/x/y"},
            'remove operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        (
            {"op": "remove", "path": "/a/b/7"},
            "error in remove for path: '/a/b/7': Unable to access invalid index: 7: invalid index referenced",
        ),
        (
            {"op": "add", "path": "/x/y", "value": 1},
            'add operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        (
            {"op": "add", "path": "/s/y", "value": 1},
            'add operation does not apply: doc is missing path: "/s/y": missing value',
        ),
        (
            {"op": "add", "path": "/a/b/9", "value": 1},
            "error in add for path: '/a/b/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "add", "path": "/a/b/x", "value": 1},
            "error in add for path: '/a/b/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            {"op": "replace", "path": "/x/y", "value": 1},
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            {"op": "replace", "path": "/a/b/5", "value": 1},
            "replace operation does not apply: doc is missing key: /a/b/5: missing value",
        ),
        ({"op": "test", "path": "/s", "value": "other"}, "testing value /s failed: test failed"),
        (
            {"op": "test", "path": "/x/y", "value": 1},
            "test operation does not apply: is missing path: /x/y: missing value",
        ),
        (
            {"op": "test", "path": "/a/b/5", "value": 1},
            "error in test for path: '/a/b/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            {"op": "move", "from": "/x/y", "path": "/z"},
            "move operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (
            {"op": "move", "from": "/x", "path": "/z"},
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"op": "move", "from": "/s", "path": "/x/y"},
            "move operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
        (
            {"op": "copy", "from": "/a/b/5", "path": "/z"},
            "error in copy for from: '/a/b/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            {"op": "copy", "from": "/s", "path": "/a/b/9"},
            "error while adding value during copy: Unable to access invalid index: 9: invalid index referenced",
        ),
        ({"op": "copy", "path": "/z"}, "copy operation failed to decode from: missing value"),
        ({"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
        ({"op": "zap", "path": "/a"}, "Unexpected kind: zap"),
        (
            {"op": "remove", "path": "/a/b/9/x"},
            'remove operation does not apply: doc is missing path: "/a/b/9/x": missing value',
        ),
        ({"op": "remove", "path": ""}, 'remove operation does not apply: doc is missing path: "": missing value'),
    ],
    ids=str,
)
def test_why_an_operation_does_not_apply(operation: dict[str, Any], why: str) -> None:
    with pytest.raises(PatchFailed) as caught:
        patch(OBJECT, [operation])
    assert str(caught.value) == why


def test_the_result_must_be_an_object() -> None:
    with pytest.raises(PatchFailed, match="cannot unmarshal array"):
        patch(OBJECT, [{"op": "replace", "path": "", "value": [1]}])
