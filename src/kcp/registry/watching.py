"""watch: what is there, then what changes, as one client with its selectors sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kcp import store
from kcp.registry.errors import too_large_version, translate
from kcp.registry.listing import check_options, make_selection, parse_version
from kcp.store import Event, Revision, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.registry.listing import ListOptions
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource
    from kcp.registry.selection import Selection
    from kcp.store import Record, Watcher

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Watch(NamedTuple):
    """A watch that has begun."""

    initial: list[Record]
    """Objects to announce first, as ADDED."""

    initial_end: bool
    """Whether a bookmark tells the client that the initial objects are complete."""

    revision: Revision
    watcher: Watcher
    classify: Callable[[Event], str]
    """What the client is told of an event: ADDED, MODIFIED or DELETED."""


async def start_watch(
    registry: Registry, resource: Resource, cluster: str | None, namespace: str | None, options: ListOptions
) -> Watch:
    """Raises Expired, BadRequest or Invalid. The caller closes the watcher."""
    check_options(options)
    selection = make_selection(resource, options)
    version = parse_version(options.resource_version)
    wants_initial = options.send_initial_events
    if wants_initial is None and not version:
        wants_initial = True  # as always: without a version, the present comes first
    scope = Scope(resource.key, cluster, namespace)
    if options.resource_version != "0" and (version == 0 or version > registry.store.revision):
        await registry.store.sync()
    if version > registry.store.revision:
        raise too_large_version(version, registry.store.revision)
    initial: list[Record] = []
    after = Revision(version)
    try:
        if wants_initial:
            page = registry.store.range(scope, accept=selection.accept, contains=selection.contains)
            initial, after = page.records(), page.revision
        elif not version:
            after = registry.store.revision
        watcher = registry.store.watch(scope, after, accept=_event_filter(selection))
    except store.StoreError as error:
        raise translate(error, resource.group_resource, "") from error
    end = bool(wants_initial) and options.allow_bookmarks
    return Watch(initial, end, after, watcher, _classifier(selection))


def _event_filter(selection: Selection) -> Callable[[Event], bool] | None:
    """An event concerns the client if it saw the object before or is to see it now."""
    accept = selection.accept
    if accept is None:
        return None

    def wants(event: Event) -> bool:
        old, new = event.old_stored, event.new_stored
        return (new is not None and accept(new)) or (old is not None and accept(old))

    return wants


def _classifier(selection: Selection) -> Callable[[Event], str]:
    accept = selection.accept
    if accept is None:
        return _classify_plain

    def classify(event: Event) -> str:
        """To a client with a selector, an object that begins to match is added and one that ceases to is deleted."""
        old, new = event.old_stored, event.new_stored
        if new is None or not accept(new):
            return DELETED
        return MODIFIED if old is not None and accept(old) else ADDED

    return classify


def _classify_plain(event: Event) -> str:
    if event.old_stored is None:
        return ADDED
    return DELETED if event.new_stored is None else MODIFIED
