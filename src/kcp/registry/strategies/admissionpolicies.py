"""Validating and mutating admission policies and their bindings.

Whether the user may read the parameters that a policy names is asked elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from kcp.meta import gvk
from kcp.meta.field import FieldPath, forbidden, invalid, not_supported, required
from kcp.meta.validation import check_dns1035_label, check_dns1123_subdomain, check_path_segment_name
from kcp.registry.gostruct import named
from kcp.registry.strategies.admission_rules import (
    FAILURE_POLICIES,
    default_match_resources,
    validate_match_conditions,
    validate_match_resources,
)
from kcp.registry.strategies.expressions import (
    CompileExpression,
    Expression,
    ExpressionKind,
    trust_expression,
    validate_expression,
)
from kcp.registry.strategies.kind import BuiltinStrategy, Step
from kcp.registry.strategies.selectors import validate_label_selector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext

SPEC: Final = FieldPath("spec")
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED: Final = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import")
) | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")


class AdmissionPolicyStrategy(BuiltinStrategy):
    """What policies of both sorts share."""

    namespaced = False
    allow_unconditional_update = False
    generation = True
    kube_finalizers = False
    update_steps: ClassVar[tuple[Step, ...]] = (Step.METADATA, Step.TRANSITION)

    def __init__(self, compile_expression: CompileExpression = trust_expression) -> None:
        self._compile = compile_expression

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("failurePolicy") is None:
            spec["failurePolicy"] = "Fail"
        default_match_resources(spec.get("matchConstraints"))

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return self.validate_spec(obj, ignore_match_conditions=False)

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        spec, old_spec = obj.get("spec", {}), old.get("spec", {})
        unchanged = all(spec.get(field) == old_spec.get(field) for field in ("paramKind", "matchConditions"))
        return self.validate_spec(obj, ignore_match_conditions=unchanged)

    def validate_spec(self, obj: Object, *, ignore_match_conditions: bool) -> list[FieldError]:
        """The part of a spec that policies of both sorts have, up to the variables."""
        spec = obj.get("spec", {})
        errors: list[FieldError] = []
        policy, constraints, param_kind = (
            spec.get(field) for field in ("failurePolicy", "matchConstraints", "paramKind")
        )
        if policy is None:
            errors.append(required(SPEC.child("failurePolicy")))
        elif policy not in FAILURE_POLICIES:
            errors.append(not_supported(SPEC.child("failurePolicy"), named(policy), FAILURE_POLICIES))
        if param_kind is not None:
            errors += _validate_param_kind(param_kind, SPEC.child("paramKind"))
        if constraints is None:
            errors.append(required(SPEC.child("matchConstraints")))
        else:
            errors += validate_match_resources(constraints, SPEC.child("matchConstraints"))
            if not constraints.get("resourceRules"):
                errors.append(required(SPEC.child("matchConstraints", "resourceRules")))
            errors += self.validate_operations(constraints, SPEC.child("matchConstraints"))
        if not ignore_match_conditions:
            conditions, path = spec.get("matchConditions") or (), SPEC.child("matchConditions")
            errors += validate_match_conditions(conditions, path, self._compile, has_params=param_kind is not None)
        return errors + self._validate_variables(spec)

    def validate_operations(self, constraints: Object, path: FieldPath) -> list[FieldError]:
        """What a policy of this sort cannot do."""
        return []

    def compile(self, text: str, kind: ExpressionKind, spec: Object, path: FieldPath, shown: str) -> list[FieldError]:
        """Complaints about an expression that can use all variables of the policy."""
        expression = Expression(
            text,
            kind,
            has_params=spec.get("paramKind") is not None,
            has_authorizer=kind is not ExpressionKind.MESSAGE,
            variables=_variables(spec.get("variables") or ()),
        )
        return validate_expression(self._compile, expression, path, shown=shown)

    def _validate_variables(self, spec: Object) -> list[FieldError]:
        variables = spec.get("variables") or []
        has_params = spec.get("paramKind") is not None
        errors: list[FieldError] = []
        for position, variable in enumerate(variables):
            path = SPEC.child("variables").index(position)
            name, text = variable.get("name", ""), variable.get("expression", "")
            if not name.strip():
                errors.append(required(path.child("name"), "name is not specified"))
            elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
                errors.append(invalid(path.child("name"), name, "must be a valid CEL identifier"))
            if not text.strip():
                errors.append(required(path.child("expression"), "expression is not specified"))
                continue
            before = _variables(variables[:position])
            expression = Expression(text, ExpressionKind.VARIABLE, has_params, variables=before)
            errors += validate_expression(self._compile, expression, path.child("expression"))
        return errors


class AdmissionPolicyBindingStrategy(BuiltinStrategy):
    """What bindings of both sorts share."""

    namespaced = False
    allow_unconditional_update = False
    generation = True
    kube_finalizers = False
    update_steps = (Step.METADATA, Step.CONTENT)

    def default(self, obj: Object) -> None:
        default_match_resources(obj.get("spec", {}).get("matchResources"))

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj.get("spec", {})
        name, path = spec.get("policyName", ""), SPEC.child("policyName")
        errors = [invalid(path, name, why) for why in check_dns1123_subdomain(name)] if name else [required(path)]
        errors += _validate_param_ref(spec.get("paramRef"), SPEC.child("paramRef"))
        return errors + validate_match_resources(spec.get("matchResources"), SPEC.child("matchResources"))


class MutatingAdmissionPolicyStrategy(AdmissionPolicyStrategy):
    """Not served by default in 1.35 (beta)."""

    def validate_operations(self, constraints: Object, path: FieldPath) -> list[FieldError]:
        return _validate_mutating_operations(constraints, path)

    def validate_spec(self, obj: Object, *, ignore_match_conditions: bool) -> list[FieldError]:
        errors = super().validate_spec(obj, ignore_match_conditions=ignore_match_conditions)
        spec = obj.get("spec", {})
        mutations = spec.get("mutations") or ()
        if not mutations:
            errors.append(required(SPEC.child("mutations"), "mutations must contain at least one item"))
        for position, mutation in enumerate(mutations):
            errors += self._validate_mutation(mutation, spec, SPEC.child("mutations").index(position))
        policy, path = spec.get("reinvocationPolicy", ""), SPEC.child("reinvocationPolicy")
        if not policy:
            errors.append(required(path))
        elif policy not in ("IfNeeded", "Never"):
            errors.append(not_supported(path, named(policy), ("IfNeeded", "Never")))
        return errors

    def _validate_mutation(self, mutation: Object, spec: Object, path: FieldPath) -> list[FieldError]:
        patch_type = mutation.get("patchType", "")
        if not patch_type:
            return [required(path.child("patchType"))]
        if patch_type not in _PATCHES:
            return [not_supported(path.child("patchType"), named(patch_type), _PATCHES)]
        wanted, unwanted, kind = _PATCHES[patch_type]
        errors: list[FieldError] = []
        if mutation.get(wanted) is None:
            errors.append(required(path.child(wanted), f"must be specified when patchType is {patch_type}"))
        else:
            text, where = mutation[wanted].get("expression", "").strip(), path.child(wanted, "expression")
            errors += self.compile(text, kind, spec, where, text) if text else [required(where)]
        if mutation.get(unwanted) is not None:
            why = f"must not be specified when patchType is {patch_type}"
            errors.append(invalid(path.child(unwanted), f"{{{unwanted}}}", why))
        return errors


class MutatingAdmissionPolicyBindingStrategy(AdmissionPolicyBindingStrategy):
    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        resources = obj.get("spec", {}).get("matchResources") or {}
        errors = super().validate_content(obj, context)
        return errors + _validate_mutating_operations(resources, SPEC.child("matchResources"))


# patchType: the field it asks for, the one it excludes, and what the expression makes
_PATCHES: Final = {
    "ApplyConfiguration": ("applyConfiguration", "jsonPatch", ExpressionKind.APPLY_CONFIGURATION),
    "JSONPatch": ("jsonPatch", "applyConfiguration", ExpressionKind.JSON_PATCH),
}


def _variables(variables: Sequence[Object]) -> tuple[tuple[str, str], ...]:
    return tuple((variable.get("name", ""), variable.get("expression", "")) for variable in variables)


def _validate_mutating_operations(resources: Object, path: FieldPath) -> list[FieldError]:
    rules = resources.get("resourceRules") or ()
    operations = (operation for rule in rules for operation in rule.get("operations") or ())
    wrong = (operation for operation in operations if operation not in _MUTATING_OPERATIONS)
    return [
        not_supported(path.child("resourceRules", "operations"), named(each), _MUTATING_OPERATIONS) for each in wrong
    ]


def _validate_param_kind(param_kind: Object, path: FieldPath) -> list[FieldError]:
    api_version, kind = param_kind.get("apiVersion", ""), param_kind.get("kind", "")
    errors = _validate_api_version(api_version, path.child("apiVersion"))
    if not kind:
        errors.append(required(path.child("kind")))
    elif whys := check_dns1035_label(kind.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(whys)}"
        errors.append(invalid(path.child("kind"), kind, why))
    return errors


def _validate_api_version(api_version: str, path: FieldPath) -> list[FieldError]:
    if not api_version:
        return [required(path)]
    try:
        group, version = gvk.parse_group_version(api_version)
    except ValueError as error:
        return [invalid(path, api_version, str(error))]
    errors: list[FieldError] = []
    if group and (whys := check_dns1123_subdomain(group)):
        errors.append(invalid(path, group, ",".join(whys)))
    if not version:
        errors.append(invalid(path, api_version, "version must be specified"))
    elif whys := check_dns1035_label(version):
        errors.append(invalid(path, version, ",".join(whys)))
    return errors


def _validate_param_ref(reference: Object | None, path: FieldPath) -> list[FieldError]:
    if reference is None:
        return []
    name, selector, action = (reference.get(field) for field in ("name", "selector", "parameterNotFoundAction"))
    errors = [invalid(path.child("name"), name, why) for why in check_path_segment_name(name or "")]
    if name and selector is not None:
        errors.append(forbidden(path.child("name"), "name and selector are mutually exclusive"))
    errors += validate_label_selector(selector, path.child("selector"))
    if name and selector is not None:
        errors.append(forbidden(path.child("selector"), "name and selector are mutually exclusive"))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    if not action:
        errors.append(required(path.child("parameterNotFoundAction")))
    elif action not in ("Deny", "Allow"):
        errors.append(not_supported(path.child("parameterNotFoundAction"), named(action), ("Deny", "Allow")))
    return errors
