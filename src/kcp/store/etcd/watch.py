"""One watch on etcd: changes of a range of keys, in order, whole revisions only.

It ends when its connection does: to go on elsewhere is for the reader, who knows how far it came. Nothing of gRPC here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kcp.store.errors import Compacted, Unavailable
from kcp.store.etcd import messages
from kcp.store.etcd.channel import Method
from kcp.store.etcd.errors import Failure, Fate, explain

if TYPE_CHECKING:
    from collections.abc import MutableSequence, Sequence
    from types import TracebackType
    from typing import Self

    from kcp.store.etcd.channel import Stream
    from kcp.store.etcd.transport import Transport

WATCH = Method("/etcdserverpb.Watch/Watch", messages.WatchRequest, messages.WatchResponse, streams=True)


class WatchBatch(NamedTuple):
    """Changes in order. Everything in the range up to `revision` has been handed out: resume from `revision + 1`.

    No events means that nothing in the range changed while the store moved on to `revision`.
    """

    revision: int
    events: Sequence[messages.Event]


class EtcdWatch:
    """`async with client.watch(...) as watch: async for batch in watch: ...`

    Entering opens it, at whichever member answers. Iterating never ends by itself. It raises Compacted if history has
    been dropped that was not handed out yet, Unavailable if the connection broke or the member lost its leader (open
    another watch from the last batch's `revision + 1`; it will be at the next member), and Closed.

    etcd cuts an answer that is too large for one message into fragments, anywhere:

        fragment   [a@5 b@5 c@6]    handed out: [a b] at 5, c is kept because 6 may go on
        fragment   [d@6 e@7]        handed out: [c d] at 6
        the last   [f@7]            handed out: [e f] at 7
    """

    def __init__(self, transport: Transport, request: messages.WatchCreateRequest) -> None:
        self._transport = transport
        self._request = request
        self._stream: Stream[messages.WatchRequest, messages.WatchResponse] | None = None
        self._next_revision = request.start_revision
        self._kept: list[messages.Event] = []

    async def __aenter__(self) -> Self:
        request = messages.WatchRequest(create_request=self._request)
        self._stream = await self._transport.open_stream(WATCH, request, _check_created)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchBatch:
        while True:
            batch = self._take(await self._read())
            if batch is not None:
                self._next_revision = batch.revision + 1
                return batch

    async def request_progress(self) -> None:
        """Ask for a batch without events soon, to learn how far the watch has come.

        Only for etcd 3.4.25, 3.5.8 and later: before, its answer may overtake events that are still on their way.
        """
        stream = self._opened()
        try:
            await stream.write(messages.WatchRequest(progress_request=messages.WatchProgressRequest()))
        except Failure as failure:
            raise self._ended(failure) from None

    async def _read(self) -> messages.WatchResponse:
        try:
            return await self._opened().read()
        except Failure as failure:
            raise self._ended(failure) from None

    def _opened(self) -> Stream[messages.WatchRequest, messages.WatchResponse]:
        if self._stream is None:
            raise RuntimeError("a watch must be entered before it is read: async with client.watch(...) as watch")
        return self._stream

    def _take(self, response: messages.WatchResponse) -> WatchBatch | None:
        if response.canceled:
            raise self._canceled(response)
        if response.events:
            return self._whole_revisions(response.events, more=response.fragment)
        return WatchBatch(response.header.revision, ())

    def _whole_revisions(self, events: MutableSequence[messages.Event], *, more: bool) -> WatchBatch | None:
        if not more and not self._kept:
            return WatchBatch(events[-1].kv.mod_revision, events)
        self._kept.extend(events)
        end = len(self._kept)
        if more:
            last_revision = self._kept[-1].kv.mod_revision
            while end and self._kept[end - 1].kv.mod_revision == last_revision:
                end -= 1
        whole, self._kept = self._kept[:end], self._kept[end:]
        return WatchBatch(whole[-1].kv.mod_revision, whole) if whole else None

    def _canceled(self, response: messages.WatchResponse) -> Exception:
        if response.compact_revision:
            return Compacted(self._next_revision, response.compact_revision)
        return self._ended(explain("", response.cancel_reason or "the member cancelled the watch"))

    def _ended(self, failure: Failure) -> Exception:
        stream = self._opened()
        self._transport.leave(stream.channel)
        if failure.fate is Fate.FINAL:
            return failure.error
        return Unavailable(f"the watch at etcd's {stream.channel.endpoint} ended: {failure.reason}")


def _check_created(response: messages.WatchResponse) -> None:
    """etcd refuses a watch in an ordinary answer, not with a gRPC error."""
    if response.canceled:
        raise explain("", response.cancel_reason or "the watch was refused without a reason")
