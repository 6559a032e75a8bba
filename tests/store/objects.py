"""Small objects for store tests, and short ways to read answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcp.meta import codec
from kcp.store import ABSENT, ObjectKey, Put, ResourceKey, Revision, Scope, pack_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.store import Event, Page, Record, Store, Watcher

CONFIGMAPS = ResourceKey("", "configmaps")
SECRETS = ResourceKey("", "secrets")
WIDGETS = ResourceKey("example.io", "widgets", "identity1")

EVERYTHING = Scope()


def key(name: str, namespace: str = "default", cluster: str = "root", resource: ResourceKey = CONFIGMAPS) -> ObjectKey:
    return ObjectKey(resource, cluster, namespace, name)


def value(text: str = "x", **metadata: Any) -> bytes:  # noqa: ANN401 - metadata is any JSON
    return pack_object({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "n", **metadata}, "data": text})


def text_of(record: Record | None) -> str | None:
    return None if record is None else codec.loads(record.body)["data"]


def texts(page: Page) -> dict[str, str]:
    """`cluster|namespace/name` to the text stored there, in the page's order."""
    return {str(record.key).split(" ", 1)[1]: text_of(record) or "" for record in page.records()}


def told(events: Iterable[Event]) -> list[tuple[str, str | None, str | None, int]]:
    """Events as (name, old text, new text, revision)."""
    return [(event.key.name, text_of(event.old), text_of(event.new), event.revision) for event in events]


async def create(store: Store, name: str, text: str = "x", **place: Any) -> Revision:  # noqa: ANN401
    return await store.commit([Put(key(name, **place), value(text), expect=ABSENT)])


async def update(store: Store, name: str, text: str, **place: Any) -> Revision:  # noqa: ANN401
    return await store.commit([Put(key(name, **place), value(text))])


async def take(watcher: Watcher, count: int) -> list[Event]:
    """The next `count` events, from as many batches as they come in."""
    events: list[Event] = []
    while len(events) < count:
        batch = await watcher.next()
        events.extend(batch.events)
    assert len(events) == count, events
    return events
