"""The contract of interface.py, on every store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kcp.meta import codec
from kcp.store import (
    ABSENT,
    Check,
    Closed,
    Compacted,
    Conflict,
    Delete,
    FutureRevision,
    InvalidCommit,
    ObjectKey,
    Put,
    ResourceKey,
    Revision,
    Scope,
    TooLarge,
    pack,
)
from kcp.store.limits import MAX_COMMIT_BYTES, MAX_COMMIT_OPERATIONS, OPERATION_OVERHEAD
from kcp.store.value import DELETING, FINALIZERS, labels_of
from tests.store.objects import (
    CONFIGMAPS,
    EVERYTHING,
    SECRETS,
    WIDGETS,
    create,
    key,
    take,
    text_of,
    texts,
    told,
    update,
    value,
)

if TYPE_CHECKING:
    from kcp.store import Store

IN_ROOT = Scope(CONFIGMAPS, "root")


def after(revision: int, steps: int) -> Revision:
    return Revision(revision + steps)


# -- commit and get -----------------------------------------------------------


async def test_what_was_committed_is_read_back_with_its_revision(store: Store) -> None:
    assert store.get(key("a")) is None
    revision = await create(store, "a", "one")
    record = store.get(key("a"))
    assert record is not None
    assert record.revision == revision == store.revision
    assert codec.loads(record.body)["metadata"] == {"resourceVersion": str(revision), "name": "n"}
    assert record.value == value("one")


async def test_header_tells_labels_owners_and_flags(store: Store) -> None:
    packed = value(
        labels={"app": "web", "tier": ""},
        ownerReferences=[{"uid": "u1"}, {"uid": "u2"}],
        deletionTimestamp="2024-01-01T00:00:00Z",
        finalizers=["example.io/keep"],
    )
    await store.commit([Put(key("a"), packed)])
    record = store.get(key("a"))
    assert record is not None
    assert record.labels == {"app": "web", "tier": ""}
    assert record.owners == ["u1", "u2"]
    assert record.flags == DELETING | FINALIZERS


async def test_a_value_without_a_splice_point_is_kept_as_it_is(store: Store) -> None:
    await store.commit([Put(key("a"), pack(b"\x00any bytes\xff", schema=7))])
    record = store.get(key("a"))
    assert record is not None
    assert (record.body, record.schema, record.labels, record.owners) == (b"\x00any bytes\xff", 7, {}, [])


async def test_create_of_an_existing_key_conflicts_and_shows_what_is_there(store: Store) -> None:
    revision = await create(store, "a", "one")
    with pytest.raises(Conflict) as conflict:
        await create(store, "a", "two")
    assert conflict.value.key == key("a")
    assert conflict.value.current == store.get(key("a"))
    assert text_of(store.get(key("a"))) == "one"
    assert store.revision == revision


async def test_an_update_needs_the_revision_it_expects(store: Store) -> None:
    first = await create(store, "a", "one")
    second = await store.commit([Put(key("a"), value("two"), expect=first)])
    assert second > first
    with pytest.raises(Conflict):
        await store.commit([Put(key("a"), value("three"), expect=first)])
    with pytest.raises(Conflict) as conflict:
        await store.commit([Put(key("missing"), value("three"), expect=first)])
    assert conflict.value.current is None
    assert text_of(store.get(key("a"))) == "two"


async def test_a_commit_of_many_keys_takes_one_revision(store: Store) -> None:
    await create(store, "b", "one")
    revision = await store.commit(
        [Put(key("a"), value("two")), Delete(key("b")), Put(key("c", cluster="other"), value("two"))]
    )
    page = store.range(Scope(CONFIGMAPS))
    assert texts(page) == {"other|default/c": "two", "root|default/a": "two"}
    assert {record.revision for record in page.records()} == {revision}


@pytest.mark.parametrize(
    "failing",
    [
        Check(key("guard"), Revision(1)),
        Check(key("missing"), Revision(1)),
        Check(key("guard"), ABSENT),
        Put(key("guard"), value(), expect=ABSENT),
        Delete(key("guard"), expect=Revision(1)),
        Delete(key("missing"), expect=Revision(1)),
    ],
    ids=["check-moved", "check-missing", "check-absent", "put-absent", "delete-moved", "delete-missing"],
)
async def test_a_commit_whose_expectation_fails_writes_nothing(store: Store, failing: Check | Put | Delete) -> None:
    await create(store, "guard")
    await update(store, "guard", "moved on")
    before = store.revision
    with pytest.raises(Conflict) as conflict:
        await store.commit([Put(key("a"), value()), failing, Delete(key("guard2"))])
    assert conflict.value.key == failing.key
    assert store.get(key("a")) is None
    assert text_of(store.get(key("guard"))) == "moved on"
    assert store.revision == before


async def test_a_check_that_holds_lets_the_commit_through(store: Store) -> None:
    guard = await create(store, "guard")
    await store.commit([Check(key("guard"), guard), Check(key("missing"), ABSENT), Put(key("a"), value())])
    assert store.get(key("a")) is not None
    assert store.get(key("guard")).revision == guard  # type: ignore[union-attr]


async def test_deleting_nothing_changes_nothing(store: Store) -> None:
    revision = await create(store, "a")
    with store.watch(EVERYTHING, revision) as watcher:
        assert await store.commit([Delete(key("missing"))]) == revision
        assert (await watcher.next(timeout=0)).events == []
    assert store.revision == revision


async def test_concurrent_writers_of_one_key_win_one_at_a_time(store: Store) -> None:
    """Twenty read-modify-write loops on one counter lose no increment."""
    await create(store, "counter", "0")

    async def increment() -> None:
        while True:
            record = store.get(key("counter"))
            assert record is not None
            try:
                await store.commit(
                    [Put(key("counter"), value(str(int(text_of(record) or "") + 1)), expect=record.revision)]
                )
            except Conflict:
                continue
            return

    await asyncio.gather(*(increment() for _ in range(20)))
    assert text_of(store.get(key("counter"))) == "20"


# -- what is refused ----------------------------------------------------------


@pytest.mark.parametrize(
    "bad_key",
    [
        key("a/b"),
        key("a", namespace="x/y"),
        key("a", cluster="x/y"),
        key(""),
        key("a", cluster=""),
        key("\ud800"),
        key("a", resource=ResourceKey("g/h", "r")),
    ],
    ids=["slash-name", "slash-namespace", "slash-cluster", "no-name", "no-cluster", "surrogate", "slash-group"],
)
async def test_a_key_that_could_be_taken_for_another_is_refused(store: Store, bad_key: ObjectKey) -> None:
    with pytest.raises(InvalidCommit):
        await store.commit([Put(bad_key, value())])
    assert store.count(EVERYTHING) == 0


async def test_malformed_commits_are_refused(store: Store) -> None:
    with pytest.raises(InvalidCommit, match="at least one"):
        await store.commit([])
    with pytest.raises(InvalidCommit, match="same key twice"):
        await store.commit([Put(key("a"), value()), Delete(key("a"))])
    with pytest.raises(InvalidCommit, match="pack"):
        await store.commit([Put(key("a"), b'{"not": "packed"}')])
    with pytest.raises(InvalidCommit, match="header"):
        await store.commit([Put(key("a"), pack(b"", labels={"app": "web"})[:-3])])
    assert store.count(EVERYTHING) == 0


async def test_what_is_too_large_is_refused_and_says_the_limit(store: Store) -> None:
    with pytest.raises(TooLarge, match=r"1\.5 MiB"):
        await store.commit([Put(key("a"), pack(b"x" * MAX_COMMIT_BYTES))])
    with pytest.raises(TooLarge, match="128"):
        await store.commit([Put(key(f"n{number}"), value()) for number in range(MAX_COMMIT_OPERATIONS + 1)])
    with pytest.raises(TooLarge, match="480 bytes"):
        await store.commit([Put(key("n" * 500), value())])
    await create(store, "a", "the store goes on")


async def test_the_largest_value_fits(store: Store) -> None:
    largest = pack(b"x" * (MAX_COMMIT_BYTES - OPERATION_OVERHEAD - 64))
    await store.commit([Put(key("a"), largest)])
    record = store.get(key("a"))
    assert record is not None
    assert record.value == largest


async def test_the_most_operations_fit(store: Store) -> None:
    revision = await store.commit([Put(key(f"n{number}"), value()) for number in range(MAX_COMMIT_OPERATIONS)])
    assert store.count(Scope(CONFIGMAPS, "root")) == MAX_COMMIT_OPERATIONS
    with store.watch(EVERYTHING, Revision(revision - 1)) as watcher:
        assert len((await watcher.next()).events) == MAX_COMMIT_OPERATIONS


# -- range and count ----------------------------------------------------------


async def fill(store: Store) -> None:
    for cluster in ("root", "root2", "a"):
        for namespace in ("default", "default-x", ""):
            await create(store, "m", cluster, cluster=cluster, namespace=namespace)
    await create(store, "m", "secret", resource=SECRETS)
    await create(store, "w", "widget", resource=WIDGETS)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(CONFIGMAPS, "root", "default"), ["root|default/m"]),
        (Scope(CONFIGMAPS, "root"), ["root|/m", "root|default-x/m", "root|default/m"]),
        (Scope(CONFIGMAPS, "root", ""), ["root|/m"]),
        (Scope(CONFIGMAPS, None, "default"), ["a|default/m", "root|default/m", "root2|default/m"]),
        (Scope(CONFIGMAPS, "roo"), []),
        (Scope(SECRETS), ["root|default/m"]),
        (Scope(ResourceKey("example.io", "widgets", "identity2")), []),
        (Scope(ResourceKey("", "never")), []),
    ],
    ids=["namespace", "cluster", "cluster-scoped", "namespace-everywhere", "prefix-name", "all", "identity", "unknown"],
)
async def test_a_range_has_its_scope_in_key_order(store: Store, scope: Scope, expected: list[str]) -> None:
    await fill(store)
    assert list(texts(store.range(scope))) == expected
    assert store.count(scope) == len(expected)


async def test_the_whole_store_is_a_range_too(store: Store) -> None:
    await fill(store)
    assert len(store.range(EVERYTHING).records()) == store.count(EVERYTHING) == 11
    with pytest.raises(ValueError, match="counts"):
        store.range(Scope(None, "root"))


async def test_counts_are_kept_per_cluster_and_resource(store: Store) -> None:
    assert store.counts("root") == {}
    await fill(store)
    assert store.counts("root") == {CONFIGMAPS: 3, SECRETS: 1, WIDGETS: 1}
    await store.commit([Delete(key("m")), Delete(key("m", namespace="")), Delete(key("w", resource=WIDGETS))])
    assert store.counts("root") == {CONFIGMAPS: 1, SECRETS: 1}
    assert store.counts("root2") == {CONFIGMAPS: 3}
    assert store.counts("nobody") == {}


async def test_bodies_are_the_json_that_goes_out(store: Store) -> None:
    revision = await create(store, "a", "one")
    (body,) = store.range(IN_ROOT).bodies()
    assert (
        body
        == b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d","name":"n"},"data":"one"}'
        % (revision)
    )


async def test_a_limited_range_goes_on_where_it_stopped(store: Store) -> None:
    for number in range(5):
        await create(store, f"n{number}")
    page = store.range(IN_ROOT, limit=2)
    assert [record.key.name for record in page.records()] == ["n0", "n1"]
    assert page.next_after is not None
    assert store.count(IN_ROOT, after=page.next_after) == 3
    page = store.range(IN_ROOT, limit=3, after=page.next_after)
    assert [record.key.name for record in page.records()] == ["n2", "n3", "n4"]
    assert page.next_after is None


async def test_a_filter_decides_what_counts_towards_the_limit(store: Store) -> None:
    for number in range(6):
        label = {"odd": str(number % 2)}
        await store.commit([Put(key(f"n{number}"), value(labels=label))])
    page = store.range(IN_ROOT, limit=2, accept=lambda stored: b"\x01odd\x021\x01" in labels_of(stored))
    assert [record.key.name for record in page.records()] == ["n1", "n3"]
    assert page.next_after == key("n3")


async def test_pages_of_an_older_revision_are_consistent_while_writes_go_on(store: Store) -> None:
    for number in range(6):
        await create(store, f"n{number}", "old")
    first = store.range(IN_ROOT, limit=3)
    await update(store, "n4", "new")
    await store.commit([Delete(key("n5")), Put(key("n45"), value("new")), Put(key("n1"), value("new"))])
    await update(store, "n4", "newer")
    second = store.range(IN_ROOT, limit=3, after=first.next_after, revision=first.revision)
    assert texts(second) == {"root|default/n3": "old", "root|default/n4": "old", "root|default/n5": "old"}
    assert second.revision == first.revision
    assert second.next_after is None
    assert list(texts(store.range(IN_ROOT)).values()) == ["old", "new", "old", "old", "newer", "new"]


async def test_an_older_range_filters_the_past_not_the_present(store: Store) -> None:
    revision = await store.commit([Put(key("a"), value(labels={"v": "1"})), Put(key("b"), value(labels={"v": "2"}))])
    await store.commit([Put(key("a"), value(labels={"v": "2"})), Put(key("b"), value(labels={"v": "1"}))])
    page = store.range(IN_ROOT, revision=revision, accept=lambda stored: b"\x01v\x021\x01" in labels_of(stored))
    assert [record.key.name for record in page.records()] == ["a"]


async def test_ranges_out_of_reach_say_so(store: Store) -> None:
    revision = await create(store, "a")
    await update(store, "a", "b")
    current = await update(store, "a", "c")
    with pytest.raises(FutureRevision):
        store.range(IN_ROOT, revision=after(current, 1))
    await store.compact(after(revision, 1))
    with pytest.raises(Compacted) as compacted:
        store.range(IN_ROOT, revision=revision)
    assert compacted.value.compacted == store.compacted == revision + 1
    assert texts(store.range(IN_ROOT, revision=after(revision, 1))) == {"root|default/a": "b"}


# -- watch --------------------------------------------------------------------


async def test_a_watch_tells_each_change_once_in_order(store: Store) -> None:
    start = await create(store, "before")
    with store.watch(IN_ROOT, start) as watcher:
        r1 = await create(store, "a", "1")
        r2 = await update(store, "a", "2")
        r3 = await store.commit([Delete(key("a"))])
        assert told(await take(watcher, 3)) == [("a", None, "1", r1), ("a", "1", "2", r2), ("a", "2", None, r3)]
        assert watcher.revision == r3


async def test_a_watch_resumes_from_any_revision(store: Store) -> None:
    start = await create(store, "before")
    revisions = [await update(store, "a", str(number)) for number in range(5)]
    for position, revision in enumerate([start, *revisions]):
        with store.watch(IN_ROOT, revision) as watcher:
            late = [event.revision for event in (await watcher.next(timeout=0)).events]
            assert late == revisions[position:]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(CONFIGMAPS, "root", "default"), ["cm"]),
        (Scope(CONFIGMAPS, "root"), ["cm", "scoped"]),
        (Scope(CONFIGMAPS), ["cm", "scoped", "elsewhere"]),
        (Scope(CONFIGMAPS, None, "default"), ["cm", "elsewhere"]),
        (Scope(None, "root"), ["cm", "secret", "scoped"]),
        (Scope(None, "root", "default"), ["cm", "secret"]),
        (Scope(None, None, "default"), ["cm", "secret", "elsewhere"]),
        (Scope(), ["cm", "secret", "scoped", "elsewhere"]),
        (Scope(WIDGETS), []),
    ],
    ids=lambda part: str(part).replace(" ", "") if isinstance(part, Scope) else "",
)
@pytest.mark.parametrize("when", ["live", "from the log"])
async def test_a_watch_has_its_scope_only(store: Store, scope: Scope, expected: list[str], when: str) -> None:
    start = await create(store, "before", cluster="other")
    watcher = store.watch(scope, start) if when == "live" else None
    await create(store, "cm")
    await create(store, "secret", resource=SECRETS)
    await create(store, "scoped", namespace="")
    await create(store, "elsewhere", cluster="other")
    watcher = watcher or store.watch(scope, start)
    with watcher:
        assert [event.key.name for event in await take(watcher, len(expected))] == expected
        assert (await watcher.next(timeout=0)).events == []


async def test_a_commit_of_many_keys_arrives_in_one_batch(store: Store) -> None:
    start = await create(store, "before")
    with store.watch(EVERYTHING, start) as watcher:
        await store.commit([Put(key(f"n{number}"), value()) for number in range(5)])
        batch = await watcher.next()
    assert [event.key.name for event in batch.events] == [f"n{number}" for number in range(5)]
    assert batch.revision == store.revision


async def test_a_filter_keeps_events_from_the_buffer(store: Store) -> None:
    start = await create(store, "before")
    with store.watch(IN_ROOT, start, accept=lambda event: event.key.name == "wanted") as watcher:
        await create(store, "unwanted")
        await create(store, "wanted")
        await create(store, "unwanted2")
        assert [event.key.name for event in await take(watcher, 1)] == ["wanted"]


async def test_a_bookmark_moves_a_quiet_watcher_on(store: Store) -> None:
    start = await create(store, "before")
    with store.watch(Scope(SECRETS), start) as watcher:
        current = await create(store, "a")
        assert await watcher.next(timeout=0) == ([], current)
        assert watcher.revision == current


async def test_a_watch_waits_for_what_comes(store: Store) -> None:
    with store.watch(IN_ROOT, store.revision) as watcher:
        waiting = asyncio.create_task(watcher.next())
        await asyncio.sleep(0)
        revision = await create(store, "a")
        assert [event.revision for event in (await waiting).events] == [revision]


async def test_a_cancelled_wait_loses_nothing(store: Store) -> None:
    with store.watch(IN_ROOT, store.revision) as watcher:
        waiting = asyncio.create_task(watcher.next())
        await asyncio.sleep(0)
        waiting.cancel()
        await create(store, "a")
        assert [event.key.name for event in await take(watcher, 1)] == ["a"]


async def test_watches_out_of_reach_say_so(store: Store) -> None:
    revision = await create(store, "a")
    current = await update(store, "a", "b")
    with pytest.raises(FutureRevision):
        store.watch(IN_ROOT, after(current, 1))
    await store.compact(current)
    with pytest.raises(Compacted):
        store.watch(IN_ROOT, revision)
    store.watch(IN_ROOT, current).close()


async def test_events_are_shared_and_encoded_once(store: Store) -> None:
    encodings: list[str] = []

    def encode(event: object) -> bytes:
        encodings.append(str(event))
        return b"frame"

    watchers = [store.watch(IN_ROOT, store.revision) for _ in range(10)]
    await create(store, "a")
    for watcher in watchers:
        (event,) = await take(watcher, 1)
        assert event.frame("json", encode) == b"frame"
        watcher.close()
    assert len(encodings) == 1


async def test_closing_a_watcher_ends_its_wait(store: Store) -> None:
    watcher = store.watch(IN_ROOT, store.revision)
    waiting = asyncio.create_task(watcher.next())
    await asyncio.sleep(0)
    watcher.close()
    with pytest.raises(Closed):
        await waiting


# -- compact, sync and close --------------------------------------------------


async def test_compaction_keeps_the_present(store: Store) -> None:
    for number in range(10):
        await update(store, f"n{number % 3}", str(number))
    present = texts(store.range(IN_ROOT))
    await store.compact(store.revision)
    assert texts(store.range(IN_ROOT)) == present
    assert store.compacted == store.revision
    await create(store, "later")


async def test_compacting_the_future_is_refused_and_the_past_is_no_change(store: Store) -> None:
    first = await create(store, "a")
    second = await update(store, "a", "b")
    with pytest.raises(FutureRevision):
        await store.compact(after(second, 1))
    await store.compact(second)
    await store.compact(first)
    assert store.compacted == second


async def test_sync_returns_what_local_reads_show(store: Store) -> None:
    revision = await create(store, "a")
    assert await store.sync() == store.revision == revision


async def test_a_closed_store_refuses_and_ends_its_watches(store: Store) -> None:
    watcher = store.watch(IN_ROOT, store.revision)
    waiting = asyncio.create_task(watcher.next())
    await asyncio.sleep(0)
    await store.aclose()
    with pytest.raises(Closed):
        await waiting
    with pytest.raises(Closed):
        store.get(key("a"))
    with pytest.raises(Closed):
        store.watch(IN_ROOT, Revision(0))
    with pytest.raises(Closed):
        await create(store, "a")
    await store.aclose()


async def test_a_commit_under_way_is_finished_by_close(store: Store) -> None:
    commits = [asyncio.create_task(create(store, f"n{number}")) for number in range(20)]
    await asyncio.sleep(0)
    await store.aclose()
    assert len({await commit for commit in commits}) == 20
