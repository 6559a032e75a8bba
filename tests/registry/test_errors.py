"""The store's errors as clients see them."""

from __future__ import annotations

import pytest

from kcp import store
from kcp.meta import errors
from kcp.meta.gvk import GroupResource
from kcp.registry.errors import translate
from kcp.store import ObjectKey, ResourceKey

KEY = ObjectKey(ResourceKey("", "configmaps"), "root", "default", "a")
MODIFIED = (
    'Operation cannot be fulfilled on configmaps "a": '
    "the object has been modified; please apply your changes to the latest version and try again"
)


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (store.Conflict(KEY, None), errors.Conflict, MODIFIED),
        (store.Compacted(3, 7), errors.Expired, "too old resource version: 3 (7)"),
        (store.FutureRevision(9, 7), errors.Timeout, "Too large resource version: 9, current: 7"),
        (store.TooLarge("over 2 MiB"), errors.RequestEntityTooLarge, "over 2 MiB"),
        (store.InvalidCommit("bad key"), errors.BadRequest, "bad key"),
        (store.NoSpace("full"), errors.ServiceUnavailable, "the server's storage is full: "),
        (store.OutcomeUnknown("cut off"), errors.Timeout, "the outcome of the write is unknown, "),
        (store.Closed(), errors.ServiceUnavailable, "the storage does not answer now, try again: the store is closed"),
        (store.Damaged("torn"), errors.InternalError, "torn"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_store_error_has_a_status(
    error: store.StoreError, expected: type[errors.StatusError], message: str
) -> None:
    found = translate(error, GroupResource("", "configmaps"), "a")
    assert type(found) is expected
    assert message in found.message


def test_clients_know_a_version_that_is_yet_to_come_by_its_cause() -> None:
    found = translate(store.FutureRevision(9, 7), GroupResource("", "configmaps"), "")
    assert [cause.reason for cause in found.causes] == ["ResourceVersionTooLarge"]
    assert found.retry_after_seconds == 1
