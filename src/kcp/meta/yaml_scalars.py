"""What a YAML scalar means: the YAML 1.1 dialect that Kubernetes' users know (go.yaml.in/yaml/v2, resolve.go).

Must not parse YAML. In short: `yes`, `on` and `y` are true, `0o17`, `017`, `0x1F`, `0b11` and `1_000` are numbers,
dates stay text, base 60 does not exist, and a whole float such as `1e3` becomes an integer on its way through JSON.
"""

import base64
import binascii
import math
import re
from datetime import date
from decimal import Decimal
from typing import Final, TypeAlias

from kcp.meta.gotext import format_float

Scalar: TypeAlias = str | int | float | bool | None

_PREFIX: Final = "tag:yaml.org,2002:"
STR: Final = _PREFIX + "str"
BOOL: Final = _PREFIX + "bool"
INT: Final = _PREFIX + "int"
FLOAT: Final = _PREFIX + "float"
NULL: Final = _PREFIX + "null"
TIMESTAMP: Final = _PREFIX + "timestamp"
BINARY: Final = _PREFIX + "binary"
MERGE: Final = _PREFIX + "merge"

_WORDS: Final[dict[str, tuple[str, Scalar]]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), (BOOL, True)),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), (BOOL, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (FLOAT, math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (FLOAT, -math.inf)),
}
_RESOLVED_TAGS: Final = frozenset((STR, BOOL, INT, FLOAT, NULL, TIMESTAMP))

_INTEGER: Final = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[oO]?(?P<o>[0-7]+)|0[bB](?P<b>[01]+)|(?P<d>0|[1-9][0-9]*))"
)
# Left over from the library's older, hand-written binary numbers: a sign may also stand behind the prefix.
_ODD_BINARY: Final = re.compile(r"0b(?P<sign>[+-])(?P<b>[01]+)(?P<x>)(?P<o>)(?P<d>)")
_BASES: Final = {"x": 16, "o": 8, "b": 2, "d": 10}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# Behind a leading point, Go's float parser sees the text with its underscores and allows them between digits.
_POINT_FLOAT: Final = re.compile(r"\.[0-9](_?[0-9])*+([eE][-+]?[0-9](_?[0-9])*+)?")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})"
    r"| ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?)?"
)
_BASE60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_LOOKS_LIKE_A_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*", re.DOTALL)
_MOST_DIGITS: Final = 66  # 64 binary ones and change: longer numbers do not fit, and need not be computed to know it


class ScalarError(ValueError):
    """The scalar is not what its tag promises, or JSON has nothing like it. The message is the YAML library's."""


def resolve(tag: str | None, text: str) -> Scalar:
    """The value of a scalar that is plain or has a tag; quoted ones without a tag are text and need no asking.

    What comes back is YAML's; `as_value` or `as_key` makes it fit for JSON. Raises ScalarError.
    """
    if tag is None:
        return _resolve_plain(text)[1]
    if tag == BINARY:
        return _decode_base64(text)
    if tag == STR or tag not in _RESOLVED_TAGS:
        return text
    if tag == TIMESTAMP and _is_timestamp(text):
        return text
    found, value = _resolve_plain(text)
    if found == tag:
        return value
    if tag == FLOAT and found == INT and isinstance(value, int) and value < 2**63:
        return float(value)
    raise ScalarError(
        f"yaml: cannot decode !!{found.removeprefix(_PREFIX)} `{text}` as a !!{tag.removeprefix(_PREFIX)}"
    )


def as_value(value: Scalar) -> Scalar:
    """The JSON value for a YAML value: what reading it back from the JSON text would give. Raises ScalarError."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ScalarError(f"json: unsupported value: {format_float(value)}")
    if not value.is_integer():
        return value
    # Go's JSON writes a whole float as the shortest digits filled up with zeros, and they read back as an integer.
    whole = int(Decimal(repr(value)))
    return whole if -(2**63) <= whole < 2**64 else value


def as_key(value: Scalar) -> str:
    """The JSON key for a YAML key, which may be a number or a boolean. Raises ScalarError for others."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = format_float(value, bits=32)
        return {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}.get(text, text)
    if value is None or value >= 2**63:
        raise ScalarError(f"unsupported map key of type: {'null' if value is None else 'uint64'}; put it in quotes")
    return str(value)


def needs_quotes(text: str) -> bool:
    """Whether this text, written without quotes, would be read as something else, here or by another YAML parser."""
    return (
        _resolve_plain(text)[0] != STR
        or text in ("<<", "=")
        or _BASE60.fullmatch(text) is not None
        or _LOOKS_LIKE_A_DATE.fullmatch(text) is not None
    )


def _resolve_plain(text: str) -> tuple[str, Scalar]:
    """The tag and value of a plain scalar. Its first character tells almost everything, and words are the most."""
    word = _WORDS.get(text)
    if word is not None:
        return word
    first = text[0]
    if first == ".":
        number = _parse_float(text, _POINT_FLOAT)
    elif first in "+-0123456789":
        number = _parse_number(text.replace("_", ""))
    else:
        return STR, text
    return (STR, text) if number is None else (INT if isinstance(number, int) else FLOAT, number)


def _parse_number(plain: str) -> int | float | None:
    integer = _parse_int(_INTEGER.fullmatch(plain))
    if integer is None:
        number = _parse_float(plain)
        return _parse_int(_ODD_BINARY.fullmatch(plain)) if number is None else number
    return integer


def _parse_int(match: re.Match[str] | None) -> int | None:
    """The integer if it fits into 64 bits, signed or, without a sign, unsigned."""
    if match is None:
        return None
    base = next(name for name in _BASES if match[name])
    digits = match[base].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None
    value = int(digits, _BASES[base])
    if match["sign"] == "-":
        return -value if value <= 2**63 else None
    return value if value < (2**63 if match["sign"] else 2**64) else None


def _parse_float(text: str, pattern: re.Pattern[str] = _FLOAT) -> float | None:
    if pattern.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day, *clock = (int(part) for part in match.groups() if part is not None)
    try:
        date(year, month, day)
    except ValueError:
        return False
    return all(part < limit for part, limit in zip(clock, (24, 60, 60), strict=False))


def _decode_base64(text: str) -> str:
    """The text in !!binary. Go's JSON puts U+FFFD for each byte that is not UTF-8."""
    try:
        data = base64.b64decode(re.sub("[\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        raise ScalarError("yaml: !!binary value contains invalid base64 data") from None
    return re.sub("[\udc80-\udcff]", "\ufffd", data.decode("utf-8", "surrogateescape"))
