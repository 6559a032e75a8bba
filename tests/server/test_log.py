"""Log lines."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

import pytest

from kcp.meta.codec import loads
from kcp.server.log import configure_logging

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level


@pytest.mark.parametrize(("verbosity", "shown"), [(0, ["warn"]), (1, ["info", "warn"]), (5, ["debug", "info", "warn"])])
def test_more_is_shown_to_those_who_ask(verbosity: int, shown: list[str]) -> None:
    stream = io.StringIO()
    configure_logging(verbosity, stream=stream)
    log = logging.getLogger("kcp.test")
    log.debug("debug")
    log.info("info")
    log.warning("warn")
    assert [line.rsplit(": ", 1)[1] for line in stream.getvalue().splitlines()] == shown


def test_a_line_of_text_cannot_be_forged() -> None:
    stream = io.StringIO()
    configure_logging(0, stream=stream)
    logging.getLogger("kcp.test").warning("user=%s", "eve\n2026-01-01 fake\r")
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("Z WARNING kcp.test: user=eve\\n2026-01-01 fake\\r")


@pytest.mark.parametrize("style", ["text", "json"])
def test_an_exception_is_shown(style: str) -> None:
    stream = io.StringIO()
    configure_logging(0, style, stream)
    try:
        raise KeyError("lost")
    except KeyError:
        logging.getLogger("kcp.test").exception("failed")
    text = stream.getvalue()
    assert "KeyError: 'lost'" in text
    if style == "json":
        entry = loads(text)
        assert (entry["level"], entry["logger"], entry["msg"]) == ("error", "kcp.test", "failed")


def test_json_has_one_object_a_line() -> None:
    stream = io.StringIO()
    configure_logging(1, "json", stream)
    logging.getLogger("kcp.test").info("a\nb")
    entry = loads(stream.getvalue())
    assert set(entry) == {"ts", "level", "logger", "msg"}
    assert entry["msg"] == "a\nb"
