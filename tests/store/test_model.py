"""Random histories on every store, compared with the model: every get, range, count and watch, at every revision."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcp.store import (
    ABSENT,
    ANY,
    Check,
    Compacted,
    Conflict,
    Delete,
    EmbeddedStore,
    ObjectKey,
    Put,
    Revision,
    Scope,
    StoreOptions,
)
from kcp.store.check import find_problems
from kcp.store.etcd.options import EtcdOptions
from kcp.store.etcd.store import EtcdStore
from tests.store.model import Model
from tests.store.objects import CONFIGMAPS, SECRETS, value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kcp.store import Operation, Store
    from tests.store.etcd.etcd_server import EtcdServer

KEYS = [
    ObjectKey(resource, cluster, namespace, name)
    for resource in (CONFIGMAPS, SECRETS)
    for cluster, namespace, name in [
        ("root", "default", "a"),
        ("root", "default-2", "a"),
        ("root", "", "z"),
        ("root2", "default", "a"),
    ]
]
SCOPES = [
    Scope(CONFIGMAPS, "root", "default"),
    Scope(CONFIGMAPS, "root"),
    Scope(CONFIGMAPS),
    Scope(CONFIGMAPS, None, "default"),
    Scope(SECRETS, "root2"),
]

# Small, so that a few dozen commits reach every limit.
OPTIONS = StoreOptions(compact_step=3, catch_up_events=2, watch_buffer_events=2, group_jobs=4)


class Draft(NamedTuple):
    """An operation before it is known what is in the store."""

    verb: str
    key: ObjectKey
    expect: str
    size: int

    def make(self, model: Model) -> Operation:
        current = model.state[self.key][1] if self.key in model.state else ABSENT
        expect = {"any": ANY, "absent": ABSENT, "current": current, "stale": Revision(current + 1)}[self.expect]
        if self.verb == "put":
            return Put(self.key, value("x" * self.size, labels={"size": str(self.size)}), expect)
        if self.verb == "delete":
            return Delete(self.key, expect)
        return Check(self.key, current if expect is ANY else expect)


drafts = st.builds(
    Draft,
    verb=st.sampled_from(["put", "put", "put", "delete", "check"]),
    key=st.sampled_from(KEYS),
    expect=st.sampled_from(["any", "any", "current", "current", "absent", "stale"]),
    size=st.sampled_from([0, 1, 100, 5000]),
)
commits = st.lists(drafts, min_size=1, max_size=3, unique_by=lambda draft: draft.key)
compactions = st.integers(min_value=0, max_value=5)
histories = st.lists(st.one_of(*[commits] * 7, compactions), min_size=3, max_size=30)

Open = "Callable[[Path], Awaitable[Store]]"


@pytest.fixture(params=["embedded", "etcd"])
def opener(request: pytest.FixtureRequest) -> Callable[[Path], Awaitable[Store]]:
    if request.param == "embedded":
        return lambda path: EmbeddedStore.open(path, options=OPTIONS)
    server: EtcdServer = request.getfixturevalue("store_etcd")
    etcd = EtcdOptions((server.endpoint,))
    return lambda path: EtcdStore.open(path, etcd, prefix=f"/model/{uuid.uuid4().hex}", options=OPTIONS)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories)
def test_every_answer_is_the_models(
    opener: Callable[[Path], Awaitable[Store]], history: list[list[Draft] | int]
) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            store = await opener(Path(directory) / "store")
            try:
                await follow(store, history)
                assert list(find_problems(store._engine)) == []  # type: ignore[attr-defined]
            finally:
                await store.aclose()

    asyncio.run(run())


async def follow(store: Store, history: list[list[Draft] | int]) -> None:
    model = Model(store.revision)
    live = [(scope, model.revision, store.watch(scope, model.revision)) for scope in (*SCOPES, Scope())]
    for step in history:
        if isinstance(step, int):
            known = sorted(revision for revision in model.states if revision >= model.compacted)
            model.compacted = known[min(step, len(known) - 1)]
            await store.compact(model.compacted)
        else:
            await commit_both(store, model, [draft.make(model) for draft in step])
    for revision in model.states:
        compare_ranges(store, model, revision)
        await compare_watches(store, model, revision)
    compare_counts(store, model)
    for scope, start, watcher in live:
        if start >= model.compacted or len(model.changes_after(scope, start)) <= OPTIONS.watch_buffer_events:
            assert await drain(watcher) == model.changes_after(scope, start)
        watcher.close()


async def commit_both(store: Store, model: Model, operations: Sequence[Operation]) -> None:
    failing = model.failing(operations)
    if failing is not None:
        with pytest.raises(Conflict) as conflict:
            await store.commit(operations)
        assert conflict.value.key == failing
        held = model.state.get(failing)
        current = conflict.value.current
        assert (current and (current.value, current.revision)) == held
        return
    revision = await store.commit(operations)
    if model.changes_anything(operations):
        assert revision > model.revision
        model.commit(operations, revision)
    for operation in operations:
        record = store.get(operation.key)
        assert (record and (record.value, record.revision)) == model.state.get(operation.key)


def compare_ranges(store: Store, model: Model, revision: Revision) -> None:
    for scope in SCOPES:
        if revision < model.compacted:
            with pytest.raises(Compacted):
                store.range(scope, revision=revision)
            continue
        expected = model.range(scope, revision)
        page = store.range(scope, revision=revision)
        assert [(record.key, record.value, record.revision) for record in page.records()] == expected
        paged: list[ObjectKey] = []
        after = None
        while True:
            page = store.range(scope, revision=revision, limit=1, after=after)
            paged.extend(record.key for record in page.records())
            after = page.next_after
            if after is None:
                break
        assert paged == [key for key, _, _ in expected]


async def compare_watches(store: Store, model: Model, revision: Revision) -> None:
    for scope in (*SCOPES, Scope()):
        if revision < model.compacted:
            with pytest.raises(Compacted):
                store.watch(scope, revision)
            continue
        with store.watch(scope, revision) as watcher:
            assert await drain(watcher) == model.changes_after(scope, revision)
            assert watcher.revision == store.revision


def compare_counts(store: Store, model: Model) -> None:
    for scope in SCOPES:
        assert store.count(scope) == len(model.range(scope, model.revision))
    for cluster in ("root", "root2"):
        held = [key.resource for key in model.state if key.cluster == cluster]
        assert store.counts(cluster) == {resource: held.count(resource) for resource in set(held)}


async def drain(watcher: object) -> list[tuple[ObjectKey, bytes | None, bytes | None, Revision]]:
    """All events that are there, as the model tells them; each batch must hold whole revisions."""
    told: list[tuple[ObjectKey, bytes | None, bytes | None, Revision]] = []
    while True:
        batch = await watcher.next(timeout=0)  # type: ignore[attr-defined]
        if not batch.events:
            return told
        assert not told or told[-1][3] < batch.events[0].revision
        for event in batch.events:
            told.append((event.key, event.old and event.old.value, event.new and event.new.value, event.revision))
