"""How Go's `time.Parse` reads RFC 3339, down to its lenience and its error messages.

Must not be used directly: `kcp.meta.clock` is the door, this is its slow road for unusual or wrong input.
"""

from typing import Final, NamedTuple, NoReturn

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"

_DAYS_IN_MONTH: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Fields(NamedTuple):
    """What the text said, before a calendar looks at it."""

    date_and_clock: tuple[int, int, int, int, int, int]
    microsecond: int
    offset_minutes: int


def parse(text: str, layout: str) -> Fields:
    """Read `text` in one of the two layouts of this module; raise ValueError worded as Go's `time.ParseError`."""
    cursor = _Cursor(text, layout)
    year = cursor.year()
    cursor.skip("-")
    month = cursor.number("01", fixed=True, minimum=1, maximum=12, name="month")
    cursor.skip("-")
    day = cursor.number("02", fixed=True)
    cursor.skip("T")
    hour = cursor.number("15", fixed=False, maximum=23, name="hour")
    cursor.skip(":")
    minute = cursor.number("04", fixed=True, maximum=59, name="minute")
    cursor.skip(":")
    second = cursor.number("05", fixed=True, maximum=59, name="second")
    microsecond = cursor.optional_fraction() if layout == RFC3339 else cursor.six_digit_fraction()
    offset_minutes = cursor.zone()
    if cursor.rest:
        cursor.refuse(f"extra text: {_quote_bytes(cursor.rest)}")
    if not 1 <= day <= _days_in(month, year):
        cursor.refuse("day out of range")
    return Fields((year, month, day, hour, minute, second), microsecond, offset_minutes)


def quote(text: str) -> str:
    """Go's quoting inside time errors: simpler than %q, and by bytes."""
    return _quote_bytes(_as_bytes(text))


class _Cursor:
    """The part of the text that is not read yet. One character here is one byte, as in Go."""

    def __init__(self, text: str, layout: str) -> None:
        self.rest = _as_bytes(text)
        self._text = self.rest
        self._layout = layout

    def year(self) -> int:
        if not _is_digits(self.rest[:4], 4):
            self._fail(self.rest, "2006")
        return int(self._take(4))

    def skip(self, separator: str) -> None:
        if not self.rest.startswith(separator):
            self._fail(self.rest, separator)
        self._take(1)

    def number(self, element: str, *, fixed: bool, minimum: int = 0, maximum: int = 99, name: str = "") -> int:
        """One or two digits (two if `fixed`); `element` is its place in the layout, `name` its word in errors."""
        width = 2 if _is_digits(self.rest[:2], 2) else 1
        if not _is_digits(self.rest[:width], width) or (fixed and width == 1):
            self._fail(self.rest, element)
        value = int(self._take(width))
        if not minimum <= value <= maximum:
            self.refuse(f"{name} out of range")
        return value

    def optional_fraction(self) -> int:
        """A fraction is welcome after the seconds even where the layout has none; a comma does as well."""
        if self.rest[:1] not in (".", ",") or not _is_digits(self.rest[1:2], 1):
            return 0
        width = 2
        while _is_digits(self.rest[width : width + 1], 1):
            width += 1
        return int(self._take(width)[1:7].ljust(6, "0"))

    def six_digit_fraction(self) -> int:
        digits = self.rest[1:7]
        # Go reads these six with an integer parser that knows signs.
        unsigned = digits[1:] if digits[:1] in ("+", "-") else digits
        if self.rest[:1] not in (".", ",") or len(digits) < 6 or not _is_digits(unsigned, len(unsigned)):
            self._fail(self.rest, ".000000")
        self._take(7)
        if int(digits) < 0:
            self.refuse("fractional second out of range")
        # A sign takes the place of a digit and Go scales by width, so +12345 still means 0.012345 seconds.
        return int(digits)

    def zone(self) -> int:
        """Minutes east of UTC. Go lets 24 hours and 60 minutes pass, as some people write them."""
        hold = self.rest
        if hold.startswith("Z"):
            self._take(1)
            return 0
        if len(hold) < 6 or hold[3] != ":":
            self._fail(hold, "Z07:00")
        sign, hour, minute = hold[0], hold[1:3], hold[4:6]
        self._take(6)
        if _is_digits(hour, 2) and int(hour) > 24:
            self.refuse("time zone offset hour out of range")
        if _is_digits(hour, 2) and _is_digits(minute, 2) and int(minute) > 60:
            self.refuse("time zone offset minute out of range")
        if not _is_digits(hour, 2) or not _is_digits(minute, 2) or sign not in "+-":
            self._fail(hold, "Z07:00")
        total = int(hour) * 60 + int(minute)
        return -total if sign == "-" else total

    def refuse(self, why: str, as_layout: str = "") -> NoReturn:
        raise ValueError(f"parsing time {_quote_bytes(self._text)}{as_layout}: {why}")

    def _fail(self, found: str, element: str) -> NoReturn:
        self.refuse(f"cannot parse {_quote_bytes(found)} as {_quote_bytes(element)}", f' as "{self._layout}"')

    def _take(self, width: int) -> str:
        taken, self.rest = self.rest[:width], self.rest[width:]
        return taken


def _as_bytes(text: str) -> str:
    """The text with one character per byte of its UTF-8, because Go cuts and quotes by bytes."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _quote_bytes(text: str) -> str:
    def quoted(char: str) -> str:
        if char < " " or char >= "\x80":
            return f"\\x{ord(char):02x}"
        return "\\" + char if char in '"\\' else char

    return '"' + "".join(map(quoted, text)) + '"'


def _is_digits(text: str, width: int) -> bool:
    return len(text) == width and text.isascii() and text.isdigit()


def _days_in(month: int, year: int) -> int:
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _DAYS_IN_MONTH[month - 1] + leap
