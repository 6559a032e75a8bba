"""The calls of etcd's v3 API that the etcd store is made of: range, txn, compact, watch, status and members.

Keys, values and revisions are etcd's own here: how objects become keys is for the store to say. Errors are those of
`store/errors.py`; retries and the choice of a member are in `transport.py`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kcp.store.errors import Compacted, FutureRevision, Unavailable
from kcp.store.etcd import messages
from kcp.store.etcd.channel import STATUS, Method
from kcp.store.etcd.messages import Compare, CompareTarget, RequestOp
from kcp.store.etcd.transport import Transport
from kcp.store.etcd.watch import EtcdWatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from kcp.meta.clock import Clock
    from kcp.store.etcd.channel import Channel
    from kcp.store.etcd.options import EtcdOptions

RANGE = Method("/etcdserverpb.KV/Range", messages.RangeRequest, messages.RangeResponse)
TXN = Method("/etcdserverpb.KV/Txn", messages.TxnRequest, messages.TxnResponse, writes=True)
COMPACT = Method("/etcdserverpb.KV/Compact", messages.CompactionRequest, messages.CompactionResponse, writes=True)
MEMBER_LIST = Method("/etcdserverpb.Cluster/MemberList", messages.MemberListRequest, messages.MemberListResponse)


class EtcdClient:
    """A client of one etcd cluster. To be made, used and closed in one event loop; connects when first asked.

    Every call but `watch` returns or raises within `options.request_timeout`. Each may raise Unavailable (no member
    answered; nothing was written) and Closed. Cancelling a call that writes does not take the write back.
    """

    def __init__(self, options: EtcdOptions, clock: Clock | None = None) -> None:
        """Raises ValueError if a certificate file cannot be read."""
        self._transport = Transport(options, clock)

    async def range(
        self,
        key: bytes,
        range_end: bytes = b"",
        *,
        limit: int = 0,
        revision: int = 0,
        keys_only: bool = False,
        count_only: bool = False,
        serializable: bool = False,
    ) -> messages.RangeResponse:
        """The keys in [key, range_end), or `key` alone, in order; at most `limit`, as of `revision` (0 is now).

        A serializable read is answered by any one member from what it has, leader or no leader; all others see every
        write acknowledged before they began. Raises Compacted (`compacted` is only a lower bound, as etcd does not tell
        more) and FutureRevision.
        """
        request = messages.RangeRequest(
            key=key,
            range_end=range_end,
            limit=limit,
            revision=revision,
            keys_only=keys_only,
            count_only=count_only,
            serializable=serializable,
        )
        try:
            return await self._transport.call(RANGE, request, needs_leader=not serializable)
        except Compacted:
            raise Compacted(revision, revision + 1) from None
        except FutureRevision:
            raise FutureRevision(revision, await self.revision()) from None

    async def revision(self) -> int:
        """The newest revision of the whole cluster."""
        # The key does not matter, only that the read goes through the leader.
        return (await self.range(b"\0", count_only=True)).header.revision

    async def txn(
        self, compares: Sequence[Compare], success: Sequence[RequestOp], failure: Sequence[RequestOp] = ()
    ) -> messages.TxnResponse:
        """Do `success` if all compares hold, else `failure`: all of it at one revision, or nothing.

        Raises OutcomeUnknown when the connection broke, or time ran out, after the request was sent, and InvalidCommit
        (a key twice, an empty key), TooLarge or NoSpace when etcd refused it.
        """
        request = messages.TxnRequest(compare=list(compares), success=list(success), failure=list(failure))
        return await self._transport.call(TXN, request)

    async def compact(self, revision: int, *, physical: bool = False) -> None:
        """Forget all history before `revision`; with `physical`, return only when the space is free for reuse.

        Raises Compacted if that was done before, FutureRevision and OutcomeUnknown.
        """
        request = messages.CompactionRequest(revision=revision, physical=physical)
        try:
            await self._transport.call(COMPACT, request)
        except Compacted:
            raise Compacted(revision, revision) from None
        except FutureRevision:
            raise FutureRevision(revision, await self.revision()) from None

    def watch(self, key: bytes, range_end: bytes = b"", *, start_revision: int, prev_kv: bool = False) -> EtcdWatch:
        """Every change in [key, range_end) from `start_revision` on; see EtcdWatch. 0 starts with the next change."""
        request = messages.WatchCreateRequest(
            key=key,
            range_end=range_end,
            start_revision=start_revision,
            prev_kv=prev_kv,
            progress_notify=True,
            fragment=True,
        )
        return EtcdWatch(self._transport, request)

    async def status(self) -> dict[str, messages.StatusResponse | Unavailable]:
        """What each endpoint says of itself, or why it does not."""
        channels = self._transport.channels
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._status_of(channel)) for channel in channels]
        return {str(channel.endpoint): task.result() for channel, task in zip(channels, tasks, strict=True)}

    async def _status_of(self, channel: Channel) -> messages.StatusResponse | Unavailable:
        try:
            return await self._transport.call_at(channel, STATUS, messages.StatusRequest())
        except Unavailable as error:
            return error

    async def members(self) -> list[messages.Member]:
        """The members of the cluster, whichever of them are up."""
        request = messages.MemberListRequest(linearizable=False)
        return list((await self._transport.call(MEMBER_LIST, request, needs_leader=False)).members)

    async def aclose(self) -> None:
        """Close the connections. Calls and watches under way raise Closed, writes OutcomeUnknown."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()


def make_put(key: bytes, value: bytes) -> RequestOp:
    """Create or replace `key`."""
    return RequestOp(request_put=messages.PutRequest(key=key, value=value))


def make_delete(key: bytes, range_end: bytes = b"") -> RequestOp:
    """Remove [key, range_end), or `key` alone; it is no error if nothing is there."""
    return RequestOp(request_delete_range=messages.DeleteRangeRequest(key=key, range_end=range_end))


def make_get(key: bytes, range_end: bytes = b"") -> RequestOp:
    """Read [key, range_end), or `key` alone, inside a transaction."""
    return RequestOp(request_range=messages.RangeRequest(key=key, range_end=range_end))


def make_revision_compare(key: bytes, mod_revision: int) -> Compare:
    """Holds if `key` was last changed at `mod_revision`; 0 means that it does not exist."""
    return Compare(key=key, target=CompareTarget.MOD, mod_revision=mod_revision)


def make_empty_compare(key: bytes, range_end: bytes) -> Compare:
    """Holds if there is nothing in [key, range_end)."""
    return Compare(key=key, range_end=range_end, target=CompareTarget.MOD, mod_revision=0)
