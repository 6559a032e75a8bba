"""The store of a single server: the LMDB engine on this machine is the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store.limits import check_commit
from kcp.store.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

    from kcp.meta.clock import Clock
    from kcp.store.interface import Operation
    from kcp.store.keys import Revision
    from kcp.store.options import StoreOptions


class EmbeddedStore(LocalStore):
    """Open with `async with await EmbeddedStore.open(path) as store`."""

    @classmethod
    async def open(cls, path: Path, *, options: StoreOptions | None = None, clock: Clock | None = None) -> Self:
        """Raises InUse, Damaged, or NoSpace."""
        return cls(path, options, clock, durable=True, origin="")

    async def sync(self) -> Revision:
        self._check_open()
        return self.revision

    async def commit(self, operations: Sequence[Operation]) -> Revision:
        self._check_open()
        operations = tuple(operations)  # what is checked is what is written
        size = check_commit(operations)
        return await self._writer.submit(lambda group: group.commit(operations), size)
