"""Resource quantities such as `500m` or `1Gi`: read, compare, add and write them as Kubernetes does.

Must not know which resources exist. A quantity is `unscaled * 10**exponent` in one of three formats; what was read in
canonical form is written as it was read:

    "1500m" -> 1500 * 10**-3, written "1500m"
    "1000m" -> 1000 * 10**-3, written "1"
    "1.5Gi" -> 1610612736 * 10**0, written "1536Mi"
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import Final

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

_WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
# A looser shape than the message says: Kubernetes' scanner takes "k", "." and "+" for zero.
_SHAPE: Final = re.compile(r"([+-]?+)(0*+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,19})")
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_BY_EXPONENT: Final = {0: ""} | {exponent // 10: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}
_NANO: Final = -9
_MAX_DIGITS: Final = 18  # how many digits surely fit in 64 bits
_MAX_INT64: Final = 2**63 - 1
# Beyond this many digits between two summands the smaller one cannot be seen, and aligning them would cost memory.
_NEGLIGIBLE: Final = 1000
_MAX_LENGTH: Final = 1000  # of a text; Kubernetes has no limit, but nobody has that much of anything


class QuantityError(ValueError):
    """The text is no quantity; the message is Kubernetes'."""


@functools.total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """One amount. Equal amounts are equal whatever their format; `str` gives the canonical form."""

    unscaled: int = 0
    exponent: int = 0
    format: str = DECIMAL_SI
    text: str = ""  # what was read, if that is canonical already

    def __str__(self) -> str:
        return self.text or _canonical(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and _compare(self, other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return _compare(self, other) < 0

    def __hash__(self) -> int:
        return hash(_without_tens(self.unscaled, self.exponent))

    def __bool__(self) -> bool:
        return self.unscaled != 0

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in this one's format; in the other's if this one is zero."""
        format_ = self.format if self.unscaled else other.format
        gap = self.exponent - other.exponent
        if self.unscaled and other.unscaled and abs(gap) > _NEGLIGIBLE:
            larger = max(self, other, key=lambda quantity: _magnitude(quantity.unscaled, quantity.exponent))
            return replace(larger, format=format_, text="")
        if not self.unscaled or not other.unscaled:
            return replace(self if self.unscaled else other, format=format_, text="")
        low = min(self.exponent, other.exponent)
        total = self.unscaled * 10 ** (self.exponent - low) + other.unscaled * 10 ** (other.exponent - low)
        return Quantity(total, low, format_)

    def __neg__(self) -> Quantity:
        return replace(self, unscaled=-self.unscaled, text="")

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def value(self) -> int:
        """The amount as a whole number, rounded away from zero; what does not fit in 64 bits is cut to what does."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """The amount in thousandths, rounded and cut likewise."""
        return self.scaled_value(-3)

    def scaled_value(self, exponent: int) -> int:
        shift = self.exponent - exponent
        if self.unscaled and shift + _magnitude(self.unscaled, 0) > 2 * _MAX_DIGITS + 2:
            return _MAX_INT64 if self.unscaled > 0 else -_MAX_INT64 - 1
        return max(min(_shift(self.unscaled, shift), _MAX_INT64), -_MAX_INT64 - 1)


ZERO: Final = Quantity()


def from_int(value: int, format_: str = DECIMAL_SI) -> Quantity:
    """A whole number as a quantity."""
    return Quantity(value, 0, format_)


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Quantity:
    """Read a quantity. Raises QuantityError."""
    if text == "0":
        return Quantity(text=text)
    match = _SHAPE.fullmatch(text)
    if match is None or not text:
        raise QuantityError(_WRONG_FORMAT)
    if len(text) > _MAX_LENGTH:
        raise QuantityError(_WRONG_NUMBER)
    sign, zeros, digits, decimals, suffix = match.groups()
    has_number = bool(zeros or digits or decimals)
    digits, decimals = digits or "0", decimals or ""
    base, exponent, format_ = _interpret(suffix)
    unscaled = int(digits + decimals) * (-1 if sign == "-" else 1)
    if base == 2:
        is_short = not decimals and 14 - len(digits) - exponent * 3 // 10 >= 0
        if is_short:
            return Quantity(unscaled << exponent, 0, BINARY_SI, text if unscaled & 0x07 else "")
    else:
        scale = exponent - len(decimals)
        is_short = len(digits) + len(decimals) <= _MAX_DIGITS and scale >= _NANO
        if is_short:
            shifted = digits + decimals
            is_canonical = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
            return Quantity(unscaled, scale, format_, text if is_canonical else "")
    if not has_number:
        raise QuantityError(_WRONG_NUMBER)
    if base == 2:
        return _capped(*_at_nano(unscaled << exponent, -len(decimals)))
    return Quantity(*_at_nano(unscaled, scale), format_)


def canonical(text: str) -> str:
    """The canonical form of a quantity. Raises QuantityError."""
    return str(parse(text))


def _interpret(suffix: str) -> tuple[int, int, str]:
    if suffix in _DECIMAL_SUFFIXES:
        return 10, _DECIMAL_SUFFIXES[suffix], DECIMAL_SI
    if suffix in _BINARY_SUFFIXES:
        return 2, _BINARY_SUFFIXES[suffix], BINARY_SI
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or abs(int(exponent[1])) > _MAX_INT64:
        raise QuantityError(_WRONG_SUFFIX)
    wrapped = (int(exponent[1]) + 2**31) % 2**32 - 2**31  # Go keeps the low 32 bits
    return 10, wrapped, DECIMAL_EXPONENT


def _capped(amount: int, scale: int) -> Quantity:
    """A binary quantity is cut to what fits in 64 bits, and is shown as decimal if it is less than one."""
    unit = 10 ** max(-scale, 0)
    if abs(amount) > _MAX_INT64 * unit:
        amount, scale = (_MAX_INT64 if amount > 0 else -_MAX_INT64), 0
    return Quantity(amount, scale, DECIMAL_SI if 0 < abs(amount) < unit else BINARY_SI)


def _at_nano(unscaled: int, exponent: int) -> tuple[int, int]:
    """No finer than a billionth, rounded away from zero: who asks for a little should get something."""
    if exponent >= _NANO or not unscaled:
        return unscaled, max(exponent, _NANO)
    return _shift(unscaled, exponent - _NANO), _NANO


def _shift(unscaled: int, places: int) -> int:
    """`unscaled * 10**places`, rounded away from zero."""
    if places >= 0:
        return unscaled * int(10**places)
    sign = -1 if unscaled < 0 else 1
    if -places > _magnitude(unscaled, 0):
        return sign if unscaled else 0
    return sign * -(-abs(unscaled) // int(10**-places))


def _magnitude(unscaled: int, exponent: int) -> int:
    """How many digits stand before the point (or, negative, how many zeros behind it)."""
    return len(str(abs(unscaled))) + exponent


def _compare(left: Quantity, right: Quantity) -> int:
    signs = [(quantity.unscaled > 0) - (quantity.unscaled < 0) for quantity in (left, right)]
    if signs[0] != signs[1] or not signs[0]:
        return signs[0] - signs[1]
    sizes = [_magnitude(quantity.unscaled, quantity.exponent) for quantity in (left, right)]
    if sizes[0] != sizes[1]:
        return signs[0] if sizes[0] > sizes[1] else -signs[0]
    low = min(left.exponent, right.exponent)
    difference: int = left.unscaled * 10 ** (left.exponent - low) - right.unscaled * 10 ** (right.exponent - low)
    return (difference > 0) - (difference < 0)


def _without_tens(unscaled: int, exponent: int) -> tuple[int, int]:
    digits = str(unscaled)
    stripped = digits.rstrip("0")
    return (int(stripped), exponent + len(digits) - len(stripped)) if unscaled else (0, 0)


def _canonical(quantity: Quantity) -> str:
    if not quantity.unscaled:
        return "0"
    mantissa, exponent = _without_tens(quantity.unscaled, quantity.exponent)
    if quantity.format == BINARY_SI and 0 <= exponent <= _MAX_DIGITS:
        whole = mantissa * 10**exponent
        if abs(whole) >= 1024:
            return _canonical_binary(whole)
    # Binary ones that are small or not whole are shown as decimal, so as not to lose precision.
    extra = exponent % 3
    number, exponent = mantissa * 10**extra, exponent - extra
    if quantity.format == DECIMAL_EXPONENT:
        return f"{number}e{exponent}" if exponent else str(number)
    # Kubernetes has no suffix past E either, and leaves it out.
    return f"{number}{_DECIMAL_BY_EXPONENT.get(exponent, '')}"


def _canonical_binary(whole: int) -> str:
    times = 0
    while abs(whole) >= 1024 and whole % 1024 == 0:
        whole //= 1024
        times += 1
    return f"{whole}{_BINARY_BY_EXPONENT.get(times, '')}"
