"""Several commits in one group: each sees those before it, and a failed one leaves no trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.store import ABSENT, Check, Conflict, Delete, Put, Revision, Scope
from kcp.store.check import find_problems
from kcp.store.engine import Engine
from kcp.store.transaction import Group
from tests.store.objects import CONFIGMAPS, EVERYTHING, SECRETS, WIDGETS, key, texts, told, value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

A = key("a")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "store") as engine:
        yield engine


def write(engine: Engine, work: Callable[[Group], None], time_ms: int = 0) -> Group:
    with engine.env.write() as txn:
        group = Group(engine, txn, time_ms)
        work(group)
        group.flush()
    return group


def test_a_commit_sees_the_ones_before_it_in_its_group(engine: Engine) -> None:
    def work(group: Group) -> None:
        assert group.commit([Put(A, value("1"), expect=ABSENT)]) == 1
        with pytest.raises(Conflict):
            group.commit([Put(A, value("x"), expect=ABSENT)])
        assert group.commit([Put(A, value("2"), expect=Revision(1))]) == 2
        assert group.commit([Delete(A, expect=Revision(2))]) == 3
        with pytest.raises(Conflict) as conflict:
            group.commit([Check(A, Revision(2))])
        assert conflict.value.current is None
        assert group.commit([Delete(A)]) == 3
        assert group.commit([Put(A, value("4"), expect=ABSENT)]) == 4

    group = write(engine, work)
    expected = [("a", None, "1", 1), ("a", "1", "2", 2), ("a", "2", None, 3), ("a", None, "4", 4)]
    assert told(group.events) == expected
    with engine.view() as view:
        assert texts(view.range(EVERYTHING)) == {"root|default/a": "4"}
        events, reached = view.changes(Scope(CONFIGMAPS, "root"), Revision(0), 100)
        assert (told(events), reached) == (expected, 4)
        assert view.counts("root") == {CONFIGMAPS: 1}
        for revision, text in [(0, None), (1, "1"), (2, "2"), (3, None)]:
            assert texts(view.range(EVERYTHING, revision=Revision(revision))).get("root|default/a") == text
    assert list(find_problems(engine)) == []


def test_a_group_in_which_everything_fails_changes_nothing(engine: Engine) -> None:
    def work(group: Group) -> None:
        with pytest.raises(Conflict):
            group.commit([Put(key("b"), value()), Check(A, Revision(7))])

    assert write(engine, work).events == []
    with engine.view() as view:
        assert view.revision == 0
        assert view.object_count() == 0


def test_resources_are_numbered_once(engine: Engine) -> None:
    places = [key("x", resource=resource) for resource in (CONFIGMAPS, SECRETS, WIDGETS)]
    write(engine, lambda group: [group.commit([Put(place, value())]) for place in places])  # type: ignore[arg-type]
    write(engine, lambda group: group.commit([Put(places[1], value("again"))]))  # type: ignore[arg-type]
    with engine.view() as view:
        assert len({view.number_of(place.resource) for place in places}) == 3
        assert [record.key.resource for record in view.range(EVERYTHING).records()] == [CONFIGMAPS, SECRETS, WIDGETS]


def test_applying_what_is_already_here_changes_nothing(engine: Engine) -> None:
    """A mirror's watch may repeat after a reconnect."""
    write(engine, lambda group: group.apply(Revision(5), [(A, value("5")), (key("b"), None)]))
    repeated = write(engine, lambda group: group.apply(Revision(5), [(A, value("x"))]))
    assert repeated.events == []
    applied = write(engine, lambda group: group.apply(Revision(9), [(A, None), (key("c"), value("9"))]))
    assert told(applied.events) == [("a", "5", None, 9), ("c", None, "9", 9)]
    write(engine, lambda group: group.advance(Revision(12)))
    with engine.view() as view:
        assert view.revision == 12
        assert texts(view.range(EVERYTHING)) == {"root|default/c": "9"}
    assert list(find_problems(engine)) == []


def test_the_log_can_be_searched_by_time(engine: Engine) -> None:
    for revision, time_ms in [(2, 1000), (3, 2000), (7, 3000), (8, 3000)]:
        write(engine, lambda group, at=revision: group.apply(Revision(at), [(A, value())]), time_ms)  # type: ignore[misc]
    with engine.view() as view:
        found = [view.revision_before(time_ms) for time_ms in (500, 1000, 1001, 2001, 3000, 3001, 9999)]
    assert found == [0, 0, 2, 3, 3, 8, 8]


def test_a_revision_without_changes_is_kept_too(engine: Engine) -> None:
    """A mirror must not ask again for what it has been told."""
    assert write(engine, lambda group: group.apply(Revision(5), [])).is_changed
    assert write(engine, lambda group: group.advance(Revision(7))).is_changed
    assert not write(engine, lambda group: group.advance(Revision(7))).is_changed
    with engine.view() as view:
        assert view.revision == 7
