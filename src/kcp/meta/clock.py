"""Time as Kubernetes writes it, and the Clock that everything else asks for it.

Must not know what a timestamp belongs to. Outside this module nobody calls `datetime.now` or `asyncio.sleep`, so that
tests own the time (see `kcp.meta.fake_clock`).
"""

import asyncio
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from kcp.meta import gotime

# The shape nearly every client sends. Whatever it does not match takes the slow road through `gotime`, which
# accepts the odd spellings that Go's parser accepts and words the error as Go does.
_USUAL: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


class Clock(Protocol):
    """The only source of time. `kcp.meta.fake_clock.FakeClock` stands in for it in tests."""

    def now(self) -> datetime:
        """The wall-clock time, aware and in UTC. It may jump; use it for what is written down."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back. Use it to measure how long something took."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let others run for this long. Zero or less gives them one turn."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))


def format_time(moment: datetime) -> str:
    """`2006-01-02T15:04:05Z`, as metav1.Time: fractions of a second are dropped, not rounded."""
    return _in_utc(moment).isoformat(timespec="seconds")[:19] + "Z"


def format_micro_time(moment: datetime) -> str:
    """`2006-01-02T15:04:05.000000Z`, as metav1.MicroTime."""
    return _in_utc(moment).isoformat(timespec="microseconds")[:26] + "Z"


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time as metav1.Time does; the result is in UTC, with what is under a microsecond dropped.

    Raises ValueError with the message of Go's `time.Parse`.
    """
    return _parse(text, gotime.RFC3339)


def parse_micro_time(text: str) -> datetime:
    """Read a time as metav1.MicroTime does: like `parse_time`, but exactly six digits of fraction must be there."""
    return _parse(text, gotime.RFC3339_MICRO)


def _parse(text: str, layout: str) -> datetime:
    if layout == gotime.RFC3339 and _USUAL.fullmatch(text) is not None:
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            pass  # a day that the month does not have, or a year past the calendar: the slow road says which
    fields = gotime.parse(text, layout)
    try:
        return datetime(*fields.date_and_clock, fields.microsecond, tzinfo=UTC) - timedelta(
            minutes=fields.offset_minutes
        )
    except (ValueError, OverflowError):
        # Go knows the year 0 and times past 9999-12-31T23:59:59Z; Python's calendar does not.
        raise ValueError(f"parsing time {gotime.quote(text)}: year out of range") from None


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise ValueError("a time without a zone is ambiguous: pass an aware datetime, such as Clock.now() returns")
    return moment.astimezone(UTC)
