"""ValidatingAdmissionPolicy: expressions in the logical cluster that refuse, warn about or record writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.admission.chain import Plugin
from kcp.admission.conditions import ConditionsFailed, are_met, prepare
from kcp.admission.configuration import GROUP, Configurations
from kcp.admission.policy import ConfigurationError, Evaluation, Params, group_bindings, parse_policy, values_for
from kcp.admission.refusal import forbidden
from kcp.meta import errors
from kcp.meta.gotext import marshal_json
from kcp.schema.cel.engine import EvaluationError
from kcp.schema.cel.types import BOOL, NULL, STRING

if TYPE_CHECKING:
    from kcp.admission.attributes import Attributes
    from kcp.admission.conditions import Expression
    from kcp.admission.configuration import Kinds
    from kcp.admission.expressions import Authorize
    from kcp.admission.matching import Matcher
    from kcp.admission.policy import Binding, Policy
    from kcp.auth.reader import Reader
    from kcp.meta.codec import Object

POLICIES: Final = "validatingadmissionpolicies"
BINDINGS: Final = "validatingadmissionpolicybindings"
_EXEMPT: Final = frozenset((POLICIES, BINDINGS, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"))
_AUDIT_KEY: Final = "validation.policy.admission.k8s.io/validation_failure"
_MAX_MESSAGE_BYTES: Final = 5 * 1024
_MAX_ANNOTATION_BYTES: Final = 10 * 1024
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}


class _Validation(NamedTuple):
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


class _Annotation(NamedTuple):
    key: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class _Compiled:
    policy: Policy
    validations: tuple[_Validation, ...]
    annotations: tuple[_Annotation, ...]


class _Decision(NamedTuple):
    """A denial. `position` is that of the validation in its policy, for the audit log."""

    message: str
    reason: str = "Invalid"
    position: int = 0


class _Denial(NamedTuple):
    policy: Policy
    binding: Binding | None
    decision: _Decision


class ValidatingAdmissionPolicy(Plugin):
    name = "ValidatingAdmissionPolicy"

    def __init__(self, reader: Reader, kinds: Kinds, matcher: Matcher, authorize: Authorize) -> None:
        self._reader = reader
        self._kinds = kinds
        self._matcher = matcher
        self._authorize = authorize
        self._params = Params(reader, kinds)
        self._configurations = Configurations(((GROUP, POLICIES), (GROUP, BINDINGS)), self._compile_all)

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        self._configurations.forget(cluster, group, resource)

    async def validate(self, a: Attributes) -> None:
        compiled = self._configurations.get(a.cluster)
        if not compiled or (a.gvr.group == GROUP and a.gvr.resource in _EXEMPT):
            return
        denials = [denial for one in compiled for denial in self._dispatch(one, a)]
        if denials:
            raise _refuse(a, denials[0])

    def _compile_all(self, cluster: str) -> tuple[_Compiled, ...]:
        bindings = group_bindings(self._reader.list(cluster, GROUP, BINDINGS, None))
        if not bindings:
            return ()
        policies = self._reader.list(cluster, GROUP, POLICIES, None)
        # A policy without bindings does nothing.
        return tuple(
            _compile(policy, bindings[policy["metadata"]["name"]])
            for policy in policies
            if policy["metadata"]["name"] in bindings
        )

    def _dispatch(self, compiled: _Compiled, a: Attributes) -> list[_Denial]:
        policy = compiled.policy
        match = self._matcher.match(policy.criteria, a)
        if match is None:
            return []
        denials: list[_Denial] = []
        collected: dict[str, list[str]] = {}
        for binding in policy.bindings:
            if binding.criteria is not None and self._matcher.match(binding.criteria, a) is None:
                continue
            try:
                params = self._params.find(policy, binding, a)
            except ConfigurationError as error:
                if policy.failure_policy != "Ignore":
                    denials.append(_Denial(policy, binding, _Decision(f"failed to configure binding: {error}")))
                continue
            values = values_for(a, match, self._kinds, self._matcher) if params else {}
            for param in params:
                evaluation = Evaluation(policy, a, {**values, "params": param}, self._authorize)
                denials += self._act(compiled, binding, evaluation, a, collected)
        for key, found in collected.items():
            a.annotations[f"{policy.name}/{key}"] = ", ".join(found)
        return denials

    def _act(
        self,
        compiled: _Compiled,
        binding: Binding,
        evaluation: Evaluation,
        a: Attributes,
        collected: dict[str, list[str]],
    ) -> list[_Denial]:
        """Evaluate with one parameter, and do what the binding says with each failure."""
        policy = compiled.policy
        actions = binding.spec.get("validationActions") or ()
        denials = []
        try:
            if not are_met(policy.conditions, evaluation.evaluate, policy.failure_policy):
                return []
            decisions = _validate(compiled, evaluation)
        except ConditionsFailed as error:
            decisions = [_Decision(str(error))]
        for decision in decisions:
            if "Deny" in actions:
                denials.append(_Denial(policy, binding, decision))
            if "Audit" in actions:
                a.annotations[_AUDIT_KEY] = _audit_value(policy, binding, decision)
            if "Warn" in actions:
                a.warnings.append(
                    f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' "
                    f"with binding '{binding.name}': {decision.message}"
                )
        failures = _annotate(compiled, evaluation, collected)
        return denials + [_Denial(policy, binding, _Decision(failure)) for failure in failures]


def _compile(source: Object, bindings: list[Object]) -> _Compiled:
    policy = parse_policy(source, bindings)
    without_authorizer = policy.scope._replace(authorizer=False)
    validations = tuple(
        _Validation(
            prepare(validation["expression"], policy.scope, (BOOL,)),
            str(validation.get("message") or "").strip(),
            prepare(validation["messageExpression"], without_authorizer, (STRING,))
            if validation.get("messageExpression")
            else None,
            validation.get("reason") or "Invalid",
        )
        for validation in policy.spec.get("validations") or ()
    )
    annotations = tuple(
        _Annotation(annotation["key"], prepare(annotation["valueExpression"], policy.scope, (STRING, NULL, "dyn")))
        for annotation in policy.spec.get("auditAnnotations") or ()
    )
    return _Compiled(policy, validations, annotations)


def _validate(compiled: _Compiled, evaluation: Evaluation) -> list[_Decision]:
    decisions = []
    for position, validation in enumerate(compiled.validations):
        try:
            if evaluation.evaluate(validation.expression) is True:
                continue
        except EvaluationError as error:
            if compiled.policy.failure_policy != "Ignore":
                decisions.append(_Decision(str(error), position=position))
            continue
        decisions.append(_Decision(_message(validation, evaluation), validation.reason, position))
    return decisions


def _message(validation: _Validation, evaluation: Evaluation) -> str:
    """What the expression for it says if that can be shown, else the fixed message, else the failed expression."""
    if validation.message_expression is not None:
        try:
            made = evaluation.evaluate(validation.message_expression)
        except EvaluationError:
            made = None
        text = made.strip() if isinstance(made, str) else ""
        if text and "\n" not in text and len(text.encode(errors="replace")) <= _MAX_MESSAGE_BYTES:
            return text
    return validation.message or f"failed expression: {validation.expression.text.strip()}"


def _annotate(compiled: _Compiled, evaluation: Evaluation, collected: dict[str, list[str]]) -> list[str]:
    """Collect audit annotations, and return what went wrong."""
    failures = []
    for annotation in compiled.annotations:
        try:
            value = evaluation.evaluate(annotation.expression)
        except EvaluationError as error:
            if compiled.policy.failure_policy != "Ignore":
                failures.append(str(error))
            continue
        if isinstance(value, str):
            text = value.strip().encode(errors="replace")[:_MAX_ANNOTATION_BYTES].decode(errors="ignore")
            if text and text not in collected.setdefault(annotation.key, []):
                collected[annotation.key].append(text)
        elif value is not None:
            failures.append(
                f"valueExpression '{annotation.expression.text}' resulted in unsupported return type: "
                f"{_type_name(value)}. Return type must be either string or null."
            )
    return failures


def _type_name(value: object) -> str:
    names = {bool: "bool", int: "int", float: "double", list: "list", dict: "map", bytes: "bytes"}
    return names.get(type(value), type(value).__name__)


def _audit_value(policy: Policy, binding: Binding, decision: _Decision) -> str:
    failure = {
        "message": decision.message,
        "policy": policy.name,
        "binding": binding.name,
        "expressionIndex": decision.position,
        "validationActions": list(binding.spec.get("validationActions") or ()),
    }
    return "[{" + ",".join(f'"{key}":{marshal_json(value)}' for key, value in failure.items()) + "}]"


def _refuse(a: Attributes, denial: _Denial) -> errors.Forbidden:
    bound = f" with binding '{denial.binding.name}'" if denial.binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{denial.policy.name}'{bound} denied request: {denial.decision.message}"
    error = forbidden(a, message, causes=[errors.StatusCause("", message)])
    error.reason = denial.decision.reason
    error.code = _CODES.get(denial.decision.reason, 422)
    return error
