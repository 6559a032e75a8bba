"""The store of several servers: etcd decides each commit, and this machine mirrors it for reads and watches.

    commit   ──> etcd transaction ──> wait until the mirror shows its revision
    get, range, count, watch        the mirror, as in the embedded store
    sync     ──> ask etcd for its revision ──> wait until the mirror shows it
    etcd watch ──> mirror ──> hub   one stream for all keys, resumed where it broke

The mirror is an LMDB engine without fsync: whatever it loses, etcd still has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from kcp.store.errors import Closed, Compacted, Conflict, Damaged, FutureRevision, OutcomeUnknown, Unavailable
from kcp.store.etcd import mirror
from kcp.store.etcd.barrier import Barrier
from kcp.store.etcd.client import EtcdClient, make_delete, make_get, make_put, make_revision_compare
from kcp.store.etcd.identity import read_identity
from kcp.store.etcd.keys import EtcdKeys
from kcp.store.etcd.messages import EventType
from kcp.store.etcd.pipeline import Pipeline
from kcp.store.interface import ANY, Delete, Put
from kcp.store.keys import Revision
from kcp.store.limits import check_commit
from kcp.store.local import LocalStore
from kcp.store.value import Record, is_usable, stamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

    from kcp.meta.clock import Clock
    from kcp.store.etcd import messages
    from kcp.store.etcd.identity import Identity
    from kcp.store.etcd.options import EtcdOptions
    from kcp.store.etcd.watch import WatchBatch
    from kcp.store.interface import Operation
    from kcp.store.keys import ObjectKey
    from kcp.store.options import StoreOptions
    from kcp.store.transaction import Group

log = logging.getLogger(__name__)

# Seconds to wait for the watch before suspecting that the revision waited for was someone else's.
_NUDGE_AFTER = 0.05
_RECONNECT_PAUSE = 0.2
_REPAIR_PAUSE = 1.0  # before reading everything anew, which costs more than to connect


class EtcdStore(LocalStore):
    """Open with `async with await EtcdStore.open(path, etcd) as store`; `path` holds the mirror."""

    @classmethod
    async def open(
        cls,
        path: Path,
        etcd: EtcdOptions,
        *,
        prefix: str = "/kcp",
        options: StoreOptions | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Returns once the mirror shows what etcd has. Raises Unavailable, InUse or Damaged."""
        client = EtcdClient(etcd, clock)
        try:
            keys = EtcdKeys(prefix)
            identity = await read_identity(client, keys)
            if identity.is_restoring:
                raise Damaged(f"the restore into etcd below {keys.prefix} was not finished: run `kcp restore` again")
            origin = f"a mirror of etcd {identity.cluster_id:x} {keys.prefix} +{identity.base}"
            mirror.discard_if_torn(path)
            try:
                store = cls(path, options, clock, durable=False, origin=origin)
            except Damaged as error:
                if not mirror.is_mirror(path):
                    raise
                log.warning("reading etcd anew: %s", error)
                mirror.discard(path)
                store = cls(path, options, clock, durable=False, origin=origin)
        except BaseException:
            await client.aclose()
            raise
        store._connect(client, keys, identity, etcd.request_timeout)
        try:
            await store._start()
        except BaseException:
            await store.aclose()
            raise
        return store

    def _connect(self, client: EtcdClient, keys: EtcdKeys, identity: Identity, timeout: float) -> None:
        self._client = client
        self._keys = keys
        self._identity = identity
        self._base = identity.base
        self._is_ousted = False
        self._timeout = timeout
        self._waiting: dict[asyncio.Future[None], Revision] = {}
        self._barrier = Barrier(lambda: self._client.revision())
        self._nudging = asyncio.Lock()
        self._committing = 0
        self._drained = asyncio.Event()

    async def _start(self) -> None:
        mirror.mark_in_use(self._engine.env.path)
        await self._align()
        self._spawn(self._keep_following())
        self._spawn(self._barrier.run())
        await self.sync()

    async def _release(self) -> None:
        for waiter in self._waiting:
            waiter.cancel()
        try:
            mirror.mark_clean(self._engine)
        finally:
            await super()._release()
            await self._client.aclose()

    def _check_serving(self) -> None:
        self._check_open()
        self._check_not_ousted()

    def _check_not_ousted(self) -> None:
        if self._is_ousted:
            raise Unavailable(f"a backup was restored into etcd below {self._keys.prefix}: restart this server")

    # -- commits --------------------------------------------------------------

    async def commit(self, operations: Sequence[Operation]) -> Revision:
        self._check_serving()
        operations = tuple(operations)  # a conflict is explained by what was asked, whatever becomes of the list
        check_commit(operations)
        self._committing += 1
        try:
            return await self._commit(operations)
        finally:
            self._committing -= 1
            if self._closed and not self._committing:
                self._drained.set()

    async def _drain(self) -> None:
        if self._committing:
            await self._drained.wait()

    async def _commit(self, operations: Sequence[Operation]) -> Revision:
        compares = []
        success = []
        for operation in operations:
            key = self._keys.encode(operation.key)
            if operation.expect is not ANY:
                compares.append(make_revision_compare(key, self._to_etcd(operation.expect)))
            if isinstance(operation, Put):
                success.append(make_put(key, operation.value))
            elif isinstance(operation, Delete):
                success.append(make_delete(key))
        # If an expectation fails, read in the same transaction what was there instead.
        failure = [make_get(compare.key) for compare in compares]
        response = await self._client.txn(compares, success, failure)
        revision = Revision(response.header.revision + self._base)
        if not response.succeeded:
            conflict = self._conflict(operations, response)
            await self._show(conflict, revision)
            raise conflict
        if not any(_changes(result) for result in response.responses):
            await self._reach(revision, nudge=True)  # so that reads show what made it needless
            return self._hub.revision
        try:
            await self._reach(revision, nudge=False)  # its event is on its way
        except Unavailable as error:
            raise OutcomeUnknown(f"committed at revision {revision}, but not shown yet here: {error}") from error
        return revision

    async def _show(self, conflict: Conflict, revision: Revision) -> None:
        """Wait until reads show what a commit was in conflict with, so that whoever tries again sees it."""
        with contextlib.suppress(Unavailable):
            if conflict.current is not None:
                await self._reach(conflict.current.revision, nudge=False)
            else:
                await self._reach(revision, nudge=True)  # when it was deleted is not known

    def _conflict(self, operations: Sequence[Operation], response: messages.TxnResponse) -> Conflict:
        expecting = [operation for operation in operations if operation.expect is not ANY]
        for operation, result in zip(expecting, response.responses, strict=True):
            found = result.response_range.kvs
            if operation.expect != (found[0].mod_revision + self._base if found else 0):
                return Conflict(operation.key, self._record(operation.key, found[0]) if found else None)
        raise AssertionError("etcd refused a transaction whose expectations all hold")

    def _record(self, key: ObjectKey, kv: messages.KeyValue) -> Record | None:
        """None for what someone else put there, which reads do not show either."""
        return Record(key, stamp(kv.value, kv.mod_revision + self._base)) if is_usable(kv.value) else None

    def _to_etcd(self, expect: Revision) -> int:
        if expect == 0:
            return 0
        # Nothing in this etcd is as old as the base, and etcd takes 0 for "absent".
        return expect - self._base if expect > self._base else -1

    # -- freshness ------------------------------------------------------------

    async def sync(self) -> Revision:
        self._check_serving()
        try:
            async with asyncio.timeout(self._timeout):
                etcd_revision = await self._barrier.revision()
                await self._reach(Revision(etcd_revision + self._base), nudge=True)
        except TimeoutError:
            raise Unavailable(f"neither etcd's answer nor its changes have come within {self._timeout:g} s") from None
        return self.revision

    async def _reach(self, revision: Revision, *, nudge: bool) -> None:
        """Wait until the mirror shows a revision; nudge the watch if it may be waiting for nothing."""
        try:
            async with asyncio.timeout(self._timeout):
                while self._hub.revision < revision:
                    self._check_not_ousted()
                    shown = await self._shown_within(revision, _NUDGE_AFTER if nudge else None)
                    if not shown:
                        with contextlib.suppress(OutcomeUnknown):
                            await self._nudge(revision)
        except TimeoutError:
            raise Unavailable(f"etcd's changes have not arrived here for {self._timeout:g} s") from None

    async def _shown_within(self, revision: Revision, seconds: float | None) -> bool:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = revision
        try:
            done, _ = await asyncio.wait([waiter], timeout=seconds)
            if waiter.cancelled():
                raise Closed
            return bool(done)
        finally:
            del self._waiting[waiter]

    async def _nudge(self, revision: Revision) -> None:
        """Change a key of our own, so that the watch reports a revision at least as new.

        Needed when others write to the same etcd: their changes move its revision on, but our watch does not tell. Its
        progress requests would, but before etcd 3.5.8 their answers may overtake events.
        """
        async with self._nudging:
            if self._hub.revision < revision:
                await self._client.txn([], [make_put(self._keys.nudge, b"")])

    def _deliver(self, group: Group) -> None:
        super()._deliver(group)
        revision = group.revision
        for waiter, wanted in self._waiting.items():
            if wanted <= revision and not waiter.done():
                waiter.set_result(None)

    # -- following etcd -------------------------------------------------------

    async def _keep_following(self) -> None:
        is_suspect = False
        while not self._is_ousted:
            pause = _RECONNECT_PAUSE
            try:
                await self._align(anew=is_suspect)
                is_suspect = False
                if not self._is_ousted:
                    await self._follow()
            except Compacted:
                log.warning("this server was away for longer than etcd keeps its history: reading everything anew")
            except (Unavailable, OutcomeUnknown) as error:
                log.warning("the mirror of etcd is behind, trying again: %s", error)
            except Exception:
                # Whatever it was, it would be met again at the same place.
                log.exception("the mirror of etcd cannot go on from where it is: reading everything anew")
                is_suspect, pause = True, _REPAIR_PAUSE
            await self.clock.sleep(pause)

    async def _align(self, *, anew: bool = False) -> None:
        """Read everything anew unless etcd's history leads from where the mirror is to where etcd is."""
        identity = await self._identify()
        if self._is_ousted:
            return
        mirrored = self._hub.revision - self._base
        is_same = not anew and identity.cluster_id == self._identity.cluster_id
        if not (is_same and 0 < mirrored <= identity.revision and await self._is_kept(mirrored)):
            resync = mirror.Resync(self._client, self._keys, self._base, self._engine, self._writer)
            revision = await resync.run(live=mirrored > 0)
            log.info("mirrored etcd anew at revision %d", revision)
            identity = await self._identify()  # a restore may have begun before the revision that was read
        self._identity = identity

    async def _identify(self) -> Identity:
        identity = await read_identity(self._client, self._keys)
        if identity.is_restoring or identity.base != self._base:
            self._give_way()
        return identity

    async def _is_kept(self, etcd_revision: int) -> bool:
        """Whether etcd has all that happened after a revision."""
        try:
            await self._client.range(self._keys.nudge, revision=etcd_revision, count_only=True)
        except Compacted:
            return False
        return True

    async def _follow(self) -> None:
        follows = self._hub.revision
        # From the revision that is here already, and passed over: were it compacted meanwhile, etcd would say so. From
        # the next one it would not, though a delete at exactly the compacted revision is gone.
        start = follows - self._base
        # The next watch starts where the mirror is, so this one's pipeline has to end first.
        async with (
            self._client.watch(*self._keys.everything, start_revision=start) as watch,
            Pipeline(self._writer) as pipeline,
        ):
            async for batch in watch:
                if self._is_of_another(batch):
                    self._give_way()
                    return
                size = sum(len(event.kv.value) for event in batch.events)
                await pipeline.submit(partial(self._apply, batch, follows), size)
                follows = Revision(batch.revision + self._base)

    def _is_of_another(self, batch: WatchBatch) -> bool:
        """Whether a restore has begun since we looked."""
        marks = (self._keys.base, self._keys.restoring)
        return any(event.kv.key in marks and event.kv.mod_revision > self._identity.revision for event in batch.events)

    def _give_way(self) -> None:
        """Stop serving: someone restores a backup over the data of this server, and all its revisions will change."""
        self._is_ousted = True
        log.error("a backup was restored into etcd below %s: restart this server", self._keys.prefix)
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _apply(self, batch: WatchBatch, follows: Revision, group: Group) -> None:
        if group.revision != follows:
            raise Unavailable("the changes before these were not mirrored")
        for revision, events in groupby(batch.events, key=lambda event: event.kv.mod_revision):
            changes = [change for event in events if (change := self._change(event)) is not None]
            group.apply(Revision(revision + self._base), changes)
        group.advance(Revision(batch.revision + self._base))

    def _change(self, event: messages.Event) -> tuple[ObjectKey, bytes | None] | None:
        key = self._keys.decode(event.kv.key)
        if key is None:
            return None
        if event.type == EventType.DELETE:
            return key, None
        if not is_usable(event.kv.value):
            # What someone else put below our prefix must not break every server.
            log.warning("taking %s in etcd for absent: it is not a value that kcp wrote", key)
            return key, None
        return key, event.kv.value

    # -- compaction -----------------------------------------------------------

    async def compact(self, revision: Revision) -> None:
        self._check_serving()
        if revision > self.revision and revision > await self.sync():
            raise FutureRevision(revision, self.revision)
        if revision > self._base:
            # Another server may have done it, or compacted further.
            with contextlib.suppress(Compacted):
                await self._client.compact(revision - self._base)
        await super().compact(revision)


def _changes(result: messages.ResponseOp) -> bool:
    return result.HasField("response_put") or result.response_delete_range.deleted > 0
