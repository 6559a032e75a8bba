"""Revisioned keys and bytes: the store interface, its LMDB engine, the embedded and the etcd store, the watch hub.

The room knows metadata that every object has (labels, owners, the resource version), never what a kind is, and
nothing of HTTP. `interface.py` is the contract; read it first.
"""

from kcp.store.embedded import EmbeddedStore
from kcp.store.errors import (
    Closed,
    Compacted,
    Conflict,
    Damaged,
    FutureRevision,
    InUse,
    InvalidCommit,
    NoSpace,
    OutcomeUnknown,
    StoreError,
    TooLarge,
    Unavailable,
)
from kcp.store.events import Batch, Event
from kcp.store.interface import ABSENT, ANY, Check, Delete, Operation, Page, Put, Store, Watcher
from kcp.store.keys import ObjectKey, ResourceKey, Revision, Scope
from kcp.store.options import StoreOptions
from kcp.store.value import Record, pack, pack_object

__all__ = [
    "ABSENT",
    "ANY",
    "Batch",
    "Check",
    "Closed",
    "Compacted",
    "Conflict",
    "Damaged",
    "Delete",
    "EmbeddedStore",
    "Event",
    "FutureRevision",
    "InUse",
    "InvalidCommit",
    "NoSpace",
    "ObjectKey",
    "Operation",
    "OutcomeUnknown",
    "Page",
    "Put",
    "Record",
    "ResourceKey",
    "Revision",
    "Scope",
    "Store",
    "StoreError",
    "StoreOptions",
    "TooLarge",
    "Unavailable",
    "Watcher",
    "pack",
    "pack_object",
]
