"""Requests to whichever member of an etcd cluster answers: failover, retries within a time limit, log-in.

It must not know what requests mean, beyond whether they write. The rule it exists for: a write is sent again only if it
certainly was not carried out. A channel is connected before anything is handed to it, so what fails earlier has surely
not been written; what fails later has a `Fate` (see `errors.py`), and for a write an unknown fate is OutcomeUnknown.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kcp.meta.clock import SystemClock
from kcp.store.errors import Closed, OutcomeUnknown, Unavailable
from kcp.store.etcd import messages
from kcp.store.etcd.channel import Channel, Credentials, Method
from kcp.store.etcd.errors import Failure, Fate
from kcp.store.etcd.options import parse_endpoints

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kcp.meta.clock import Clock
    from kcp.store.etcd.channel import Metadata, RequestT, ResponseT, Stream
    from kcp.store.etcd.options import EtcdOptions

T = TypeVar("T")

# Asks a member to refuse at once while it has no leader, and to end a stream some seconds after it lost its leader.
_NEEDS_LEADER = (("hasleader", "true"),)

AUTHENTICATE = Method("/etcdserverpb.Auth/Authenticate", messages.AuthenticateRequest, messages.AuthenticateResponse)


class Transport:
    """The members of one cluster. To be made, used and closed in one event loop."""

    def __init__(self, options: EtcdOptions, clock: Clock | None = None) -> None:
        credentials = Credentials(options)
        self.options = options
        self.channels = tuple(Channel(endpoint, options, credentials) for endpoint in parse_endpoints(options))
        self._clock = clock or SystemClock()
        self._current = 0
        self._token = ""
        self._log_in_once = asyncio.Lock()
        self._closed = False

    async def call(
        self, method: Method[RequestT, ResponseT], request: RequestT, *, needs_leader: bool = True
    ) -> ResponseT:
        """Send a request and return its answer, from whichever member gives one within the request timeout.

        Raises Unavailable if no member does, OutcomeUnknown if a write may or may not have been carried out, Closed, or
        what `errors.py` makes of a refusal.
        """
        attempt = partial(self._call_once, method, request, needs_leader=needs_leader)
        return await self._with_failover(attempt, writes=method.writes)

    async def call_at(self, channel: Channel, method: Method[RequestT, ResponseT], request: RequestT) -> ResponseT:
        """Send a request that reads to this member only, once."""
        deadline = self._clock.monotonic() + self.options.request_timeout
        try:
            return await self._call_once(method, request, channel, deadline, needs_leader=False)
        except Failure as failure:
            raise Unavailable(f"etcd at {channel.endpoint} did not answer: {failure.reason}") from None

    async def open_stream(
        self, method: Method[RequestT, ResponseT], request: RequestT, check: Callable[[ResponseT], None]
    ) -> Stream[RequestT, ResponseT]:
        """Open a stream with a first request, at the first member whose answer passes `check` (no Failure)."""
        return await self._with_failover(partial(self._open_once, method, request, check=check), writes=False)

    async def aclose(self) -> None:
        """Close all connections. Whatever is under way raises Closed, or OutcomeUnknown if it writes."""
        self._closed = True
        for channel in self.channels:
            await channel.aclose()

    def leave(self, channel: Channel) -> None:
        """Go on with the next member, unless another request has moved on from this one already."""
        if channel is self.channels[self._current]:
            self._current = (self._current + 1) % len(self.channels)

    async def _with_failover(self, attempt: Callable[[Channel, float], Awaitable[T]], *, writes: bool) -> T:
        deadline = self._clock.monotonic() + self.options.request_timeout
        tries = 0
        logged_in_again = False
        while not self._closed:
            channel, token = self.channels[self._current], self._token
            try:
                return await attempt(channel, self._attempt_deadline(deadline, writes=writes))
            except Failure as caught:
                failure = caught
            if failure.fate is Fate.LOG_IN and token and not logged_in_again:
                logged_in_again = True
                self._forget_token(token)
                continue
            if failure.fate in (Fate.FINAL, Fate.LOG_IN) or (failure.fate is Fate.UNREADABLE and not writes):
                raise failure.error
            self.leave(channel)
            if writes and failure.fate is not Fate.NOT_DONE:
                raise OutcomeUnknown(f"etcd at {channel.endpoint} may or may not have written: {failure.reason}")
            await self._back_off(tries, deadline, f"{channel.endpoint}: {failure.reason}")
            tries += 1
        raise Closed

    def _attempt_deadline(self, deadline: float, *, writes: bool) -> float:
        if writes or len(self.channels) == 1:
            return deadline
        # A read that hangs at one member leaves time to ask another.
        now = self._clock.monotonic()
        return now + (deadline - now) / 2

    async def _back_off(self, tries: int, deadline: float, last: str) -> None:
        rounds = min(tries // len(self.channels), 16)
        delay = min(self.options.backoff_min * 2**rounds, self.options.backoff_max) * random.uniform(0.5, 1)
        if self._clock.monotonic() + delay >= deadline:
            endpoints = ", ".join(str(channel.endpoint) for channel in self.channels)
            raise Unavailable(
                f"etcd did not answer within {self.options.request_timeout:g} s at {endpoints}; last was {last}"
            )
        await self._clock.sleep(delay)

    async def _call_once(
        self,
        method: Method[RequestT, ResponseT],
        request: RequestT,
        channel: Channel,
        deadline: float,
        *,
        needs_leader: bool,
    ) -> ResponseT:
        metadata = await self._prepare(channel, deadline, needs_leader=needs_leader)
        return await channel.send(method, request, timeout=self._remaining(deadline), metadata=metadata)

    async def _open_once(
        self,
        method: Method[RequestT, ResponseT],
        request: RequestT,
        channel: Channel,
        deadline: float,
        *,
        check: Callable[[ResponseT], None],
    ) -> Stream[RequestT, ResponseT]:
        metadata = await self._prepare(channel, deadline, needs_leader=True)
        stream = channel.open(method, metadata)
        try:
            async with asyncio.timeout(self._remaining(deadline)):
                await stream.write(request)
                check(await stream.read())
        except BaseException as error:
            stream.close()
            if isinstance(error, TimeoutError):
                raise Failure(Fate.UNKNOWN, "no answer to the opening of a stream") from None
            raise
        return stream

    async def _prepare(self, channel: Channel, deadline: float, *, needs_leader: bool) -> Metadata:
        """Make sure that there is a connection and a token; a failure here means that the request was not sent."""
        await channel.connect(min(self._remaining(deadline), self.options.connect_timeout))
        if self.options.username and not self._token:
            await self._log_in(channel, deadline)
        metadata = _NEEDS_LEADER if needs_leader else ()
        return (*metadata, ("token", self._token)) if self._token else metadata

    async def _log_in(self, channel: Channel, deadline: float) -> None:
        # Held across I/O on purpose: of many requests that find no token, one logs in and the others wait for it.
        async with self._log_in_once:
            if self._token:
                return
            request = messages.AuthenticateRequest(name=self.options.username, password=self.options.password)
            try:
                response = await channel.send(AUTHENTICATE, request, timeout=self._remaining(deadline))
            except Failure as failure:
                if failure.fate is not Fate.UNKNOWN:
                    raise
                raise Failure(Fate.NOT_DONE, f"no log-in: {failure.reason}") from None
            self._token = response.token

    def _forget_token(self, token: str) -> None:
        if self._token == token:
            self._token = ""

    def _remaining(self, deadline: float) -> float:
        return max(deadline - self._clock.monotonic(), 0.001)
