"""What is worked out once per logical cluster is kept within bounds and dropped on change."""

from __future__ import annotations

from kcp.admission.configuration import Configurations


def test_values_are_kept_until_a_resource_of_theirs_changes() -> None:
    made: list[str] = []

    def make(cluster: str) -> int:
        made.append(cluster)
        return len(made)

    configurations = Configurations([("g", "things")], make)
    assert [configurations.get("a"), configurations.get("a"), configurations.get("b")] == [1, 1, 2]
    configurations.forget("a", "g", "others")
    assert configurations.get("a") == 1
    configurations.forget("a", "g", "things")
    configurations.forget("unknown", "g", "things")
    assert (configurations.get("a"), made) == (3, ["a", "b", "a"])


def test_the_least_used_are_dropped() -> None:
    made: list[str] = []
    configurations = Configurations([], made.append, limit=2)
    for cluster in ("a", "b", "a", "c", "a", "b"):
        configurations.get(cluster)
    assert made == ["a", "b", "c", "b"]
