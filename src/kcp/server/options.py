"""What `kcp start` can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcp.store import StoreOptions

if TYPE_CHECKING:
    from pathlib import Path

    from kcp.store.etcd.options import EtcdOptions


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """One server."""

    root_directory: Path
    """Where everything is kept that must survive a restart."""

    etcd: EtcdOptions | None = None
    """The etcd that several servers share. None: this server keeps its own data."""

    etcd_prefix: str = "/kcp"
    """What the names of this installation's keys in etcd begin with."""

    store: StoreOptions = field(default_factory=StoreOptions)
    """How the store is tuned."""

    @property
    def store_directory(self) -> Path:
        """The embedded store, or the mirror of etcd: they never share a directory."""
        return self.root_directory / ("etcd-mirror" if self.etcd else "store")
