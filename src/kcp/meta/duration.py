"""Ages as kubectl prints them.

Must not parse durations or read a clock.
"""

from datetime import timedelta
from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

# (used below this many seconds, unit, its suffix, the smaller unit shown behind it, its suffix): two or three
# significant figures at every size, as apimachinery/pkg/util/duration does.
_STEPS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def human_duration(age: timedelta) -> str:
    """`5s`, `3m20s`, `5h`, `2d4h`, `3y21d`; `<invalid>` for a time that lies two seconds or more ahead of us."""
    seconds = int(age.total_seconds())
    if seconds < -1:
        return "<invalid>"
    # Clocks of two machines may differ by a second: that is "now", not an error.
    seconds = max(seconds, 0)
    for limit, unit, suffix, small_unit, small_suffix in _STEPS:
        if seconds < limit:
            rest = seconds % unit // small_unit if small_unit else 0
            return f"{seconds // unit}{suffix}" + (f"{rest}{small_suffix}" if rest else "")
    return f"{seconds // _YEAR}y"
