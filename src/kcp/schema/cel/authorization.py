"""Permission checks in expressions: `authorizer.group('').resource('pods').namespace('x').check('get').allowed()`.

The language only builds the question. Who answers it is set for the time of one evaluation (`answering`), because a
value of the language cannot carry a function.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.meta import validation
from kcp.schema.cel.descriptors import parts_of, value_of
from kcp.schema.cel.functions import Overload, method
from kcp.schema.cel.types import AUTHORIZER, BOOL, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK, STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kcp.schema.cel.descriptors import Value
    from kcp.schema.cel.functions import Function

    # What a question is answered with: whether it is allowed, and why.
    Answer = Callable[["Check"], tuple[bool, str]]


class Check(NamedTuple):
    """One question. Without a service account it is about the user of the request; with a path, about no resource."""

    verb: str
    service_account: tuple[str, str] | None = None  # namespace and name
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


_answer: ContextVar[Answer] = ContextVar("answer")

# How a resource check's parts are laid out: those of the authorizer, then these.
_SUBJECT: Final = 2
_PARTS: Final = ("group", "resource", "subresource", "namespace", "name", "fieldSelector", "labelSelector")


@contextmanager
def answering(answer: Answer) -> Iterator[None]:
    """Let this function answer all checks for a while."""
    token = _answer.set(answer)
    try:
        yield
    finally:
        _answer.reset(token)


def make_authorizer() -> Value:
    """The value of the variable `authorizer`."""
    return value_of(AUTHORIZER, "", "")


def make_resource_check(group: str, resource: str, subresource: str, namespace: str, name: str) -> Value:
    """The value of the variable `authorizer.requestResource`."""
    return value_of(RESOURCE_CHECK, "", "", group, resource, subresource, namespace, name, "", "")


def _service_account(authorizer: Value, namespace: str, name: str) -> Value:
    if validation.check_dns1123_subdomain(name):
        raise ValueError("Invalid service account name")
    if validation.check_dns1123_label(namespace):
        raise ValueError("Invalid service account namespace")
    return value_of(AUTHORIZER, namespace, name)


def _path(authorizer: Value, path: str) -> Value:
    if not path.strip():
        raise ValueError("path must not be empty")
    return value_of(PATH_CHECK, *parts_of(authorizer), path)


def _group(authorizer: Value, group: str) -> Value:
    return value_of(GROUP_CHECK, *parts_of(authorizer), group)


def _resource(group_check: Value, resource: str) -> Value:
    if not resource.strip():
        raise ValueError("resource must not be empty")
    return value_of(RESOURCE_CHECK, *parts_of(group_check), resource, *[""] * (len(_PARTS) - 2))


def _setter(part: str) -> Callable[[Value, str], Value]:
    index = _SUBJECT + _PARTS.index(part)

    def replace(check: Value, text: str) -> Value:
        parts = list(parts_of(check))
        parts[index] = text
        return value_of(RESOURCE_CHECK, *parts)

    return replace


def _check_path(check: Value, verb: str) -> Value:
    namespace, name, path = parts_of(check)
    return _ask(Check(verb, (namespace, name) if name else None, path))


def _check_resource(check: Value, verb: str) -> Value:
    account_namespace, account_name, *parts = parts_of(check)
    account = (account_namespace, account_name) if account_name else None
    return _ask(Check(verb, account, "", *parts[: _PARTS.index("fieldSelector")]))


def _ask(check: Check) -> Value:
    allowed, reason = _answer.get()(check)
    return value_of(DECISION, "allowed" if allowed else "", reason)


def _strings(type_name: str, count: int = 1) -> tuple[str, ...]:
    return (type_name, *[STRING] * count)


def _selector(part: str, overload: str) -> Function:
    return method(part, Overload(overload, _strings(RESOURCE_CHECK), RESOURCE_CHECK, _setter(part)))


FUNCTIONS: Final[tuple[Function, ...]] = (
    method("path", Overload("authorizer_path", _strings(AUTHORIZER), PATH_CHECK, _path)),
    method("group", Overload("authorizer_group", _strings(AUTHORIZER), GROUP_CHECK, _group)),
    method(
        "serviceAccount",
        Overload("authorizer_serviceaccount", _strings(AUTHORIZER, 2), AUTHORIZER, _service_account),
    ),
    method("resource", Overload("groupcheck_resource", _strings(GROUP_CHECK), RESOURCE_CHECK, _resource)),
    _selector("subresource", "resourcecheck_subresource"),
    _selector("namespace", "resourcecheck_namespace"),
    _selector("name", "resourcecheck_name"),
    _selector("fieldSelector", "authorizer_fieldselector"),
    _selector("labelSelector", "authorizer_labelselector"),
    method(
        "check",
        Overload("pathcheck_check", _strings(PATH_CHECK), DECISION, _check_path),
        Overload("resourcecheck_check", _strings(RESOURCE_CHECK), DECISION, _check_resource),
    ),
    # Questions are answered from local state, so there is nothing that could go wrong on the way.
    method("errored", Overload("decision_errored", (DECISION,), BOOL, lambda decision: False)),
    method("error", Overload("decision_error", (DECISION,), STRING, lambda decision: "")),
    method("allowed", Overload("decision_allowed", (DECISION,), BOOL, lambda value: bool(parts_of(value)[0]))),
    method("reason", Overload("decision_reason", (DECISION,), STRING, lambda value: parts_of(value)[1])),
)
