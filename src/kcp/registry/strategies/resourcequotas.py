"""ResourceQuotas: names and amounts of limits, and the scopes they apply to."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kcp.meta.field import FieldPath, invalid, required
from kcp.registry.gostruct import GoStruct, named
from kcp.registry.metadata import FIELD_IMMUTABLE, NOT_NEGATIVE
from kcp.registry.strategies.kind import BuiltinStrategy, Step, keep
from kcp.registry.strategies.resource_names import is_integer, is_quota_name, round_up, validate_quota_name
from kcp.schema import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import Strategy, WriteContext

_PODS: Final = frozenset(("pods",))
_POD_COMPUTE: Final = _PODS | {"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
# Which resources a scope can restrict.
_SCOPES: Final = {
    "Terminating": _POD_COMPUTE,
    "NotTerminating": _POD_COMPUTE,
    "BestEffort": _PODS,
    "NotBestEffort": _POD_COMPUTE,
    "PriorityClass": _POD_COMPUTE,
    "CrossNamespacePodAffinity": _POD_COMPUTE,
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
_ONLY_EXISTS: Final = _SCOPES.keys() - {"PriorityClass", "VolumeAttributesClass"}
_CONFLICTING: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_SELECTOR: Final = (
    (
        "matchExpressions",
        "MatchExpressions",
        None,
        (("scopeName", "ScopeName", ""), ("operator", "Operator", ""), ("values", "Values", None)),
    ),
)
_COMPARED: Final = ("cpu", "memory", "storage", "ephemeral-storage")


class ResourceQuotaStrategy(BuiltinStrategy):
    reset_fields = (("status",),)
    update_steps: ClassVar[tuple[Step, ...]] = (Step.METADATA_UPDATE, Step.TRANSITION)

    def default(self, obj: Object) -> None:
        round_up(obj.get("spec", {}).get("hard"))
        round_up(obj.get("status", {}).get("hard"))
        round_up(obj.get("status", {}).get("used"))

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "status")

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return _validate_spec(obj.get("spec", {}))

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        spec = obj.get("spec", {})
        errors = _validate_spec(spec)
        scopes = spec.get("scopes")
        if set(scopes or ()) != set(old.get("spec", {}).get("scopes") or ()):
            errors.append(invalid(FieldPath("spec.scopes"), scopes, FIELD_IMMUTABLE))
        return errors

    def warnings_on_create(self, obj: Object, context: WriteContext) -> list[str]:
        hard = obj.get("spec", {}).get("hard") or {}
        warnings = []
        for name in _COMPARED:
            request_name, limit_name = f"requests.{name}", f"limits.{name}"
            if request_name not in hard and name in ("cpu", "memory"):
                request_name = name
            request, limit = hard.get(request_name), hard.get(limit_name)
            if request is not None and limit is not None and quantity.parse(request) > quantity.parse(limit):
                compared = f"{request_name} ({request}) should be less than {limit_name} ({limit})"
                warnings.append(f"ResourceQuota {compared}")
        return warnings

    def subresource(self, name: str) -> Strategy | None:
        return _STATUS if name == "status" else None


class ResourceQuotaStatusStrategy(ResourceQuotaStrategy):
    reset_fields = (("spec",),)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "spec")

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        status = obj.get("status", {})
        errors = [] if obj["metadata"].get("resourceVersion") else [required(FieldPath("resourceVersion"))]
        errors += _validate_amounts(status.get("hard") or {}, FieldPath("status.hard"))
        return errors + _validate_amounts(status.get("used") or {}, FieldPath("status.used"))


def _validate_spec(spec: Object) -> list[FieldError]:
    errors = _validate_amounts(spec.get("hard") or {}, FieldPath("spec.hard"))
    return errors + _validate_scopes(spec) + _validate_scope_selector(spec)


def _validate_amounts(amounts: Object, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, text in amounts.items():
        where = path.key(name)
        errors += validate_quota_name(name, where)
        amount = quantity.parse(text)
        if amount < quantity.from_int(0):
            errors.append(invalid(where, text, NOT_NEGATIVE))
        if is_integer(name) and amount.milli_value() % 1000:
            errors.append(invalid(where, text, "must be an integer"))
    return errors


def _validate_scopes(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    scopes = spec.get("scopes")
    path = FieldPath("spec.scopes")
    for scope in scopes or ():
        if scope not in _SCOPES:
            errors.append(invalid(path, scopes, "unsupported scope"))
        for _ in _misapplied(scope, spec):
            errors.append(invalid(path, scopes, "unsupported scope applied to resource"))
    return errors + _validate_conflicts(scopes or (), scopes, path)


def _validate_scope_selector(spec: Object) -> list[FieldError]:
    selector = spec.get("scopeSelector")
    if selector is None:
        return []
    errors: list[FieldError] = []
    path = FieldPath("spec.scopeSelector.matchExpressions")
    expressions = selector.get("matchExpressions") or ()
    for expression in expressions:
        scope = expression.get("scopeName", "")
        if scope not in _SCOPES:
            errors.append(invalid(path.child("scopeName"), named(scope), "unsupported scope"))
        for _ in _misapplied(scope, spec):
            shown = GoStruct.of(selector, _SELECTOR)
            errors.append(invalid(path, shown, "unsupported scope applied to resource"))
        errors += _validate_operator(expression, scope, path)
    chosen = [expression.get("scopeName", "") for expression in expressions]
    return errors + _validate_conflicts(chosen, spec.get("scopes"), path)


def _validate_operator(expression: Object, scope: str, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values")
    if scope in _ONLY_EXISTS and operator != "Exists":
        why = (
            "must be 'Exists' when scope is any of "
            "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort "
            "or ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        errors.append(invalid(path.child("operator"), named(operator), why))
    if operator in ("In", "NotIn"):
        if not values:
            why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required(path.child("values"), why))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(invalid(path.child("values"), values, why))
    else:
        errors.append(invalid(path.child("operator"), named(operator), "not a valid selector operator"))
    return errors


def _validate_conflicts(chosen: Iterable[str], scopes: object, path: FieldPath) -> list[FieldError]:
    distinct = set(chosen)
    return [invalid(path, scopes, "conflicting scopes") for pair in _CONFLICTING if pair <= distinct]


def _misapplied(scope: str, spec: Object) -> list[str]:
    """The limited resources that the scope cannot restrict."""
    names = sorted(spec.get("hard") or ())
    return [name for name in names if is_quota_name(name) and name not in _SCOPES.get(scope, (name,))]


_STATUS: Final = ResourceQuotaStatusStrategy()
