"""What validating and mutating admission policies share: matching, parameters, variables and evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kcp.admission import expressions
from kcp.admission.conditions import prepare, prepare_conditions
from kcp.admission.matching import parse_criteria
from kcp.admission.request import make_request
from kcp.meta import labels
from kcp.meta.gotext import quote
from kcp.meta.gvk import parse_gvk
from kcp.schema.cel.bounded import EXCEEDED, MAX_CHARACTERS
from kcp.schema.cel.engine import EvaluationError
from kcp.schema.cel.types import DYN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kcp.admission.attributes import Attributes
    from kcp.admission.conditions import Expression
    from kcp.admission.configuration import Kinds
    from kcp.admission.expressions import Authorize, Scope
    from kcp.admission.matching import Criteria, Match, Matcher
    from kcp.auth.reader import Reader
    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind
    from kcp.schema.cel.engine import Activation

_NO_PARAMS: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"
_NEEDS_NAMESPACE: Final = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"


class ConfigurationError(Exception):
    """The policy or binding cannot be used for this write."""


@dataclass(frozen=True, slots=True)
class Binding:
    name: str
    spec: Object
    criteria: Criteria | None  # None: wherever the policy matches


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with its bindings and its expressions compiled. `scope` is what its expressions may use."""

    name: str
    spec: Object
    failure_policy: str
    criteria: Criteria
    param_kind: GroupVersionKind | None
    scope: Scope
    variables: Mapping[str, Expression]
    conditions: tuple[Expression, ...]
    bindings: tuple[Binding, ...]


def parse_policy(policy: Object, bindings: Sequence[Object]) -> Policy:
    spec = policy["spec"]
    param_kind = spec.get("paramKind")
    scope = expressions.Scope(params=param_kind is not None, authorizer=True, variables=())
    variables: dict[str, Expression] = {}
    for variable in spec.get("variables") or ():
        expression = prepare(variable["expression"], scope)
        variables[variable["name"]] = expression
        known = DYN if expression.program is None else expressions.variable_type(expression.program)
        scope = scope._replace(variables=(*(scope.variables or ()), (variable["name"], known)))
    return Policy(
        name=policy["metadata"]["name"],
        spec=spec,
        failure_policy=spec.get("failurePolicy") or "Fail",
        criteria=_parse_match(spec.get("matchConstraints") or {}),
        param_kind=parse_gvk(param_kind["apiVersion"], param_kind["kind"]) if param_kind else None,
        scope=scope,
        variables=variables,
        conditions=prepare_conditions(spec.get("matchConditions") or (), scope),
        bindings=tuple(_parse_binding(binding) for binding in bindings),
    )


def _parse_binding(binding: Object) -> Binding:
    match = binding["spec"].get("matchResources")
    return Binding(binding["metadata"]["name"], binding["spec"], None if match is None else _parse_match(match))


def _parse_match(match: Object) -> Criteria:
    return parse_criteria(match, match.get("resourceRules") or (), matches_without_rules=True)


def group_bindings(bindings: Sequence[Object]) -> dict[str, list[Object]]:
    """Bindings by the name of their policy."""
    grouped: dict[str, list[Object]] = {}
    for binding in bindings:
        grouped.setdefault(binding["spec"].get("policyName", ""), []).append(binding)
    return grouped


class Params:
    """Finds the parameters that a binding names."""

    def __init__(self, reader: Reader, kinds: Kinds) -> None:
        self._reader = reader
        self._kinds = kinds

    def find(self, policy: Policy, binding: Binding, a: Attributes) -> list[Object | None]:
        """One None stands for no parameters; no entry at all means that there is nothing to evaluate.

        Raises ConfigurationError.
        """
        ref = binding.spec.get("paramRef")
        if policy.param_kind is None:
            return [None]
        found = self._kinds.resource_for(a.cluster, policy.param_kind)
        if found is None:
            raise ConfigurationError(f"failed to find resource referenced by paramKind: '{policy.param_kind}'")
        if ref is None:
            return [None]
        gvr, is_namespaced = found
        namespace = self._namespace(ref, a, is_namespaced=is_namespaced)
        if ref.get("name"):
            param = self._reader.get(a.cluster, gvr.group, gvr.resource, namespace, ref["name"])
            params = [] if param is None else [param]
        else:
            selector = labels.from_label_selector(ref.get("selector") or {})
            listed = self._reader.list(a.cluster, gvr.group, gvr.resource, namespace or None)
            params = [param for param in listed if selector.matches(param["metadata"].get("labels") or {})]
        if not params and ref.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationError(_NO_PARAMS)
        return [self._kinds.convert(a.cluster, param, policy.param_kind) for param in params]

    @staticmethod
    def _namespace(ref: Object, a: Attributes, *, is_namespaced: bool) -> str:
        named = str(ref.get("namespace") or "")
        if not is_namespaced:
            if named:
                raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            return ""
        if not named and not a.namespace:
            raise ConfigurationError(_NEEDS_NAMESPACE)
        return named or a.namespace


class Evaluation:
    """The expressions of one policy, evaluated for one write and one parameter object."""

    def __init__(
        self,
        policy: Policy,
        a: Attributes,
        values: Mapping[str, object],
        authorize: Authorize,
    ) -> None:
        self._policy = policy
        self._a = a
        self._values = expressions.with_authorizer(values, a)
        self._authorize = authorize
        self._plain = expressions.make_activation(self._values, a, authorize)
        self._results: dict[str, Any] = {}
        self._failures: dict[str, str] = {}

    def evaluate(self, expression: Expression) -> Any:  # noqa: ANN401 - any value of the language
        """Raises EvaluationError with the words that go into a decision."""
        if expression.program is None:
            raise EvaluationError(expression.error)
        try:
            return self._run(expression)
        except EvaluationError as error:
            raise EvaluationError(f"expression '{expression.text}' resulted in error: {error}") from None

    def _run(self, expression: Expression) -> Any:  # noqa: ANN401
        program = expression.program
        assert program is not None
        names = [field for variable, field in program.selected if variable == expressions.VARIABLES]
        if not names:
            return program.evaluate(self._plain)
        for name in names:
            self._compute(name)
        try:
            return program.evaluate(self._with_variables(names))
        except EvaluationError as error:
            # A variable that failed is missing: say why, not that it is.
            missing = str(error).removeprefix("no such key: ")
            raise EvaluationError(self._failures.get(missing, str(error))) from None

    def _compute(self, name: str) -> None:
        if name in self._results or name in self._failures:
            return
        expression = self._policy.variables[name]
        if expression.program is None:
            why = expression.error.removeprefix("compilation error: ")
            self._failures[name] = f"composited variable {quote(name)} fails to compile: {why}"
            return
        try:
            self._results[name] = _bounded(self._run(expression))
        except EvaluationError as error:
            self._failures[name] = f"composited variable {quote(name)} fails to evaluate: {error}"

    def _with_variables(self, names: Sequence[str]) -> Activation:
        known = {name: self._results[name] for name in names if name in self._results}
        return expressions.make_activation({**self._values, expressions.VARIABLES: known}, self._a, self._authorize)


def _bounded(value: Any) -> Any:  # noqa: ANN401
    """Variables that build on each other could double a text until there is no memory left."""
    if isinstance(value, str | bytes | bytearray | list) and len(value) > MAX_CHARACTERS:
        raise EvaluationError(EXCEEDED)
    return value


def values_for(a: Attributes, match: Match, kinds: Kinds, matcher: Matcher) -> dict[str, object]:
    """The variables' values in the version that the policy was written for. Raises StatusError."""
    is_namespace = a.gvk.kind == "Namespace" and not a.gvk.group
    namespace = None if is_namespace or not a.namespace else matcher.namespace_of(a)
    obj, old_obj = (
        kinds.convert(a.cluster, one, match.gvk) if one is not None and match.gvk != a.gvk else one
        for one in (a.obj, a.old_obj)
    )
    return expressions.make_values(obj, old_obj, make_request(a, match), namespace)
