import pytest

from kcp.meta import errors, field
from kcp.meta.codec import Object
from kcp.meta.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    ServerTimeout,
    ServiceUnavailable,
    StatusCause,
    StatusError,
    Timeout,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
    from_status,
)
from kcp.meta.field import FieldPath
from kcp.meta.gvk import GroupKind, GroupResource

CONFIGMAPS = GroupResource("", "configmaps")
WIDGETS = GroupResource("conf.test", "widgets")
TERMINATING = StatusCause("NamespaceTerminating", "namespace a is being terminated", "metadata.namespace")
TOO_LARGE = StatusCause("ResourceVersionTooLarge", "Too large resource version")
PROBLEMS = [field.required(FieldPath("spec")), field.invalid(FieldPath("data").key("a b"), "x", "no")]

CASES = [
    (BadRequest("the body is no object"), 400, "the body is no object", None),
    (Unauthorized(), 401, "Unauthorized", None),
    (
        Forbidden(CONFIGMAPS, "a", 'User "u" cannot get'),
        403,
        'configmaps "a" is forbidden: User "u" cannot get',
        {"name": "a", "kind": "configmaps"},
    ),
    (Forbidden(CONFIGMAPS, "", "no"), 403, "configmaps is forbidden: no", {"kind": "configmaps"}),
    (Forbidden(None, "", 'cannot get path "/x"'), 403, 'forbidden: cannot get path "/x"', {}),
    (
        Forbidden(CONFIGMAPS, "a", "gone soon", causes=[TERMINATING]),
        403,
        'configmaps "a" is forbidden: gone soon',
        {"name": "a", "kind": "configmaps", "causes": [TERMINATING._asdict()]},
    ),
    (NotFound(CONFIGMAPS, "a"), 404, 'configmaps "a" not found', {"name": "a", "kind": "configmaps"}),
    (
        NotFound(WIDGETS, 'a"b'),
        404,
        'widgets.conf.test "a\\"b" not found',
        {"name": 'a"b', "group": "conf.test", "kind": "widgets"},
    ),
    (
        MethodNotAllowed(WIDGETS, "delete"),
        405,
        'delete is not supported on resources of kind "widgets.conf.test"',
        {"group": "conf.test", "kind": "widgets"},
    ),
    (NotAcceptable("only the following"), 406, "only the following", None),
    (AlreadyExists(CONFIGMAPS, "a"), 409, 'configmaps "a" already exists', {"name": "a", "kind": "configmaps"}),
    (
        AlreadyExists.for_generated_name(CONFIGMAPS, "a-b2c4d"),
        409,
        'configmaps "a-b2c4d" already exists, the server was not able to generate a unique name for the object',
        {"name": "a-b2c4d", "kind": "configmaps", "retryAfterSeconds": 1},
    ),
    (
        Conflict(CONFIGMAPS, "a", "the object has been modified"),
        409,
        'Operation cannot be fulfilled on configmaps "a": the object has been modified',
        {"name": "a", "kind": "configmaps"},
    ),
    (Gone("gone"), 410, "gone", None),
    (Expired("too old resource version: 1 (9)"), 410, "too old resource version: 1 (9)", None),
    (RequestEntityTooLarge("limit is 3145728"), 413, "Request entity too large: limit is 3145728", None),
    (UnsupportedMediaType("unknown format"), 415, "unknown format", None),
    (
        Invalid(GroupKind("", "ConfigMap"), "a", PROBLEMS),
        422,
        'ConfigMap "a" is invalid: [spec: Required value, data[a b]: Invalid value: "x": no]',
        {
            "name": "a",
            "kind": "ConfigMap",
            "causes": [
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec"},
                {"reason": "FieldValueInvalid", "message": 'Invalid value: "x": no', "field": "data[a b]"},
            ],
        },
    ),
    (
        Invalid(GroupKind("conf.test", "Widget"), "a", PROBLEMS[:1]),
        422,
        'Widget.conf.test "a" is invalid: spec: Required value',
        {
            "name": "a",
            "group": "conf.test",
            "kind": "Widget",
            "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec"}],
        },
    ),
    (Invalid(GroupKind("", ""), "", []), 422, ' "" is invalid', {}),
    (TooManyRequests("Creating the home workspace", 1), 429, "Creating the home workspace", {"retryAfterSeconds": 1}),
    (InternalError("oops"), 500, "Internal error occurred: oops", {"causes": [{"message": "oops"}]}),
    (
        ServerTimeout(CONFIGMAPS, "create", 2),
        500,
        "The create operation against configmaps could not be completed at this time, please try again.",
        {"name": "create", "kind": "configmaps", "retryAfterSeconds": 2},
    ),
    (ServiceUnavailable("Not available."), 503, "Not available.", None),
    (
        Timeout("Too large resource version: 9, current: 1", 1, causes=[TOO_LARGE]),
        504,
        "Timeout: Too large resource version: 9, current: 1",
        {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    ),
]


@pytest.mark.parametrize(("error", "code", "message", "details"), CASES, ids=lambda case: type(case).__name__)
def test_status_is_the_one_of_kubernetes(error: StatusError, code: int, message: str, details: Object | None) -> None:
    assert str(error) == message
    status = error.to_status()
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": type(error).__name__,
        **({} if details is None else {"details": details}),
        "code": code,
    }
    order = ["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"]
    assert list(status) == [name for name in order if name in status]


@pytest.mark.parametrize("error", [case[0] for case in CASES], ids=lambda error: type(error).__name__)
def test_an_error_survives_the_wire(error: StatusError) -> None:
    received = from_status(error.to_status())
    assert type(received) is type(error)
    assert received.to_status() == error.to_status()
    assert received.causes == error.causes
    assert received.retry_after_seconds == error.retry_after_seconds


def test_every_error_stands_in_the_tree_at_the_top_of_the_file() -> None:
    assert errors.__doc__ is not None
    drawn = {
        line.split()[1]: line.split()[2] for line in errors.__doc__.splitlines() if line.strip()[:3] in ("|--", "`--")
    }
    classes = set(StatusError.__subclasses__())
    assert drawn == {cls.__name__: str(cls.code) for cls in classes}
    assert all(cls.reason == cls.__name__ for cls in classes)
    assert {type(case[0]) for case in CASES} == classes


def test_an_expired_list_offers_to_continue() -> None:
    error = Expired("too old", continue_token="abc")
    assert error.to_status()["metadata"] == {"continue": "abc"}
    assert from_status(error.to_status()).metadata == {"continue": "abc"}


def test_a_class_can_be_raised_with_a_sentence_of_its_own() -> None:
    cause = StatusCause("FieldManagerConflict", 'conflict with "alice"', ".data.k")
    error = Conflict.with_message("Apply failed with 1 conflict", causes=[cause])
    assert error.code == 409
    assert error.to_status()["details"] == {"causes": [cause._asdict()]}
    assert error.causes == (cause,)
    missing = NotFound.with_message("the server could not find the requested resource", details={})
    assert missing.to_status()["details"] == {}


def test_an_unknown_failure_is_a_500_without_a_reason() -> None:
    assert StatusError("strconv.ParseUint").to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "strconv.ParseUint",
        "code": 500,
    }


def test_a_strange_status_is_kept_as_it_came() -> None:
    error = from_status({"reason": "TeapotEmpty", "code": 418, "message": "no tea", "details": {"kind": "tea"}})
    assert type(error) is StatusError
    assert (error.reason, error.code, error.message, error.details) == ("TeapotEmpty", 418, "no tea", {"kind": "tea"})


def test_nonsense_in_a_status_counts_as_absent() -> None:
    error = from_status({"reason": 5, "code": "x", "message": None, "details": [], "metadata": "m"})
    assert (error.causes, error.retry_after_seconds) == ((), 0)
    assert error.to_status() == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500}
    odd = from_status({"details": {"causes": ["x", {"message": "m"}], "retryAfterSeconds": "soon"}})
    assert (odd.causes, odd.retry_after_seconds) == ((StatusCause("", "m"),), 0)
    assert from_status({"details": {"causes": "x"}}).causes == ()
