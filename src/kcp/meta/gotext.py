"""How Go prints strings and numbers, because Kubernetes' messages quote user input with Go's verbs.

Must not grow into a port of `fmt`: only the few forms that reach the wire.
"""

import math
import struct
from decimal import Decimal
from typing import Any, Final

_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}

# encoding/json escapes these three for HTML, and the two line separators for JavaScript, besides what JSON requires.
_JSON_ESCAPES: Final = {
    '"': r"\"",
    "\\": r"\\",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
} | {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


_G_PRECISION: Final = 6  # where %g with shortest digits switches to an exponent


def quote(text: str) -> str:
    """The verb %q: double quotes, with everything escaped that would not be seen on a terminal."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def quote_byte(byte: int) -> str:
    """One byte in single quotes, as encoding/json names an unexpected character."""
    if byte == ord("'"):
        return r"'\''"
    if byte == ord('"'):
        return "'\"'"
    return "'" + _escape(chr(byte)) + "'"


def format_float(value: float, *, bits: int = 64) -> str:
    """The verb %v, which is FormatFloat(value, 'g', -1, bits): an exponent outside of 1e-04 to 1e+05."""
    if bits == 32:
        value = _as_float32(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    digits, exponent = _shortest(value, bits)
    plain = -4 <= exponent < _G_PRECISION
    return _place_point(value, digits, exponent) if plain else _with_exponent(value, digits, exponent, width=2)


def marshal_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """json.Marshal: sorted keys, no spaces, HTML escaped, whole floats without a point."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return '"' + "".join(map(_json_escape, value)) + '"'
    if isinstance(value, float):
        return _json_float(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{marshal_json(key)}:{marshal_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(marshal_json, value)) + "]"
    return str(value)


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"  # half a surrogate pair cannot reach a Go string: its JSON decoder has replaced it
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    if char in _JSON_ESCAPES:
        return _JSON_ESCAPES[char]
    if "\ud800" <= char <= "\udfff":
        return "\ufffd"
    return f"\\u{ord(char):04x}" if char < " " else char


def _json_float(value: float) -> str:
    digits, exponent = _shortest(value, 64)
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return _place_point(value, digits, exponent)
    return _with_exponent(value, digits, exponent, width=1)


def _as_float32(value: float) -> float:
    (rounded,) = struct.unpack("f", struct.pack("f", value))  # in native mode, too large a number becomes infinite
    return float(rounded)


def _shortest(value: float, bits: int) -> tuple[str, int]:
    """The fewest digits that read back as the same float, and the power of ten of the first of them."""
    text = repr(abs(value))
    if bits == 32:
        candidates = (f"{abs(value):.{places}e}" for places in range(9))
        text = next(text for text in candidates if _as_float32(float(text)) == abs(value))
    number = Decimal(text)
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0") or "0"
    return digits, number.adjusted() if number else 0


def _place_point(value: float, digits: str, exponent: int) -> str:
    if exponent < 0:
        text = "0." + "0" * (-exponent - 1) + digits
    elif len(digits) <= exponent + 1:
        text = digits.ljust(exponent + 1, "0")
    else:
        text = digits[: exponent + 1] + "." + digits[exponent + 1 :]
    return _sign(value) + text


def _with_exponent(value: float, digits: str, exponent: int, *, width: int) -> str:
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{_sign(value)}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):0{width}d}"


def _sign(value: float) -> str:
    return "-" if math.copysign(1.0, value) < 0 else ""
