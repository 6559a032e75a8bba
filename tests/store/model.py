"""A store so simple that it is right by inspection: the whole state is kept for every revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store import ANY, Put, Revision, Scope
from kcp.store.interface import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.store import ObjectKey, Operation

State = dict["ObjectKey", tuple[bytes, Revision]]
Change = tuple["ObjectKey", bytes | None, bytes | None, Revision]


class Model:
    """`states[r]` is everything at revision r; `changes` is everything that happened, in order."""

    def __init__(self, revision: Revision) -> None:
        self.states: dict[Revision, State] = {revision: {}}
        self.changes: list[Change] = []
        self.revision = revision
        self.compacted = revision

    @property
    def state(self) -> State:
        return self.states[self.revision]

    def failing(self, operations: Sequence[Operation]) -> ObjectKey | None:
        """The first key whose expectation does not hold."""
        for operation in operations:
            found = self.state[operation.key][1] if operation.key in self.state else 0
            if operation.expect is not ANY and operation.expect != found:
                return operation.key
        return None

    def changes_anything(self, operations: Sequence[Operation]) -> bool:
        return any(
            isinstance(operation, Put) or (not isinstance(operation, Check) and operation.key in self.state)
            for operation in operations
        )

    def commit(self, operations: Sequence[Operation], revision: Revision) -> None:
        """Apply a commit that a store accepted at `revision`."""
        state = dict(self.state)
        for operation in operations:
            old = state[operation.key][0] if operation.key in state else None
            if isinstance(operation, Put):
                state[operation.key] = (operation.value, revision)
                self.changes.append((operation.key, old, operation.value, revision))
            elif not isinstance(operation, Check) and old is not None:
                del state[operation.key]
                self.changes.append((operation.key, old, None, revision))
        self.states[revision] = state
        self.revision = revision

    def range(self, scope: Scope, revision: Revision) -> list[tuple[ObjectKey, bytes, Revision]]:
        found = [(key, *held) for key, held in self.states[revision].items() if scope.contains(key)]
        return sorted(found, key=lambda item: "/".join(item[0][1:]).encode())

    def changes_after(self, scope: Scope, revision: Revision) -> list[Change]:
        return [change for change in self.changes if change[3] > revision and scope.contains(change[0])]
