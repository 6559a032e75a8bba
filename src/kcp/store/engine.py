"""The LMDB engine: one database directory, its identity and its numbered resources.

One process writes, through one thread; reads are for any thread of any process and never wait. `view.py` reads,
`transaction.py` writes; the engine has no event loop, no watchers and no policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store import layout
from kcp.store.environment import Environment
from kcp.store.errors import Damaged, InvalidCommit
from kcp.store.keys import ResourceKey, Revision
from kcp.store.matches import Matches
from kcp.store.past import Past
from kcp.store.view import View

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from kcp.store.environment import Transaction

# Tenants may define resources without end, so the table of numbers is looked up and only its busiest part kept.
_REMEMBERED_RESOURCES = 65_536


class Engine:
    """A revisioned key-value database in one directory."""

    def __init__(
        self, path: Path, *, map_bytes: int = 1 << 40, durable: bool = True, readonly: bool = False, origin: str = ""
    ) -> None:
        """`origin` says what the store is a copy of, and is empty for the truth itself; a mismatch is refused."""
        self.numbers: dict[ResourceKey, bytes] = {}
        self._resources: dict[bytes, ResourceKey] = {}
        self.past = Past()
        self.matches = Matches()

        def begin(env: Environment, txn: Transaction) -> None:
            txn.put(layout.META_FORMAT, layout.FORMAT, db=env.meta)
            txn.put(layout.META_ORIGIN, origin.encode(), db=env.meta)

        self.env = Environment(path, None if readonly else begin, map_bytes=map_bytes, durable=durable)
        try:
            self._check_format(None if readonly else origin)
        except BaseException:
            self.env.close()
            raise

    def _check_format(self, origin: str | None) -> None:
        path = self.env.path
        with self.env.read() as txn:
            form = txn.get(layout.META_FORMAT, db=self.env.meta)
            found = txn.get(layout.META_ORIGIN, b"", db=self.env.meta).decode(errors="replace")
        if form != layout.FORMAT:
            raise Damaged(f"{path} has store format {form!r}; this version of kcp reads {layout.FORMAT!r}")
        if origin is not None and found != origin:
            raise Damaged(f"{path} is {found or 'an embedded store'}, not {origin or 'an embedded store'}")

    def view(self) -> View:
        """The store as it is now."""
        return View(self)

    def close(self) -> None:
        self.env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    # -- the present moment, inside a transaction -----------------------------

    def revision_in(self, txn: Transaction) -> Revision:
        return Revision(layout.unpack_u64(txn.get(layout.META_REVISION, db=self.env.meta)))

    def compacted_in(self, txn: Transaction) -> Revision:
        return Revision(layout.unpack_u64(txn.get(layout.META_COMPACTED, db=self.env.meta)))

    # -- resources and their numbers ------------------------------------------

    def number_in(self, txn: Transaction, resource: ResourceKey) -> bytes | None:
        """The resource's number, None if nothing of it was ever stored."""
        number = self.numbers.get(resource)
        if number is None:
            try:
                name = layout.pack_resource_name(resource)
            except InvalidCommit:
                return None
            number = txn.get(name, db=self.env.resources)
            if number is not None:
                self.remember(resource, number)
        return number

    def resource_in(self, txn: Transaction, number: bytes) -> ResourceKey:
        resource = self._resources.get(number)
        if resource is None:
            name = txn.get(number, db=self.env.resources)
            if name is None:
                raise Damaged(f"{self.env.path} has no resource with the number {number.hex()}")
            resource = layout.unpack_resource_name(name)
            self.remember(resource, number)
        return resource

    def remember(self, resource: ResourceKey, number: bytes) -> None:
        if len(self.numbers) >= _REMEMBERED_RESOURCES:
            self.numbers.clear()
            self._resources.clear()
        self.numbers[resource] = number
        self._resources[number] = resource
