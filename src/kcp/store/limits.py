"""What a commit may be, alike in both stores, so that what works on a laptop works on etcd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.store.errors import InvalidCommit, TooLarge
from kcp.store.interface import Operation, Put
from kcp.store.keys import encode_tail
from kcp.store.value import check_value

if TYPE_CHECKING:
    from collections.abc import Sequence

# etcd's defaults for --max-request-bytes and --max-txn-ops.
MAX_COMMIT_BYTES = 1536 * 1024
MAX_COMMIT_OPERATIONS = 128

# What one operation adds to an etcd request beside its tail and value: the key again in a compare and in the read that
# explains a conflict, the key's prefix and resource in all three, protobuf's framing. A generous bound keeps the
# embedded store from taking what etcd would refuse.
OPERATION_OVERHEAD = 4096


def check_commit(operations: Sequence[Operation]) -> int:
    """The size of a commit in bytes. Raises InvalidCommit for one that no state of any store could take."""
    if not operations:
        raise InvalidCommit("a commit needs at least one operation")
    if len(operations) > MAX_COMMIT_OPERATIONS:
        raise TooLarge(f"a commit of {len(operations)} operations is too large: the limit is {MAX_COMMIT_OPERATIONS}")
    if len(operations) > 1 and len({operation.key for operation in operations}) < len(operations):
        raise InvalidCommit("a commit names the same key twice")
    size = OPERATION_OVERHEAD * len(operations)
    for operation in operations:
        size += len(encode_tail(operation.key))
        if isinstance(operation, Put):
            check_value(operation.value)
            size += len(operation.value)
    if size > MAX_COMMIT_BYTES:
        raise TooLarge(
            f"a commit of {size} bytes is too large: the limit is {MAX_COMMIT_BYTES} bytes (1.5 MiB, as in etcd)"
        )
    return size
