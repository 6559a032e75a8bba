from typing import Any

import pytest

from kcp.meta import field
from kcp.meta.field import OMIT_VALUE, FieldError, FieldErrorType, FieldPath, aggregate

PATH = FieldPath("spec").child("ports").index(0).child("name")


def test_paths_are_spelled_as_in_kubernetes() -> None:
    assert str(PATH) == "spec.ports[0].name"
    assert str(FieldPath("metadata").child("labels").key("a.b/c")) == "metadata.labels[a.b/c]"
    assert str(FieldPath("spec").child("a", "b")) == "spec.a.b"


def test_the_object_itself_is_called_nil() -> None:
    assert str(FieldPath()) == "<nil>"
    assert str(FieldPath().child("spec", "a")) == "spec.a"
    assert str(FieldPath().index(0)) == "[0]"


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        (field.required(PATH), "FieldValueRequired", "Required value"),
        (field.required(PATH, "must be set"), "FieldValueRequired", "Required value: must be set"),
        (field.invalid(PATH, "A_b", "bad"), "FieldValueInvalid", 'Invalid value: "A_b": bad'),
        (field.type_invalid(PATH, 5, "not text"), "FieldValueTypeInvalid", "Invalid value: 5: not text"),
        (field.duplicate(PATH, "x"), "FieldValueDuplicate", 'Duplicate value: "x"'),
        (field.duplicate(PATH, {"b": 1, "a": "<"}), "FieldValueDuplicate", 'Duplicate value: {"a":"\\u003c","b":1}'),
        (
            field.not_supported(PATH, "Maybe", ["Fail", "Ignore"]),
            "FieldValueNotSupported",
            'Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
        ),
        (field.not_supported(PATH, "Maybe", []), "FieldValueNotSupported", 'Unsupported value: "Maybe"'),
        (field.not_found(PATH, "x"), "FieldValueNotFound", 'Not found: "x"'),
        (field.forbidden(PATH, "is immutable"), "FieldValueForbidden", "Forbidden: is immutable"),
        (field.too_long(PATH, 63), "FieldValueTooLong", "Too long: may not be more than 63 bytes"),
        (field.too_long(PATH, 1), "FieldValueTooLong", "Too long: may not be more than 1 byte"),
        (field.too_long(PATH, -1), "FieldValueTooLong", "Too long: value is too long"),
        (field.too_many(PATH, 5, 4), "FieldValueTooMany", "Too many: 5: must have at most 4 items"),
        (field.too_many(PATH, 2, 1), "FieldValueTooMany", "Too many: 2: must have at most 1 item"),
        (field.too_many(PATH, -1, -1), "FieldValueTooMany", "Too many: has too many items"),
        (field.internal(PATH, RuntimeError("oops")), "InternalError", "Internal error: oops"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_complaints_are_worded_as_in_kubernetes(error: FieldError, reason: str, text: str) -> None:
    assert error.body == text
    assert str(error) == f"spec.ports[0].name: {text}"
    assert error.type == reason


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", r'"a\nb"'),
        (5, "5"),
        (1e6, "1e+06"),
        (5.0, "5"),
        (True, "true"),
        (None, "null"),
        ([1, "a"], '[1,"a"]'),
        ({}, "{}"),
    ],
    ids=repr,
)
def test_bad_values_are_shown_as_go_shows_them(value: Any, shown: str) -> None:  # noqa: ANN401
    assert field.invalid(PATH, value, "no").body == f"Invalid value: {shown}: no"


def test_a_value_can_be_left_out() -> None:
    assert FieldError(FieldErrorType.INVALID, "a", OMIT_VALUE, "no").body == "Invalid value: no"
    assert repr(OMIT_VALUE) == "OMIT_VALUE"


def test_several_complaints_stand_in_brackets_and_repeated_ones_once() -> None:
    one, other = field.required(FieldPath("a")), field.required(FieldPath("b"))
    assert aggregate([]) == ""
    assert aggregate([one]) == aggregate([one, one]) == "a: Required value"
    assert aggregate([one, other, one]) == "[a: Required value, b: Required value]"
