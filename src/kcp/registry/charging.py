"""Writing how much of a quota is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.meta import codec
from kcp.meta.gvk import GroupResource
from kcp.registry.errors import translate
from kcp.store import Conflict, ObjectKey, Put, ResourceKey, StoreError, pack_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.store import Store

QUOTAS = ResourceKey("", "resourcequotas")
_RESOURCE = GroupResource("", "resourcequotas")


class QuotaCharger:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def charge(
        self, cluster: str, namespace: str, name: str, used: Mapping[str, str], expected_resource_version: str
    ) -> bool:
        """Set a quota's `status.used`, unless it is no longer at that resource version: then False."""
        key = ObjectKey(QUOTAS, cluster, namespace, name)
        record = self._store.get(key)
        if record is None or str(record.revision) != expected_resource_version:
            return False
        quota = codec.loads(record.body)
        quota["status"] = {**(quota.get("status") or {}), "used": dict(used)}
        try:
            await self._store.commit([Put(key, pack_object(quota), record.revision)])
        except Conflict:
            return False
        except StoreError as error:
            raise translate(error, _RESOURCE, name) from error
        return True
