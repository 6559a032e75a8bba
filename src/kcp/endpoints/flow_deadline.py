"""How long a request may take, by its parameter `timeout`.

Must not keep time: it reads what the client asked for.
"""

from __future__ import annotations

import re
from typing import Final

from kcp.meta.errors import BadRequest
from kcp.meta.gotext import quote

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]*\.?[0-9]*)([^0-9.]*)")
_MAX_SECONDS: Final = 2**63 / 1e9  # Go counts nanoseconds in 64 bits


def request_timeout(asked: str, maximum: float) -> float:
    """Seconds that a request may take, given its parameter `timeout` (empty: none). It can only ask for less.

    Raises BadRequest as Kubernetes' request deadline filter does.
    """
    if not asked:
        return maximum
    try:
        seconds = parse_duration(asked)
    except ValueError as error:
        raise BadRequest(f"invalid timeout specified in the request URL - {error}") from error
    return seconds if 0 < seconds < maximum else maximum


def parse_duration(text: str) -> float:
    """Seconds, from `1h2m3.5s` as Go's time.ParseDuration reads it. Raises ValueError with Go's words."""
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    invalid = ValueError(f"time: invalid duration {quote(text)}")
    total = 0.0
    if not rest:
        raise invalid
    while rest:
        part = _PART.match(rest)
        number, unit = part.groups() if part else ("", "")
        if number in ("", "."):
            raise invalid
        if not unit:
            raise ValueError(f"time: missing unit in duration {quote(text)}")
        if unit not in _SECONDS:
            raise ValueError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
        total += float(number) * _SECONDS[unit]
        rest = rest[len(number) + len(unit) :]
    if total > _MAX_SECONDS:
        raise invalid
    return sign * total
