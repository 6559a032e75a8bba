"""One question to etcd for all who ask at the same time.

asked    a  b c        d                 b and c came while a's answer was under way, which may be too old for them
rounds   [a──────][b c d──────]          so they share the next one, and its failure if it fails
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kcp.store.errors import Closed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Barrier:
    """`run` is the task that asks; `revision` waits for it."""

    def __init__(self, ask: Callable[[], Awaitable[int]]) -> None:
        self._ask = ask
        self._waiting: list[asyncio.Future[int]] = []
        self._is_asked = asyncio.Event()

    async def revision(self) -> int:
        """etcd's revision at some moment after this call began, or the error of asking for it."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._is_asked.set()
        return await answer

    async def run(self) -> None:
        """Until cancelled; whoever waits then gets Closed."""
        answers: list[asyncio.Future[int]] = []
        try:
            while True:
                await self._is_asked.wait()
                self._is_asked.clear()
                answers, self._waiting = self._waiting, []
                try:
                    revision = await self._ask()
                except Exception as error:
                    _settle(answers, error)
                else:
                    _settle(answers, revision)
        finally:
            _settle(answers + self._waiting, Closed())


def _settle(answers: list[asyncio.Future[int]], outcome: int | Exception) -> None:
    for answer in answers:
        if answer.done():  # its caller does not wait any more
            continue
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)
