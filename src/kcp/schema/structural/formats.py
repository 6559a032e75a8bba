"""The string formats that custom resources know, as kube-openapi's strfmt checks them.

`FORMATS` maps a name without its hyphens to its check. A format that is not there is not checked.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from kcp.schema.structural.internet import is_cidr, is_email, is_ipv4, is_ipv6, is_mac
from kcp.schema.structural.regexps import compile_pattern
from kcp.schema.structural.urls import parse_request_uri

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[str], bool]

_MAX_INT64: Final = 2**63 - 1
_MAX_DIGITS: Final = 19  # of an int64
_ISBN10_LENGTH: Final = 10
_ISBN13_LENGTH: Final = 13
_SSN_LENGTH: Final = 11
_MAX_LABEL: Final = 63
_MAX_HOSTNAME: Final = 255
_MAX_LONG_NAME: Final = 253

_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[^\n][0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SCALA_DURATION: Final = re.compile(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)")
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
# The units of Scala's durations: exact words, and words whose beginning is enough.
_SCALA_WORDS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_SCALA_PREFIXES: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")

# The part of a host name; symbols and letters of all scripts are allowed.
_SIGN: Final = r"a-zA-Z0-9\p{S}\p{L}"
_HOSTNAME: Final = (
    rf"^([{_SIGN}]((-?[{_SIGN}]{{0,62}})?)"
    rf"|([{_SIGN}](([a-zA-Z0-9-\p{{S}}\p{{L}}]{{0,61}}[{_SIGN}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
)
_SHORT_NAME: Final = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_COLOR_PART: Final = r"[\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*"
_CREDIT_CARD: Final = re.compile(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def _matcher(pattern: str) -> Check:
    fullmatch = re.compile(pattern).fullmatch
    return lambda text: fullmatch(text) is not None


def is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    try:
        date(year or 2000, month, day)  # Go has a year 0, which was a leap year as 2000 was
    except ValueError:
        return False
    return True


def is_datetime(text: str) -> bool:
    day, t, rest = text.lower().partition("t")
    if not t or not is_date(day):
        return False
    match = _TIME.fullmatch(rest.partition("t")[0])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_duration(text: str) -> bool:
    """As Go's time.ParseDuration reads it, or anything in which Scala would find a duration."""
    if _is_go_duration(text):
        return True
    found = False
    for factor, unit in _SCALA_DURATION.findall(text):
        if len(factor.lstrip("0")) > _MAX_DIGITS or int(factor[-_MAX_DIGITS:]) > _MAX_INT64:
            return False
        unit = unit.lower()
        found = found or unit in _SCALA_WORDS or unit.startswith(_SCALA_PREFIXES)
    return found


def _is_go_duration(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits == "0":
        return True
    total, position = Decimal(), 0
    while position < len(digits):
        match = _GO_DURATION.match(digits, position)
        if match is None:
            return False
        total += Decimal(match[1]) * _NANOSECONDS[match[2]]
        position = match.end()
    return position > 0 and total <= _MAX_INT64


def _is_hostname(text: str) -> bool:
    if not compile_pattern(_HOSTNAME)(text):
        return False
    raw = text.encode()
    return len(raw) <= _MAX_HOSTNAME and all(len(label) <= _MAX_LABEL for label in raw.split(b"."))


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\t\n\f\r -]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(factor * value for factor, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\t\n\f\r -]+", "", text)
    if not re.fullmatch(f"[0-9]{{{_ISBN13_LENGTH}}}", digits):
        return False
    checksum = sum((1, 3)[index % 2] * int(digit) for index, digit in enumerate(digits[:-1]))
    return int(digits[-1]) == (10 - checksum % 10) % 10


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    doubled = (int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_is_ssn_form: Final = _matcher("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}")
_is_short_name: Final = _matcher(_SHORT_NAME)
_is_long_name: Final = _matcher(rf"{_SHORT_NAME}(?:\.{_SHORT_NAME})*")

FORMATS: Final[dict[str, Check]] = {
    "bsonobjectid": _matcher("[0-9a-fA-F]{24}"),
    "uri": lambda text: parse_request_uri(text) is not None,
    "email": is_email,
    "hostname": _is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": is_mac,
    "uuid": _matcher("(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})"),
    "uuid3": _matcher("(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12})"),
    "uuid4": _matcher("(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12})"),
    "uuid5": _matcher("(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12})"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": lambda text: len(text) == _SSN_LENGTH and _is_ssn_form(text),
    "hexcolor": _matcher("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matcher(rf"rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)"),
    "byte": _matcher("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_datetime,
    "k8sshortname": lambda text: len(text) <= _MAX_LABEL and _is_short_name(text),
    "k8slongname": lambda text: len(text) <= _MAX_LONG_NAME and _is_long_name(text),
}


def find_format(name: str) -> Check | None:
    """The check of a format, however its name is hyphenated; None for one that is not known and not checked."""
    return FORMATS.get(name.replace("-", ""))
