"""etcd's refusals in this room's words: whether a request may be tried again, and if not, which error to raise.

The one place that reads etcd's error texts, which are constants of its `api/v3rpc/rpctypes/error.go`. It must not know
gRPC's exceptions, nor connections.
"""

from __future__ import annotations

from enum import Enum, auto

from kcp.store.errors import (
    Compacted,
    FutureRevision,
    InvalidCommit,
    NoSpace,
    StoreError,
    TooLarge,
    Unavailable,
)


class Fate(Enum):
    """What became of a request that failed."""

    NOT_DONE = auto()  # refused before it was proposed to the cluster: may be tried again
    UNKNOWN = auto()  # perhaps carried out: only a read may be tried again
    UNREADABLE = auto()  # perhaps carried out, and the answer is more than we take: not to be asked like that again
    LOG_IN = auto()  # not done for lack of a valid token: log in, then try again
    FINAL = auto()  # trying again cannot help


class Failure(Exception):
    """One attempt at one endpoint failed. Never leaves the etcd modules."""

    def __init__(self, fate: Fate, reason: str, error: StoreError | None = None) -> None:
        super().__init__(reason)
        self.fate = fate
        self.reason = reason
        self.error = error or Unavailable(f"etcd refused: {reason}")


# Each of these is said before the request reaches raft, so it holds for writes too.
_NOT_DONE = (
    "etcdserver: no leader",
    "etcdserver: not capable",  # a member that is still starting
    "etcdserver: too many requests",
    "etcdserver: rpc not supported for learner",
    "raft proposal dropped",  # what a member that lost its leader a moment ago says, without a gRPC code
)
_LOG_IN = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old")
_TOO_LARGE = (
    "etcdserver: request is too large",
    "etcdserver: too many operations in txn request",
    "received message larger than max",  # by gRPC itself, before etcd sees the request
)
_NOT_LOGGED_IN = (
    "etcdserver: user name is empty",
    "etcdserver: authentication failed",
    "etcdserver: user name not found",
)


def explain(code: str, text: str) -> Failure:
    """The failure behind a gRPC status code (its name) and etcd's text.

    etcd's text does not say which revisions a Compacted or FutureRevision is about: whoever asked has to add them.
    """
    if any(known in text for known in _NOT_DONE) or code == "UNIMPLEMENTED":
        return Failure(Fate.NOT_DONE, text)
    if any(known in text for known in _LOG_IN):
        return Failure(Fate.LOG_IN, text)
    if code == "PERMISSION_DENIED" or "etcdserver: permission denied" in text:
        # etcd 3.5 answers a watch with an expired token like this as well, so it is worth one more log-in.
        error = Unavailable(f"etcd denied access ({text}): grant the user a role that may read and write the prefix")
        return Failure(Fate.LOG_IN, text, error)
    error_for_text = _final_error(text)
    if error_for_text is not None:
        return Failure(Fate.FINAL, text, error_for_text)
    if code == "INVALID_ARGUMENT":
        return Failure(Fate.FINAL, text, InvalidCommit(f"etcd refused the request: {text}"))
    if code in ("DATA_LOSS", "FAILED_PRECONDITION"):
        return Failure(Fate.FINAL, text)
    return Failure(Fate.UNKNOWN, f"{text} ({code})")


def _final_error(text: str) -> StoreError | None:
    if "mvcc: required revision has been compacted" in text:
        return Compacted(0, 0)
    if "mvcc: required revision is a future revision" in text:
        return FutureRevision(0, 0)
    if "mvcc: database space exceeded" in text:
        return NoSpace(
            "etcd's database is full: compact and defragment it, or raise --quota-backend-bytes, "
            "then disarm its NOSPACE alarm (etcdctl alarm disarm)"
        )
    if any(known in text for known in _TOO_LARGE):
        return TooLarge(f"etcd refused the request: {text}; its limits are --max-request-bytes and --max-txn-ops")
    if any(known in text for known in _NOT_LOGGED_IN):
        return Unavailable(f"etcd did not accept the log-in ({text}): check the etcd username and password")
    return None
