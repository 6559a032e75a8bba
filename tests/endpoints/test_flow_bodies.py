"""Large bodies share a bounded number of bytes."""

from __future__ import annotations

import pytest

from kcp.endpoints.flow_bodies import BodyBudget
from kcp.endpoints.request import MAX_BODY_BYTES
from kcp.meta.errors import TooManyRequests

BIG = str(MAX_BODY_BYTES).encode()


def test_one_cluster_cannot_use_all_of_it() -> None:
    budget = BodyBudget(total=8 * MAX_BODY_BYTES)
    with budget.reserve("noisy", BIG), budget.reserve("noisy", None):
        with pytest.raises(TooManyRequests), budget.reserve("noisy", BIG):
            pass
        with budget.reserve("quiet", BIG):
            pass
    with budget.reserve("noisy", BIG):
        pass
    assert not budget._by_cluster
    assert budget._used == 0


def test_all_together_are_bounded() -> None:
    budget = BodyBudget(total=4 * MAX_BODY_BYTES)
    with (
        budget.reserve("a", BIG),
        budget.reserve("b", BIG),
        budget.reserve("c", BIG),
        budget.reserve("d", BIG),
        pytest.raises(TooManyRequests) as caught,
        budget.reserve("e", BIG),
    ):
        pass
    assert caught.value.retry_after_seconds == 1


def test_small_bodies_always_pass() -> None:
    budget = BodyBudget(total=0)
    with budget.reserve("a", b"1000"), budget.reserve("a", b"65536"):
        pass
    with pytest.raises(TooManyRequests), budget.reserve("a", b"65537"):
        pass
