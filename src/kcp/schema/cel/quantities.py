"""Quantities such as `1Gi` in expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.schema import quantity
from kcp.schema.cel.descriptors import parts_of, value_of
from kcp.schema.cel.functions import Overload, function, method
from kcp.schema.cel.types import BOOL, DOUBLE, INT, QUANTITY, STRING

if TYPE_CHECKING:
    from kcp.schema.cel.descriptors import Value
    from kcp.schema.cel.functions import Function
    from kcp.schema.quantity import Quantity

_MAX_INT64: Final = 2**63 - 1


def _wrap(amount: Quantity) -> Value:
    """Equal amounts must be equal values, so it is the number that is kept, not the spelling."""
    unscaled, exponent = amount.unscaled, amount.exponent
    while unscaled and unscaled % 10 == 0:
        unscaled, exponent = unscaled // 10, exponent + 1
    return value_of(QUANTITY, str(unscaled), str(exponent if unscaled else 0))


def _unwrap(value: Value) -> Quantity:
    unscaled, exponent = parts_of(value)
    return quantity.Quantity(int(unscaled), int(exponent))


def parse(text: str) -> Value:
    return _wrap(quantity.parse(text))


def is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def sign(value: Value) -> int:
    return compare(value, parse("0"))


def compare(left: Value, right: Value) -> int:
    first, second = _unwrap(left), _unwrap(right)
    return 0 if first == second else -1 if first < second else 1


def is_integer(value: Value) -> bool:
    amount = _unwrap(value)
    return amount.exponent >= 0 and abs(amount.value()) < _MAX_INT64


def as_integer(value: Value) -> int:
    if not is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _unwrap(value).value()


def as_float(value: Value) -> float:
    amount = _unwrap(value)
    return float(f"{amount.unscaled}e{amount.exponent}")


def add(left: Value, right: Value | int) -> Value:
    return _wrap(_unwrap(left) + _amount(right))


def subtract(left: Value, right: Value | int) -> Value:
    return _wrap(_unwrap(left) - _amount(right))


def _amount(value: Value | int) -> Quantity:
    return quantity.from_int(value) if isinstance(value, int) else _unwrap(value)


_ONE: Final = (QUANTITY,)
_TWO: Final = (QUANTITY, QUANTITY)

FUNCTIONS: Final[tuple[Function, ...]] = (
    function("quantity", Overload("string_to_quantity", (STRING,), QUANTITY, parse)),
    function("isQuantity", Overload("is_quantity_string", (STRING,), BOOL, is_quantity)),
    function("sign", Overload("quantity_sign", _ONE, INT, sign)),
    method("isGreaterThan", Overload("quantity_is_greater_than", _TWO, BOOL, lambda a, b: compare(a, b) > 0)),
    method("isLessThan", Overload("quantity_is_less_than", _TWO, BOOL, lambda a, b: compare(a, b) < 0)),
    method("compareTo", Overload("quantity_compare_to", _TWO, INT, compare)),
    method("asApproximateFloat", Overload("quantity_get_float", _ONE, DOUBLE, as_float)),
    method("asInteger", Overload("quantity_get_int", _ONE, INT, as_integer)),
    method("isInteger", Overload("quantity_is_integer", _ONE, BOOL, is_integer)),
    method(
        "add",
        Overload("quantity_add", _TWO, QUANTITY, add),
        Overload("quantity_add_int", (QUANTITY, INT), QUANTITY, add),
    ),
    method(
        "sub",
        Overload("quantity_sub", _TWO, QUANTITY, subtract),
        Overload("quantity_sub_int", (QUANTITY, INT), QUANTITY, subtract),
    ),
)
