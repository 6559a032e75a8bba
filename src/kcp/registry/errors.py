"""The one place where the store's errors become Status errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp import store
from kcp.meta import errors

if TYPE_CHECKING:
    from kcp.meta.gvk import GroupResource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
NO_SPACE = "the server's storage is full: delete objects or enlarge the disk, then try again"


def translate(error: store.StoreError, resource: GroupResource, name: str) -> errors.StatusError:
    """What the client is told. `name` may be empty for a collection."""
    match error:
        case store.Conflict():
            return errors.Conflict(resource, name, MODIFIED)
        case store.Compacted():
            return errors.Expired(f"too old resource version: {error.revision} ({error.compacted})")
        case store.FutureRevision():
            return too_large_version(error.revision, error.current)
        case store.TooLarge():
            return errors.RequestEntityTooLarge(str(error))
        case store.InvalidCommit():
            return errors.BadRequest(str(error))
        case store.NoSpace():
            return errors.ServiceUnavailable(NO_SPACE)
        case store.OutcomeUnknown():
            return errors.Timeout(f"the outcome of the write is unknown, read before trying again: {error}")
        case store.Unavailable():
            return errors.ServiceUnavailable(f"the storage does not answer now, try again: {error}")
        case _:
            return errors.InternalError(str(error))


def too_large_version(revision: int, current: int) -> errors.StatusError:
    """A version that has not happened yet: clients know this cause and try again after a second."""
    cause = errors.StatusCause("ResourceVersionTooLarge", "Too large resource version", "")
    return errors.Timeout(
        f"Too large resource version: {revision}, current: {current}", retry_after_seconds=1, causes=(cause,)
    )
