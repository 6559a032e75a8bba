"""Ranges for what contains certain bytes: the same answer as a walk over everything, whatever was remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.store import Delete, EmbeddedStore, ObjectKey, Operation, Put, ResourceKey, Scope, pack_object
from kcp.store.matches import Matches

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

MAPS = ResourceKey("", "configmaps")
OTHERS = ResourceKey("", "secrets")
WEB = b"\x01app\x02web\x01"


def key(name: str, namespace: str = "default", cluster: str = "root", resource: ResourceKey = MAPS) -> ObjectKey:
    return ObjectKey(resource, cluster, namespace, name)


def put(name: str, app: str, namespace: str = "default", cluster: str = "root") -> Put:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": app}}
    return Put(
        key(name, namespace, cluster), pack_object({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})
    )


def names(store: EmbeddedStore, scope: Scope, *, limit: int = 0, after: ObjectKey | None = None) -> list[str]:
    page = store.range(scope, contains=WEB, limit=limit, after=after)
    return [record.key.name for record in page.records()]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedStore]:
    async with await EmbeddedStore.open(tmp_path / "store") as opened:
        yield opened


SCOPE = Scope(MAPS, "root", "default")


async def test_an_answer_follows_what_changes(store: EmbeddedStore) -> None:
    await store.commit([put("a", "web"), put("b", "db"), put("c", "web")])
    assert names(store, SCOPE) == ["a", "c"]
    await store.commit([put("b", "web")])
    await store.commit([Delete(key("a"))])
    await store.commit([put("d", "web"), put("c", "db")])
    assert names(store, SCOPE) == ["b", "d"]
    assert names(store, SCOPE) == ["b", "d"]


async def test_other_namespaces_and_clusters_are_other_answers(store: EmbeddedStore) -> None:
    await store.commit([put("a", "web"), put("b", "web", "other"), put("c", "web", cluster="team")])
    assert names(store, SCOPE) == ["a"]
    assert names(store, Scope(MAPS, "root")) == ["a", "b"]
    assert names(store, Scope(MAPS, "team")) == ["c"]
    assert names(store, Scope(MAPS)) == ["a", "b", "c"], "all clusters are walked"
    await store.commit([put("z", "web", "other")])
    assert names(store, SCOPE) == ["a"]
    assert names(store, Scope(MAPS, "root")) == ["a", "b", "z"]


async def test_pages_go_on_where_the_last_one_ended(store: EmbeddedStore) -> None:
    await store.commit([put(name, "web") for name in "abcd"])
    page = store.range(SCOPE, contains=WEB, limit=3)
    assert [record.key.name for record in page.records()] == ["a", "b", "c"]
    assert page.next_after is not None
    assert names(store, SCOPE, after=page.next_after) == ["d"]


async def test_a_compacted_history_leads_to_a_new_look(store: EmbeddedStore) -> None:
    await store.commit([put("a", "web")])
    assert names(store, SCOPE) == ["a"]
    await store.commit([put("b", "web")])
    await store.commit([put("c", "web")])
    await store.compact(store.revision)
    assert names(store, SCOPE) == ["a", "b", "c"]


async def test_too_many_changes_lead_to_a_new_look(store: EmbeddedStore) -> None:
    store._engine.matches = Matches(max_changes=2)
    await store.commit([put("a", "web")])
    assert names(store, SCOPE) == ["a"]
    await store.commit([put(name, "web") for name in "bcde"])
    assert names(store, SCOPE) == ["a", "b", "c", "d", "e"]


async def test_the_memory_is_bounded(store: EmbeddedStore) -> None:
    store._engine.matches = matches = Matches(max_keys=200)
    await store.commit([put(f"n{number:03}", "web") for number in range(120)])
    await store.commit([put(f"n{number:03}", "web", "other") for number in range(120)])
    assert len(names(store, SCOPE)) == 120
    assert len(names(store, Scope(MAPS, "root", "other"))) == 120
    assert len(matches._answers) == 1
    assert len(names(store, Scope(MAPS, "root"))) == 240, "too many to be kept"
    assert len(matches._answers) == 1
    assert len(names(store, SCOPE)) == 120


async def test_the_past_is_searched_as_it_was(store: EmbeddedStore) -> None:
    then = await store.commit([put("a", "web"), put("b", "db")])
    await store.commit([put("b", "web"), put("a", "db")])
    page = store.range(SCOPE, revision=then, accept=lambda stored: WEB in stored, contains=WEB)
    assert [record.key.name for record in page.records()] == ["a"]


APPS = st.sampled_from(["web", "db"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcdef"), APPS, st.sampled_from(["default", "other"])),
        st.tuples(st.just("delete"), st.sampled_from("abcdef"), APPS, st.sampled_from(["default", "other"])),
        st.tuples(st.just("look"), st.just(""), APPS, st.just("")),
    ),
    max_size=25,
)


@given(steps=STEPS)
@settings(max_examples=40, deadline=None)
async def test_any_history_gives_what_a_walk_gives(
    steps: list[tuple[str, str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with await EmbeddedStore.open(tmp_path_factory.mktemp("matches") / "store") as store:
        for step, name, app, namespace in [*steps, ("look", "", "", "")]:
            if step == "look":
                for scope in (SCOPE, Scope(MAPS, "root")):
                    everything = store.range(scope).records()
                    expected = [record.key for record in everything if WEB in record.stored]
                    assert [record.key for record in store.range(scope, contains=WEB).records()] == expected
                continue
            operation: Operation = put(name, app, namespace) if step == "put" else Delete(key(name, namespace))
            await store.commit([operation])
