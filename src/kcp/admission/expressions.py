"""CEL in admission: which variables expressions have, and whether they may be written that way."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.auth.attributes import Attributes as Question
from kcp.auth.user import UserInfo
from kcp.meta import wellknown
from kcp.schema.cel import authorization
from kcp.schema.cel.engine import CompileError, Environment, activate
from kcp.schema.cel.types import (
    AUTHORIZER,
    BOOL,
    DYN,
    INT,
    RESOURCE_CHECK,
    STRING,
    TIMESTAMP,
    CelType,
    ListType,
    MapType,
    ObjectType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kcp.admission.attributes import Attributes
    from kcp.auth.attributes import Decision
    from kcp.meta.codec import Object
    from kcp.schema.cel.authorization import Answer, Check
    from kcp.schema.cel.engine import Activation, Program

    Authorize = Callable[[Question], Decision]

_KIND: Final = ObjectType("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), STRING))
_RESOURCE: Final = ObjectType(
    "kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), STRING)
)
_USER: Final = ObjectType(
    "kubernetes.UserInfo",
    {"username": STRING, "uid": STRING, "groups": ListType(STRING), "extra": MapType(ListType(STRING))},
)
REQUEST: Final = ObjectType(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_CONDITION: Final = ObjectType(
    "kubernetes.NamespaceCondition",
    {"status": STRING, "type": STRING, "lastTransitionTime": TIMESTAMP, "message": STRING, "reason": STRING},
)
_METADATA: Final = ObjectType(
    "kubernetes.NamespaceMetadata",
    {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": MapType(STRING),
        "annotations": MapType(STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": ListType(STRING),
    },
)
NAMESPACE: Final = ObjectType(
    "kubernetes.Namespace",
    {
        "metadata": _METADATA,
        "spec": ObjectType("kubernetes.NamespaceSpec", {"finalizers": ListType(STRING)}),
        "status": ObjectType("kubernetes.NamespaceStatus", {"conditions": ListType(_CONDITION), "phase": STRING}),
    },
)
_HIDDEN_METADATA: Final = ("managedFields", "ownerReferences", "selfLink")

VARIABLES: Final = "variables"


class Scope(NamedTuple):
    """What an expression may use besides `object`, `oldObject`, `request` and `namespaceObject`.

    `variables` are names and types of earlier expressions of the same policy; None where there can be none.
    """

    params: bool = False
    authorizer: bool = False
    variables: tuple[tuple[str, CelType], ...] | None = None


@lru_cache(maxsize=256)
def environment_for(scope: Scope) -> Environment:
    variables: dict[str, CelType] = {"object": DYN, "oldObject": DYN, "namespaceObject": NAMESPACE, "request": REQUEST}
    if scope.params:
        variables["params"] = DYN
    if scope.authorizer:
        variables |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
    if scope.variables is not None:
        variables[VARIABLES] = ObjectType("kubernetes.variables", dict(scope.variables))
    return Environment(variables)


def compile_expression(expression: str, scope: Scope, returns: Sequence[str] = ()) -> Program:
    """Raises CompileError with the words that Kubernetes reports. Without `returns`, any type will do."""
    try:
        program = environment_for(scope).compile(expression)
    except CompileError as error:
        raise CompileError(f"compilation failed: {error}") from None
    if returns and program.result_type not in returns:
        names = [_GO_TYPES.get(name, name) for name in returns]
        wanted = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
        got = _GO_TYPES.get(program.result_type, program.result_type)
        raise CompileError(f"must evaluate to {wanted} but got {got}")
    return program


_GO_TYPES: Final = {
    "null": "null_type",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}


def check_expression(expression: str, scope: Scope, returns: Sequence[str] = ()) -> str:
    """Why the expression cannot be accepted, or nothing: for the validation of policies and webhooks."""
    try:
        compile_expression(expression, scope, returns)
    except CompileError as error:
        return str(error)
    return ""


def variable_type(program: Program) -> CelType:
    """The type that `variables.x` has for later expressions; what has fields or parts is not tracked further."""
    return program.result_type if program.result_type in _SIMPLE else DYN


_SIMPLE: Final = frozenset((BOOL, "int", "uint", "double", STRING, "bytes", TIMESTAMP, "duration"))


def make_values(
    obj: Object | None, old_obj: Object | None, request: Object, namespace: Object | None
) -> dict[str, object]:
    """The variables' values, params and authorizer apart."""
    return {"object": obj, "oldObject": old_obj, "request": request, "namespaceObject": _show_namespace(namespace)}


def with_authorizer(values: Mapping[str, object], a: Attributes) -> dict[str, object]:
    check = authorization.make_resource_check(a.gvr.group, a.gvr.resource, a.subresource, a.namespace, a.name)
    return {**values, "authorizer": authorization.make_authorizer(), "authorizer.requestResource": check}


def make_activation(values: Mapping[str, object], a: Attributes, authorize: Authorize | None) -> Activation:
    return activate(values, None if authorize is None else _make_answer(a, authorize))


def _make_answer(a: Attributes, authorize: Authorize) -> Answer:
    def answer(check: Check) -> tuple[bool, str]:
        user = a.user if check.service_account is None else _service_account(*check.service_account)
        if check.path:
            question = Question(user=user, verb=check.verb, cluster=a.cluster, path=check.path)
        else:
            question = Question(
                user=user,
                verb=check.verb,
                cluster=a.cluster,
                group=check.group,
                version="*",
                resource=check.resource,
                subresource=check.subresource,
                namespace=check.namespace,
                name=check.name,
            )
        decision = authorize(question)
        return decision.allowed, decision.reason

    return answer


def _service_account(namespace: str, name: str) -> UserInfo:
    groups = (wellknown.GROUP_SERVICE_ACCOUNTS, f"{wellknown.GROUP_SERVICE_ACCOUNTS}:{namespace}")
    return UserInfo(name=f"system:serviceaccount:{namespace}:{name}", groups=groups)


def _show_namespace(namespace: Object | None) -> Object | None:
    if namespace is None:
        return None
    metadata = {key: value for key, value in namespace["metadata"].items() if key not in _HIDDEN_METADATA}
    return {"metadata": metadata, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}
