"""watch: what is there, then what changes, seen through selectors."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcp.meta import codec, errors, labels
from kcp.meta.fake_clock import FakeClock
from kcp.registry.watching import ADDED, DELETED, MODIFIED
from kcp.store import Delete, EmbeddedStore, ObjectKey, Put, ResourceKey, Revision, pack_object
from tests.registry.verbs import CLUSTER, CONFIGMAPS, OTHER, Verbs

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.registry.watching import Watch
    from kcp.store import Store

KEY = ResourceKey("", "configmaps")


async def put(store: Store, name: str, cluster: str = CLUSTER, namespace: str = "default", **labels: str) -> None:
    metadata = {"name": name, "namespace": namespace, "labels": labels, "uid": f"{cluster}-{name}"}
    await store.commit([Put(ObjectKey(KEY, cluster, namespace, name), pack_object({"metadata": metadata}))])


async def remove(store: Store, name: str, cluster: str = CLUSTER, namespace: str = "default") -> None:
    await store.commit([Delete(ObjectKey(KEY, cluster, namespace, name))])


async def events_of(watch: Watch) -> list[tuple[str, str]]:
    """What a client is told, up to now."""
    found: list[tuple[str, str]] = []
    with watch.watcher as watcher:
        while batch := await watcher.next(timeout=0):
            if not batch.events:
                return found
            found += [(watch.classify(event), event.key.name) for event in batch.events]
    raise AssertionError("unreachable")


def initial_of(watch: Watch) -> list[str]:
    return [record.key.name for record in watch.initial]


# -- where a watch begins -----------------------------------------------------


@pytest.mark.parametrize("sent", ["", "0"], ids=["now", "any"])
async def test_without_a_version_the_present_comes_first(verbs: Verbs, sent: str) -> None:
    await put(verbs.store, "a")
    watch = await verbs.watch(CONFIGMAPS, resource_version=sent)
    await put(verbs.store, "b")
    assert (initial_of(watch), watch.initial_end) == (["a"], False)
    assert await events_of(watch) == [(ADDED, "b")]


async def test_with_a_version_only_what_came_after_it(verbs: Verbs) -> None:
    await put(verbs.store, "a")
    version = str(verbs.store.revision)
    await put(verbs.store, "b")
    await remove(verbs.store, "a")
    watch = await verbs.watch(CONFIGMAPS, resource_version=version)
    assert initial_of(watch) == []
    assert await events_of(watch) == [(ADDED, "b"), (DELETED, "a")]


INITIAL: Object = {"send_initial_events": True, "resource_version_match": "NotOlderThan"}


@pytest.mark.parametrize("sent", ["", "0", "1"])
async def test_the_initial_objects_may_be_asked_for(verbs: Verbs, sent: str) -> None:
    await put(verbs.store, "a")
    watch = await verbs.watch(CONFIGMAPS, resource_version=sent, allow_bookmarks=True, **INITIAL)
    with watch.watcher:
        assert (initial_of(watch), watch.initial_end, watch.revision) == (["a"], True, verbs.store.revision)
    watch = await verbs.watch(CONFIGMAPS, resource_version=sent, **INITIAL)
    with watch.watcher:
        assert not watch.initial_end, "who takes no bookmarks is not told"


@pytest.mark.parametrize("sent", ["", "0"])
async def test_the_initial_objects_may_be_declined(verbs: Verbs, sent: str) -> None:
    await put(verbs.store, "a")
    options: Object = {"send_initial_events": False, "resource_version_match": "NotOlderThan"}
    watch = await verbs.watch(CONFIGMAPS, resource_version=sent, allow_bookmarks=True, **options)
    await put(verbs.store, "b")
    assert (initial_of(watch), watch.initial_end) == ([], False)
    assert await events_of(watch) == [(ADDED, "b")]


async def test_a_forgotten_version_has_expired(verbs: Verbs) -> None:
    for name in "abc":
        await put(verbs.store, name)
    await verbs.store.compact(verbs.store.revision)
    with pytest.raises(errors.Expired, match=r"too old resource version: 1 \(4\)"):
        await verbs.watch(CONFIGMAPS, resource_version="1")


async def test_a_version_to_come_is_a_timeout(verbs: Verbs) -> None:
    with pytest.raises(errors.Timeout, match="Too large resource version: 99, current: 1"):
        await verbs.watch(CONFIGMAPS, resource_version="99")


async def test_what_another_server_wrote_is_waited_for(verbs: Verbs) -> None:
    async def sync() -> Revision:
        await put(verbs.store, "theirs")
        return verbs.store.revision

    cast("Any", verbs.racing).sync = sync
    watch = await verbs.watch(CONFIGMAPS)
    with watch.watcher:
        assert initial_of(watch) == ["theirs"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"resource_version": "x"}, errors.BadRequest),
        ({"label_selector": "a=("}, errors.BadRequest),
        ({"resource_version_match": "Exact"}, errors.Invalid),
    ],
    ids=["version", "selector", "match"],
)
async def test_options_are_checked(verbs: Verbs, options: Object, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        await verbs.watch(CONFIGMAPS, **options)


# -- what it shows ------------------------------------------------------------


async def test_a_watch_stays_in_its_scope(verbs: Verbs) -> None:
    watches = [
        await verbs.watch(CONFIGMAPS, "default"),
        await verbs.watch(CONFIGMAPS, None),
        await verbs.watch(CONFIGMAPS, None, None),
        await verbs.watch(CONFIGMAPS, None, "root"),
    ]
    await put(verbs.store, "here")
    await put(verbs.store, "beside", namespace="default-2")
    await put(verbs.store, "elsewhere", cluster=OTHER)
    seen = [[name for _, name in await events_of(watch)] for watch in watches]
    assert seen == [["here"], ["here", "beside"], ["here", "beside", "elsewhere"], []]


async def test_an_object_comes_and_goes_with_what_the_selector_sees(verbs: Verbs) -> None:
    watch = await verbs.watch(CONFIGMAPS, label_selector="on=yes")
    await put(verbs.store, "a", on="no")
    await put(verbs.store, "a", on="yes")
    await put(verbs.store, "a", on="yes", more="x")
    await put(verbs.store, "a", on="no")
    await put(verbs.store, "a", on="yes")
    await remove(verbs.store, "a")
    await put(verbs.store, "a", on="no")
    await remove(verbs.store, "a")
    assert [kind for kind, _ in await events_of(watch)] == [ADDED, MODIFIED, DELETED, ADDED, DELETED]


async def test_field_selectors_count_as_well(verbs: Verbs) -> None:
    watch = await verbs.watch(CONFIGMAPS, field_selector="metadata.name=a")
    for name in "ab":
        await put(verbs.store, name)
        await put(verbs.store, name, x="y")
    assert await events_of(watch) == [(ADDED, "a"), (MODIFIED, "a")]


# -- replaying ----------------------------------------------------------------

WRITES = st.tuples(
    st.sampled_from(["put", "put", "delete"]),
    st.sampled_from([CLUSTER, OTHER]),
    st.sampled_from("abc"),
    st.sampled_from(["yes", "no", ""]),
)
SELECTORS = ["", "on=yes", "on!=yes", "on", "!on", "on in (yes,no)"]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    before=st.lists(WRITES, max_size=8),
    after=st.lists(WRITES, max_size=16),
    selector=st.sampled_from(SELECTORS),
    wildcard=st.booleans(),
    initial=st.booleans(),
)
def test_a_list_and_the_events_after_it_are_the_state(
    before: list[tuple[str, str, str, str]],
    after: list[tuple[str, str, str, str]],
    selector: str,
    wildcard: bool,
    initial: bool,
) -> None:
    asyncio.run(check_replay(before, after, selector, None if wildcard else CLUSTER, initial=initial))


async def write(store: Store, change: tuple[str, str, str, str]) -> None:
    verb, cluster, name, on = change
    if verb == "put":
        await put(store, name, cluster, **({"on": on} if on else {}))
    else:
        await remove(store, name, cluster)


async def check_replay(
    before: list[tuple[str, str, str, str]],
    after: list[tuple[str, str, str, str]],
    selector: str,
    cluster: str | None,
    *,
    initial: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with await EmbeddedStore.open(Path(folder) / "store") as store:
            verbs = Verbs(store, FakeClock())
            await put(store, "zero", "elsewhere")  # so that there is a revision to name
            for change in before:
                await write(store, change)
            options: Object = {"label_selector": selector}
            listed = await verbs.list(CONFIGMAPS, None, cluster, **options)
            state = {record.key: record.body for record in listed.page.records()}
            if initial:
                watch = await verbs.watch(CONFIGMAPS, None, cluster, **options)
                assert {record.key: record.body for record in watch.initial} == state
            else:
                watch = await verbs.watch(CONFIGMAPS, None, cluster, resource_version=str(listed.revision), **options)
            for change in after:
                await write(store, change)
            await replay(watch, state)
            then = await verbs.list(CONFIGMAPS, None, cluster, **options)
            assert state == {record.key: record.body for record in then.page.records()}
            wanted = labels.parse(selector)
            assert all(wanted.matches(codec.loads(body)["metadata"].get("labels", {})) for body in state.values())


async def replay(watch: Watch, state: dict[ObjectKey, bytes]) -> None:
    with watch.watcher as watcher:
        while (batch := await watcher.next(timeout=0)).events:
            for event in batch.events:
                kind = watch.classify(event)
                assert (event.key in state) is (kind != ADDED), "added once, then modified or deleted"
                if kind == DELETED:
                    del state[event.key]
                else:
                    assert event.new is not None
                    state[event.key] = event.new.body
