"""What webhooks and admission policies share: which requests they apply to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta.field import duplicate, invalid, not_supported, required, too_many
from kcp.meta.validation import check_path_segment_name, check_qualified_name
from kcp.registry.gostruct import named
from kcp.registry.strategies.expressions import CompileExpression, Expression, ExpressionKind, validate_expression
from kcp.registry.strategies.selectors import validate_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_MAX_MATCH_CONDITIONS: Final = 64


def default_rules(rules: Iterable[Object] | None) -> None:
    for rule in rules or ():
        if rule.get("scope") is None:
            rule["scope"] = "*"


def default_selectors(obj: Object) -> None:
    """Policies and selectors that webhooks and match resources have in common."""
    if obj.get("matchPolicy") is None:
        obj["matchPolicy"] = "Equivalent"
    for field in ("namespaceSelector", "objectSelector"):
        if obj.get(field) is None:
            obj[field] = {}


def default_match_resources(resources: Object | None) -> None:
    if resources is None:
        return
    default_selectors(resources)
    default_rules(resources.get("resourceRules"))
    default_rules(resources.get("excludeResourceRules"))


def validate_match_resources(resources: Object | None, path: FieldPath) -> list[FieldError]:
    if resources is None:
        return []
    errors: list[FieldError] = []
    policy = resources.get("matchPolicy")
    if policy is None:
        errors.append(required(path.child("matchPolicy")))
    elif policy not in MATCH_POLICIES:
        errors.append(not_supported(path.child("matchPolicy"), named(policy), MATCH_POLICIES))
    for field in ("namespaceSelector", "objectSelector"):
        if resources.get(field) is None:
            errors.append(required(path.child(field)))
        else:
            errors += validate_label_selector(resources[field], path.child(field))
    for field in ("resourceRules", "excludeResourceRules"):
        for position, rule in enumerate(resources.get(field) or ()):
            where = path.child(field).index(position)
            errors += _validate_resource_names(rule.get("resourceNames") or (), where.child("resourceNames"))
            errors += validate_rule(rule, where)
    return errors


def validate_rule(rule: Object, path: FieldPath) -> list[FieldError]:
    """A RuleWithOperations."""
    operations = rule.get("operations") or []
    errors = _validate_wildcard(operations, "operations", path.child("operations"))
    for position, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.append(not_supported(path.child("operations").index(position), named(operation), _OPERATIONS))
    errors += _validate_wildcard(rule.get("apiGroups") or [], "API groups", path.child("apiGroups"))
    versions, where = rule.get("apiVersions") or [], path.child("apiVersions")
    errors += _validate_wildcard(versions, "API versions", where)
    errors += [required(where.index(position)) for position, version in enumerate(versions) if not version]
    errors += _validate_resources(rule.get("resources") or [], path.child("resources"))
    scope = rule.get("scope")
    if scope is not None and scope not in _SCOPES:
        errors.append(not_supported(path.child("scope"), named(scope), _SCOPES))
    return errors


def validate_match_conditions(
    conditions: Sequence[Object], path: FieldPath, compile_expression: CompileExpression, *, has_params: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(conditions) > _MAX_MATCH_CONDITIONS:
        errors.append(too_many(path, len(conditions), _MAX_MATCH_CONDITIONS))
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        where, name, text = path.index(position), condition.get("name", ""), condition.get("expression", "").strip()
        if text:
            expression = Expression(text, ExpressionKind.MATCH_CONDITION, has_params)
            errors += validate_expression(compile_expression, expression, where.child("expression"))
        else:
            errors.append(required(where.child("expression")))
        if name:
            errors += [invalid(where.child("name"), name, why) for why in check_qualified_name(name)]
        else:
            errors.append(required(where.child("name")))
        if name in seen:
            errors.append(duplicate(where.child("name"), name))
        seen |= {name} if name else set()
    return errors


def _validate_resource_names(names: Sequence[str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, name in enumerate(names):
        errors += [invalid(path.index(position), name, why) for why in check_path_segment_name(name)]
        if name in names[:position]:
            errors.append(duplicate(path.index(position), name))
    return errors


def _validate_wildcard(values: list[str], what: str, path: FieldPath) -> list[FieldError]:
    if not values:
        return [required(path)]
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _validate_resources(resources: list[str], path: FieldPath) -> list[FieldError]:
    errors = [] if resources else [required(path)]
    wildcard_subresources: set[str] = set()  # resources of which all subresources were named
    wildcard_resources: set[str] = set()  # subresources that were named for all resources
    has_plain_resource = False
    for position, entry in enumerate(resources):
        where = path.index(position)
        if not entry:
            errors.append(required(where))
            continue
        resource, slash, subresource = entry.partition("/")
        if not slash:
            has_plain_resource = entry != "*"  # upstream remembers only the last one
            continue
        if resource in wildcard_subresources:
            errors.append(invalid(where, entry, f"if '{resource}/*' is present, must not specify {entry}"))
        if subresource in wildcard_resources:
            errors.append(invalid(where, entry, f"if '*/{subresource}' is present, must not specify {entry}"))
        if subresource == "*":
            wildcard_subresources.add(resource)
        if resource == "*":
            wildcard_resources.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and has_plain_resource:
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, why))
    return errors
