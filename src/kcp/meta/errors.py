"""Failures as Kubernetes reports them: each class knows its reason and HTTP code and words its message exactly.

    StatusError                    500, no reason (also what an unknown Status from elsewhere becomes)
    |-- BadRequest                 400
    |-- Unauthorized               401
    |-- Forbidden                  403
    |-- NotFound                   404
    |-- MethodNotAllowed           405
    |-- NotAcceptable              406
    |-- AlreadyExists              409
    |-- Conflict                   409
    |-- Gone                       410
    |-- Expired                    410  a resource version or continue token that is too old
    |-- RequestEntityTooLarge      413
    |-- UnsupportedMediaType       415
    |-- Invalid                    422  field causes
    |-- TooManyRequests            429  retry after
    |-- InternalError              500
    |-- ServerTimeout              500  nothing happened yet; retry after
    |-- ServiceUnavailable         503
    `-- Timeout                    504  it may have happened; retry after

Must not send anything: `to_status` gives the body, who prints it decides about headers. The sentences are wire format
(apimachinery/pkg/api/errors).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from kcp.meta.codec import Object
from kcp.meta.field import FieldError, aggregate
from kcp.meta.gotext import quote
from kcp.meta.gvk import GroupKind, GroupResource


class StatusCause(NamedTuple):
    """One entry of `details.causes`; what is empty is left out."""

    reason: str
    message: str
    field: str = ""


class StatusError(Exception):
    """A failure with a Status to send. `details` is None where Kubernetes sends none, which differs from `{}`."""

    reason: str = ""
    code: int = 500

    def __init__(self, message: str, *, details: Object | None = None, metadata: Object | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.metadata: Object = metadata or {}

    @classmethod
    def with_message(cls, message: str, *, details: Object | None = None, causes: Iterable[StatusCause] = ()) -> Self:
        """An error of this class with a sentence of its own, such as an apply conflict."""
        error = cls.__new__(cls)
        listed = _list_causes(causes)
        StatusError.__init__(error, message, details=(details or {}) | {"causes": listed} if listed else details)
        return error

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        listed = (self.details or {}).get("causes")
        causes = [cause for cause in listed if isinstance(cause, dict)] if isinstance(listed, list) else []
        return tuple(StatusCause(*(str(cause.get(name, "")) for name in StatusCause._fields)) for cause in causes)

    @property
    def retry_after_seconds(self) -> int:
        """What the header Retry-After should say; 0 for no such header."""
        seconds = (self.details or {}).get("retryAfterSeconds")
        return seconds if isinstance(seconds, int) else 0

    def to_status(self) -> Object:
        """The metav1.Status to send, with Go's order of fields."""
        status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


class BadRequest(StatusError):
    reason = "BadRequest"
    code = 400


class Unauthorized(StatusError):
    reason = "Unauthorized"
    code = 401

    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(message)


class Forbidden(StatusError):
    """`why` names who may not do what, or the rule that refused. Without a resource it is about a path."""

    reason = "Forbidden"
    code = 403

    def __init__(
        self, group_resource: GroupResource | None, name: str, why: str, *, causes: Iterable[StatusCause] = ()
    ) -> None:
        resource = group_resource or GroupResource("", "")
        subject = f"{resource} {quote(name)} is " if name else f"{resource} is "
        message = f"{subject if any(resource) else ''}forbidden: {why}"
        super().__init__(message, details=_details(*resource, name, causes=causes))


class NotFound(StatusError):
    reason = "NotFound"
    code = 404

    def __init__(self, group_resource: GroupResource, name: str) -> None:
        super().__init__(f"{group_resource} {quote(name)} not found", details=_details(*group_resource, name))


class MethodNotAllowed(StatusError):
    reason = "MethodNotAllowed"
    code = 405

    def __init__(self, group_resource: GroupResource, action: str) -> None:
        message = f"{action} is not supported on resources of kind {quote(str(group_resource))}"
        super().__init__(message, details=_details(*group_resource))


class NotAcceptable(StatusError):
    reason = "NotAcceptable"
    code = 406


class AlreadyExists(StatusError):
    reason = "AlreadyExists"
    code = 409

    def __init__(self, group_resource: GroupResource, name: str) -> None:
        super().__init__(f"{group_resource} {quote(name)} already exists", details=_details(*group_resource, name))

    @classmethod
    def for_generated_name(cls, group_resource: GroupResource, name: str, retry_after_seconds: int = 1) -> Self:
        """Every name that was tried for a generateName was taken: the client may simply ask again."""
        message = (
            f"{group_resource} {quote(name)} already exists, "
            "the server was not able to generate a unique name for the object"
        )
        return cls.with_message(message, details=_details(*group_resource, name, retry_after=retry_after_seconds))


class Conflict(StatusError):
    reason = "Conflict"
    code = 409

    def __init__(self, group_resource: GroupResource, name: str, why: str) -> None:
        message = f"Operation cannot be fulfilled on {group_resource} {quote(name)}: {why}"
        super().__init__(message, details=_details(*group_resource, name))


class Gone(StatusError):
    reason = "Gone"
    code = 410


class Expired(StatusError):
    """A list that expired half-way may offer a token with which to continue from the present."""

    reason = "Expired"
    code = 410

    def __init__(self, message: str, *, continue_token: str = "") -> None:
        super().__init__(message, metadata={"continue": continue_token} if continue_token else {})


class RequestEntityTooLarge(StatusError):
    reason = "RequestEntityTooLarge"
    code = 413

    def __init__(self, why: str) -> None:
        super().__init__(f"Request entity too large: {why}")


class UnsupportedMediaType(StatusError):
    reason = "UnsupportedMediaType"
    code = 415


class Invalid(StatusError):
    reason = "Invalid"
    code = 422

    def __init__(self, group_kind: GroupKind, name: str, errors: Sequence[FieldError]) -> None:
        complaints = aggregate(errors)
        message = f"{group_kind} {quote(name)} is invalid" + (f": {complaints}" if complaints else "")
        causes = (StatusCause(error.type.value, error.body, error.field) for error in errors)
        super().__init__(message, details=_details(*group_kind, name, causes=causes))


class TooManyRequests(StatusError):
    reason = "TooManyRequests"
    code = 429

    def __init__(self, message: str, retry_after_seconds: int = 0) -> None:
        super().__init__(message, details=_details(retry_after=retry_after_seconds))


class InternalError(StatusError):
    reason = "InternalError"
    code = 500

    def __init__(self, why: str) -> None:
        super().__init__(f"Internal error occurred: {why}", details=_details(causes=[StatusCause("", why)]))


class ServerTimeout(StatusError):
    """Nothing has happened yet, try again."""

    reason = "ServerTimeout"
    code = 500

    def __init__(self, group_resource: GroupResource, operation: str, retry_after_seconds: int = 0) -> None:
        message = (
            f"The {operation} operation against {group_resource} could not be completed at this time, please try again."
        )
        super().__init__(message, details=_details(*group_resource, operation, retry_after=retry_after_seconds))


class ServiceUnavailable(StatusError):
    reason = "ServiceUnavailable"
    code = 503


class Timeout(StatusError):
    """The time was up; what was asked for may still happen."""

    reason = "Timeout"
    code = 504

    def __init__(self, why: str, retry_after_seconds: int = 0, *, causes: Iterable[StatusCause] = ()) -> None:
        super().__init__(f"Timeout: {why}", details=_details(retry_after=retry_after_seconds, causes=causes))


def from_status(status: Object) -> StatusError:
    """The error that another server, or a webhook, described; the inverse of `to_status`.

    A reason unknown here is kept on a plain StatusError. Fields of a wrong type count as absent.
    """
    reason, message, code = status.get("reason"), status.get("message"), status.get("code")
    details, metadata = status.get("details"), status.get("metadata")
    error = _BY_REASON.get(str(reason), StatusError).with_message(
        message if isinstance(message, str) else "", details=details if isinstance(details, dict) else None
    )
    error.metadata = metadata if isinstance(metadata, dict) else {}
    error.reason = reason if isinstance(reason, str) else error.reason
    error.code = code if isinstance(code, int) else error.code
    return error


_BY_REASON = {cls.reason: cls for cls in StatusError.__subclasses__()}


def _details(
    group: str = "", kind: str = "", name: str = "", *, causes: Iterable[StatusCause] = (), retry_after: int = 0
) -> Object:
    """metav1.StatusDetails without its empty fields; `kind` holds the resource where there is no kind."""
    fields = {
        "name": name,
        "group": group,
        "kind": kind,
        "causes": _list_causes(causes),
        "retryAfterSeconds": retry_after,
    }
    return {field: value for field, value in fields.items() if value}


def _list_causes(causes: Iterable[StatusCause]) -> list[Object]:
    return [{field: text for field, text in cause._asdict().items() if text} for cause in causes]
