"""Ranges in the past: continued from page to page, bounded, and never from another history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.store import Compacted, Put, Revision, Scope
from kcp.store.engine import Engine
from kcp.store.past import Past
from kcp.store.transaction import Group
from tests.store.objects import CONFIGMAPS, SECRETS, key, texts, value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IN_ROOT = Scope(CONFIGMAPS, "root")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "store") as engine:
        yield engine


def put(engine: Engine, *names: str, **place: str) -> None:
    """One commit for each name."""
    with engine.env.write() as txn:
        group = Group(engine, txn, 0)
        for name in names:
            group.commit([Put(key(name, **place), value(name))])  # type: ignore[arg-type]
        group.flush()


def changed(engine: Engine, past: Past, scope: Scope = IN_ROOT, revision: int = 0) -> set[str]:
    with engine.view() as view:
        return {view.key_of(found).name for found in past.changed_since(view, scope, Revision(revision))}


def test_a_walk_goes_on_where_it_stopped(engine: Engine) -> None:
    past = Past(most_steps=3)
    for number in range(10):
        put(engine, f"a{number}", f"b{number}", f"c{number}")
        assert len(changed(engine, past)) == 3 * number + 3
    with pytest.raises(Compacted):
        changed(engine, Past(most_steps=3))


def test_a_walk_that_would_take_too_long_is_refused(engine: Engine) -> None:
    put(engine, *"abcde")
    assert changed(engine, Past(most_steps=5)) == set("abcde")
    with pytest.raises(Compacted):
        changed(engine, Past(most_steps=4))


def test_others_changes_do_not_count_within_a_cluster(engine: Engine) -> None:
    past = Past(most_steps=2)
    put(engine, *"abcdefgh", cluster="noisy")
    put(engine, "x")
    assert changed(engine, past) == {"x"}


def test_all_clusters_of_a_resource_leave_out_other_resources(engine: Engine) -> None:
    put(engine, "a", cluster="one")
    with engine.env.write() as txn:
        group = Group(engine, txn, 0)
        group.commit([Put(key("s", resource=SECRETS), value())])
        group.flush()
    assert changed(engine, Past(), Scope(CONFIGMAPS)) == {"a"}
    assert changed(engine, Past(), Scope()) == {"a", "s"}


def test_the_least_recently_used_walks_are_forgotten(engine: Engine) -> None:
    past = Past(most_keys=10, most_steps=100)
    for revision in range(20):
        put(engine, f"n{revision:02}")
        changed(engine, past, revision=revision)
        changed(engine, past, revision=0)
    kept = sum(len(walk.changed) for walk in past._walks.values())
    assert kept <= 10


def test_a_page_reads_what_was_there_then(engine: Engine) -> None:
    put(engine, *"abcd")
    put(engine, *"bd", "e")
    with engine.view() as view:
        page = view.range(IN_ROOT, revision=Revision(4), limit=3)
        rest = view.range(IN_ROOT, revision=Revision(4), after=page.next_after)
        assert [*texts(page), *texts(rest)] == [f"root|default/{name}" for name in "abcd"]
        assert {record.revision for record in rest.records()} == {4}


def test_namespaces_over_all_clusters_whatever_the_resources_number(engine: Engine) -> None:
    """Numbers may hold the byte that separates a key's parts, such as 47."""
    resources = [CONFIGMAPS._replace(resource=f"r{number}") for number in range(60)]
    with engine.env.write() as txn:
        group = Group(engine, txn, 0)
        for resource in resources:
            group.commit([Put(key("a", namespace="ns", cluster="c", resource=resource), value())])
            group.commit([Put(key("a", namespace="other", cluster="ns", resource=resource), value())])
        group.flush()
    with engine.view() as view:
        for resource in resources:
            assert list(texts(view.range(Scope(resource, None, "ns")))) == ["c|ns/a"]
            assert view.count(Scope(resource, None, "ns")) == 1


def test_asking_again_gets_further(engine: Engine) -> None:
    put(engine, *"abcdefg")
    past = Past(most_steps=3)
    for _ in range(2):
        with pytest.raises(Compacted):
            changed(engine, past)
    assert changed(engine, past) == set("abcdefg")
