"""/healthz, /livez and /readyz: named checks, and what Kubernetes prints of them.

Must not know HTTP beyond a code and a text, nor what a check looks at: a check is a function that returns why it fails,
or "" if it does not.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from kcp.meta.gotext import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    Check = Callable[[], str]

_log = logging.getLogger(__name__)

_CONTENT_TYPE = (b"content-type", b"text/plain; charset=utf-8")
_HEADERS = (_CONTENT_TYPE, (b"x-content-type-options", b"nosniff"))


class NamedCheck(NamedTuple):
    name: str
    check: Check


class Report(NamedTuple):
    code: int
    text: str
    headers: tuple[tuple[bytes, bytes], ...] = _HEADERS


def ping() -> str:
    """Passes whenever it is asked: whoever answers is alive."""
    return ""


class Health:
    """The three endpoints and their checks, in the order in which they are printed.

    `livez` says whether restarting would help, `readyz` whether to send requests here; `healthz` is their elder.
    """

    def __init__(self) -> None:
        self._checks: dict[str, list[NamedCheck]] = {
            endpoint: [NamedCheck("ping", ping)] for endpoint in ("healthz", "livez", "readyz")
        }

    def add(self, name: str, check: Check, *, endpoints: Collection[str] = ("healthz", "livez", "readyz")) -> None:
        for endpoint in endpoints:
            self._checks[endpoint].append(NamedCheck(name, check))

    def respond(self, path: str, query: Sequence[tuple[str, str]]) -> Report | None:
        """The answer to GET /livez, /livez/<check> and so on; None if there is no such endpoint or check."""
        endpoint, _, name = path.strip("/").partition("/")
        checks = self._checks.get(endpoint)
        if checks is None:
            return None
        if not name:
            excluded = [value for parameter, value in query if parameter == "exclude"]
            is_verbose = any(parameter == "verbose" for parameter, _ in query)
            return run_checks(endpoint, checks, excluded=excluded, is_verbose=is_verbose)
        for check in checks:
            if check.name == name:
                return run_check(check)
        return None


def run_checks(endpoint: str, checks: Sequence[NamedCheck], *, excluded: Sequence[str], is_verbose: bool) -> Report:
    """All checks but the excluded ones. The answer is public, so it never says why a check fails: the log does."""
    lines = []
    failures = []
    for name, check in checks:
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok\n")
        elif reason := check():
            lines.append(f"[-]{name} failed: reason withheld\n")
            failures.append(f"{name}: {reason}")
        else:
            lines.append(f"[+]{name} ok\n")
    unknown = sorted(set(excluded) - {name for name, _ in checks})
    if unknown:
        names = ",".join(map(quote, unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    if failures:
        _log.info("check failed endpoint=%s reasons=%s", endpoint, failures)
        return Report(500, f"{''.join(lines)}{endpoint} check failed\n")
    return Report(200, f"{''.join(lines)}{endpoint} check passed\n" if is_verbose else "ok")


def run_check(check: NamedCheck) -> Report:
    """One check, for those who may see the reason."""
    if reason := check.check():
        return Report(500, f"internal server error: {reason}\n")
    return Report(200, "ok", (_CONTENT_TYPE,))
