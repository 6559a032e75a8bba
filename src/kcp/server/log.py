"""What the server writes to standard error: one line an event, text for people or JSON for machines."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kcp.meta.clock import format_micro_time
from kcp.meta.codec import dumps

if TYPE_CHECKING:
    from typing import TextIO

FORMATS: Final = ("text", "json")
_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)


def configure_logging(verbosity: int, style: str = "text", stream: TextIO | None = None) -> None:
    """Warnings and worse; with `verbosity` 1 what happens as well, with 2 everything."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JSONFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.123456Z WARNING kcp.server.run: message key=value`; a line break in it is shown as such."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage().replace("\n", "\\n").replace("\r", "\\r")
        line = f"{_time(record)} {record.levelname:7} {record.name}: {message}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JSONFormatter(logging.Formatter):
    """An object a line: ts, level, logger, msg and, if there is one, error."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return dumps(entry).decode("utf-8", "replace")


def _time(record: logging.LogRecord) -> str:
    return format_micro_time(datetime.fromtimestamp(record.created, UTC))
