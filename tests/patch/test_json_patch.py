"""JSON patch: what applies, what is refused, and in which words."""

from typing import Any

import pytest

from kcp.meta.codec import Object, dumps, loads
from kcp.meta.errors import BadRequest, Invalid, RequestEntityTooLarge
from kcp.patch.json_patch import MAX_OPERATIONS, apply_json_patch, decode_json_patch


def op(kind: str, path: str, **more: Any) -> Object:  # noqa: ANN401
    return {"op": kind, "path": path, **more}


@pytest.mark.parametrize(
    ("document", "operation", "patched"),
    [
        ({"a": 1}, op("add", "/b", value={"y": 2}), {"a": 1, "b": {"y": 2}}),
        ({"l": [1, 2]}, op("add", "/l/1", value=9), {"l": [1, 9, 2]}),
        ({"l": [1]}, op("add", "/l/-", value=9), {"l": [1, 9]}),
        ({"l": [1]}, op("add", "/l/-1", value=9), {"l": [1, 9]}),
        ({"l": [1]}, op("add", "/l/+0", value=9), {"l": [9, 1]}),
        ({"a": 1}, op("add", "/b"), {"a": 1, "b": None}),
        ({"l": [1, 2]}, op("remove", "/l/-1"), {"l": [1]}),
        ({"a": 1, "b": 2}, op("remove", "/b"), {"a": 1}),
        ({"a": 1}, op("replace", "/none", value=5), {"a": 1, "none": 5}),
        ({"l": [1, 2]}, op("replace", "/l/0", value=5), {"l": [5, 2]}),
        ({"a": 1}, op("replace", "", value={"x": 1}), {"x": 1}),
        ({"a": {"x": 1}}, op("move", "/b", **{"from": "/a/x"}), {"a": {}, "b": 1}),
        ({"a": {"x": 1}}, op("copy", "/b", **{"from": "/a"}), {"a": {"x": 1}, "b": {"x": 1}}),
        ({"l": [[1]]}, op("copy", "/l/-", **{"from": "/l/0"}), {"l": [[1], [1]]}),
        ({"a": 1}, op("copy", "/b", **{"from": "/none"}), {"a": 1, "b": None}),
        ({"a": {"b": [1, None]}}, op("test", "/a", value={"b": [1, None]}), {"a": {"b": [1, None]}}),
        ({"a": 1}, op("test", "", value={"a": 1}), {"a": 1}),
        ({"a": 1}, op("test", "/none"), {"a": 1}),
        ({"a/b": {"~": 1}}, op("remove", "/a~1b/~0"), {"a/b": {}}),
        ({"~1": 1}, op("remove", "/~01"), {}),
        ({"b": 1}, op("remove", "ignored/b"), {}),
        ({"": 1}, op("remove", "/"), {}),
    ],
    ids=str,
)
def test_operations(document: Object, operation: Object, patched: Object) -> None:
    assert apply_json_patch(document, [operation]) == patched


@pytest.mark.parametrize(
    "operation",
    [
        op("test", "/n", value=2),
        op("test", "/n", value=1.0),
        op("test", "/n", value=True),
        op("test", "/n"),
        op("test", "/l", value=["a", "b"]),
        op("test", "/l", value=["b"]),
        op("test", "/m", value={"y": 1}),
        op("test", "/l/7", value=1),
        op("test", "", value={"n": 1}),
        op("remove", "/none"),
        op("remove", ""),
        op("remove", "/l/1"),
        op("remove", "/l/-2"),
        op("remove", "/l/x"),
        op("remove", "/l/" + "9" * 30),
        op("add", "/l/9", value=1),
        op("add", "/none/deep", value=1),
        op("add", "/n/deep", value=1),
        op("add", "n", value=1),
        op("replace", "", value=5),
        op("replace", ""),
        op("replace", "/l/9", value=1),
        op("move", "/x", **{"from": "/none"}),
        op("move", "/x"),
        op("copy", "/none/x", **{"from": "/n"}),
        op("bogus", "/n"),
        {"path": "/n"},
        {"op": "add"},
        {"op": 5, "path": "/n"},
        {},
    ],
    ids=str,
)
def test_what_does_not_apply_is_refused_with_one_sentence(operation: Object) -> None:
    with pytest.raises(Invalid) as caught:
        apply_json_patch({"n": 1, "l": ["a"], "m": {"x": 1}}, [operation])
    assert caught.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


def test_a_copy_is_one() -> None:
    patch = [op("copy", "/b", **{"from": "/a"}), op("add", "/b/x", value=1)]
    assert apply_json_patch({"a": {}}, patch) == {"a": {}, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("body", "strict", "message"),
    [
        (b"[", True, "error decoding patch: unexpected end of JSON input"),
        (b"[", False, "unexpected end of JSON input"),
        (
            b"{}",
            True,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (b"{}", False, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (
            b"[5]",
            True,
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
        ),
        (b"[5]", False, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        (
            b'[{"op":5}]',
            True,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ],
)
def test_what_is_no_patch_is_a_bad_request(body: bytes, strict: bool, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_json_patch(body, strict=strict)
    assert caught.value.message == message


def test_strict_validation_sees_unknown_and_repeated_fields() -> None:
    operations, complaints = decode_json_patch(b'[null,{"op":"test","op":"add","path":"/a","who":1}]')
    assert operations == [{}, {"op": "add", "path": "/a", "who": 1}]
    assert complaints == ['json patch duplicate field "[1].op"', 'json patch unknown field "[1].who"']
    assert decode_json_patch(b'[{"op":"add","who":1}]', strict=False)[1] == []
    assert decode_json_patch(b"null") == ([], [])


def test_a_patch_of_too_many_operations_is_too_large() -> None:
    body = dumps([op("remove", "/a")] * (MAX_OPERATIONS + 1))
    with pytest.raises(RequestEntityTooLarge, match="allowed maximum operations in a JSON patch is 10000, got 10001"):
        decode_json_patch(body)
    assert len(decode_json_patch(dumps([op("remove", "/a")] * MAX_OPERATIONS))[0]) == MAX_OPERATIONS


def test_copies_of_copies_are_bounded() -> None:
    doubling = [op("copy", f"/x/b{number}", **{"from": "/x"}) for number in range(40)]
    with pytest.raises(Invalid):
        apply_json_patch({"x": {"a": "y" * 1000}}, doubling)
    one = [op("copy", "/y", **{"from": "/x"})]
    with pytest.raises(Invalid):
        apply_json_patch({"x": "y" * (3 << 20)}, one)
    assert len(apply_json_patch({"x": "y" * 1000}, one)["y"]) == 1000


def test_nothing_gets_deeper_than_can_be_sent() -> None:
    value: Any = 1
    for _ in range(200):
        value = {"a": value}
    path = "/a" * 199 + "/b"
    with pytest.raises(Invalid):
        apply_json_patch(value, [op("add", path, value=loads(dumps(value)))])
