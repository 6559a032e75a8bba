"""Changes on their way into the mirror: many at once, within bounds, and none after one that failed.

They do not wait for each other, so that those which arrive while the writer is busy share its next transaction. They
are bounded, so that a flood stays in etcd and not in our memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from kcp.store.transaction import Group
    from kcp.store.writer import Writer

_MAX_JOBS = 256
_MAX_BYTES = 32 << 20


class Pipeline:
    """`async with Pipeline(writer) as pipeline:` ends when all that was submitted is settled.

    A job that fails ends the body at once, wherever it waits, and its error is raised.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._jobs: deque[tuple[asyncio.Future[None], int]] = deque()
        self._bytes = 0
        self._failure: BaseException | None = None
        self._is_open = False
        # Never runs out by itself. A timeout can be told to end now, and keeps that apart from being cancelled.
        self._scope = asyncio.timeout(None)

    async def submit(self, run: Callable[[Group], None], size: int) -> None:
        """Hand a job to the writer, then wait until what is under way is within bounds."""
        job = self._writer.submit(run, size)
        job.add_done_callback(self._notice)
        self._jobs.append((job, size))
        self._bytes += size
        while self._jobs and (self._jobs[0][0].done() or len(self._jobs) > _MAX_JOBS or self._bytes > _MAX_BYTES):
            oldest, size = self._jobs[0]
            await asyncio.wait([oldest])  # which leaves it alone if we are cancelled
            oldest.result()
            self._jobs.popleft()
            self._bytes -= size

    def _notice(self, job: asyncio.Future[None]) -> None:
        error = job.exception()
        if error is not None and self._failure is None:
            self._failure = error
            if self._is_open:
                self._scope.reschedule(asyncio.get_running_loop().time())

    async def __aenter__(self) -> Self:
        await self._scope.__aenter__()
        self._is_open = True
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._is_open = False
        try:
            await self._scope.__aexit__(exc_type, exc, tb)
        except TimeoutError:
            assert self._failure is not None
            raise self._failure from None
        finally:
            if self._jobs:
                await asyncio.wait([job for job, _ in self._jobs])
        if exc is None and self._failure is not None:
            raise self._failure
