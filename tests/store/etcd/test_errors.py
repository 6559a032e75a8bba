"""What etcd's refusals mean: those that a test cannot make a real etcd say at will."""

from __future__ import annotations

import pytest

from kcp.store.errors import InvalidCommit, NoSpace, StoreError, TooLarge, Unavailable
from kcp.store.etcd.errors import Fate, explain


@pytest.mark.parametrize(
    ("code", "text", "fate"),
    [
        pytest.param("UNAVAILABLE", "etcdserver: no leader", Fate.NOT_DONE, id="no-leader"),
        pytest.param("UNKNOWN", "raft proposal dropped", Fate.NOT_DONE, id="proposal-dropped"),
        pytest.param("UNKNOWN", "etcdserver: too many requests", Fate.NOT_DONE, id="overload-in-3.5"),
        pytest.param("RESOURCE_EXHAUSTED", "etcdserver: too many requests", Fate.NOT_DONE, id="overload"),
        pytest.param("FAILED_PRECONDITION", "etcdserver: not capable", Fate.NOT_DONE, id="still-starting"),
        pytest.param("FAILED_PRECONDITION", "etcdserver: rpc not supported for learner", Fate.NOT_DONE, id="learner"),
        pytest.param("UNIMPLEMENTED", "unknown service", Fate.NOT_DONE, id="not-etcd"),
        pytest.param("UNAVAILABLE", "etcdserver: request timed out", Fate.UNKNOWN, id="timed-out"),
        pytest.param("UNAVAILABLE", "etcdserver: leader changed", Fate.UNKNOWN, id="leader-changed"),
        pytest.param("UNAVAILABLE", "etcdserver: server stopped", Fate.UNKNOWN, id="stopped"),
        pytest.param("UNAVAILABLE", "Socket closed", Fate.UNKNOWN, id="connection-broke"),
        pytest.param("DEADLINE_EXCEEDED", "Deadline Exceeded", Fate.UNKNOWN, id="no-answer"),
        pytest.param("CANCELLED", "etcdserver: watch canceled", Fate.UNKNOWN, id="watch-cancelled"),
        pytest.param("UNAUTHENTICATED", "etcdserver: invalid auth token", Fate.LOG_IN, id="token-expired"),
        pytest.param("INVALID_ARGUMENT", "etcdserver: revision of auth store is old", Fate.LOG_IN, id="token-outdated"),
        pytest.param("DATA_LOSS", "etcdserver: corrupt cluster", Fate.FINAL, id="corrupt"),
    ],
)
def test_fate_of_a_refused_request(code: str, text: str, fate: Fate) -> None:
    failure = explain(code, text)
    assert failure.fate is fate
    assert text in failure.reason


@pytest.mark.parametrize(
    ("code", "text", "error", "hint"),
    [
        pytest.param(
            "RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", NoSpace, "alarm disarm", id="no-space"
        ),
        pytest.param(
            "RESOURCE_EXHAUSTED",
            "grpc: received message larger than max (3 vs. 2)",
            TooLarge,
            "max-request-bytes",
            id="larger-than-grpc-takes",
        ),
        pytest.param(
            "INVALID_ARGUMENT", "etcdserver: user name is empty", Unavailable, "username and password", id="no-user"
        ),
        pytest.param("INVALID_ARGUMENT", "etcdserver: key is not provided", InvalidCommit, "key", id="anything-else"),
        pytest.param("PERMISSION_DENIED", "etcdserver: permission denied", Unavailable, "role", id="denied"),
    ],
)
def test_errors_say_what_to_do(code: str, text: str, error: type[StoreError], hint: str) -> None:
    failure = explain(code, text)
    assert type(failure.error) is error
    assert hint in str(failure.error)
