"""Roles and their bindings. Whether the user may grant what they grant is asked elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kcp.meta import labels
from kcp.meta.field import FieldPath, invalid, not_supported, required
from kcp.meta.validation import check_dns1123_subdomain, check_path_segment_name
from kcp.registry.gostruct import GoStruct
from kcp.registry.strategies.kind import BuiltinStrategy, Step
from kcp.registry.strategies.selectors import validate_label_selector

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext

GROUP: Final = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT: Final = "ServiceAccount"
USER: Final = "User"
GROUP_KIND: Final = "Group"
_SELECTORS: Final = FieldPath("aggregationRule.clusterRoleSelectors")
_ROLE_REF: Final = (("apiGroup", "APIGroup", ""), ("kind", "Kind", ""), ("name", "Name", ""))


class _RBACStrategy(BuiltinStrategy):
    allow_create_on_update = True

    def check_name(self, name: str) -> list[str]:
        return check_path_segment_name(name)

    def check_generate_name(self, name: str) -> list[str]:
        return check_path_segment_name(name)


class RoleStrategy(_RBACStrategy):
    update_steps = (Step.METADATA, Step.CONTENT, Step.METADATA_UPDATE)

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return _validate_rules(obj, namespaced=True)


class ClusterRoleStrategy(_RBACStrategy):
    namespaced = False
    update_steps = (Step.METADATA, Step.TRANSITION, Step.METADATA_UPDATE)

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return _validate_cluster_role(obj, allow_invalid_values=False)

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        stored = (old.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        has_invalid_values = any(validate_label_selector(selector, FieldPath()) for selector in stored)
        return _validate_cluster_role(obj, allow_invalid_values=has_invalid_values)


class RoleBindingStrategy(_RBACStrategy):
    update_steps = (Step.METADATA, Step.CONTENT, Step.METADATA_UPDATE, Step.TRANSITION)
    role_kinds: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")

    def default(self, obj: Object) -> None:
        role_ref = obj.get("roleRef") or {}
        if not role_ref.get("apiGroup"):
            obj["roleRef"] = {**role_ref, "apiGroup": GROUP}
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in (USER, GROUP_KIND):
                subject["apiGroup"] = GROUP

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        errors = _validate_role_ref(obj.get("roleRef") or {}, self.role_kinds)
        for position, subject in enumerate(obj.get("subjects") or ()):
            errors += _validate_subject(subject, FieldPath("subjects").index(position), namespaced=self.namespaced)
        return errors

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        role_ref = obj.get("roleRef") or {}
        if role_ref == old.get("roleRef"):
            return []
        return [invalid(FieldPath("roleRef"), GoStruct.of(role_ref, _ROLE_REF), "cannot change roleRef")]


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    namespaced = False
    role_kinds = ("ClusterRole",)


def _validate_cluster_role(obj: Object, *, allow_invalid_values: bool) -> list[FieldError]:
    errors = _validate_rules(obj, namespaced=False)
    aggregation_rule = obj.get("aggregationRule")
    if aggregation_rule is None:
        return errors
    selectors = aggregation_rule.get("clusterRoleSelectors") or ()
    if not selectors:
        errors.append(required(_SELECTORS, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
    for position, selector in enumerate(selectors):
        path = _SELECTORS.index(position)
        errors += validate_label_selector(selector, path, allow_invalid_values=allow_invalid_values)
        try:
            labels.from_label_selector(selector)
        except labels.SelectorSyntaxError:
            errors.append(invalid(path, None, "invalid label selector."))
    return errors


def _validate_rules(obj: Object, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, rule in enumerate(obj.get("rules") or ()):
        errors += _validate_rule(rule, FieldPath("rules").index(position), namespaced=namespaced)
    return errors


def _validate_rule(rule: Object, path: FieldPath, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not rule.get("verbs"):
        errors.append(required(path.child("verbs"), "verbs must contain at least one value"))
    if urls := rule.get("nonResourceURLs"):
        where = path.child("nonResourceURLs")
        if namespaced:
            errors.append(invalid(where, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(where, urls, why))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(path.child("apiGroups"), "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(path.child("resources"), "resource rules must supply at least one resource"))
    return errors


def _validate_role_ref(role_ref: Object, kinds: tuple[str, ...]) -> list[FieldError]:
    path = FieldPath("roleRef")
    group, kind, name = (role_ref.get(field, "") for field in ("apiGroup", "kind", "name"))
    errors = [] if group == GROUP else [not_supported(path.child("apiGroup"), group, (GROUP,))]
    if kind not in kinds:
        errors.append(not_supported(path.child("kind"), kind, kinds))
    if not name:
        errors.append(required(path.child("name")))
    return errors + [invalid(path.child("name"), name, why) for why in check_path_segment_name(name)]


def _validate_subject(subject: Object, path: FieldPath, *, namespaced: bool) -> list[FieldError]:
    group, kind, name = (subject.get(field, "") for field in ("apiGroup", "kind", "name"))
    errors = [] if name else [required(path.child("name"))]
    match kind:
        case "ServiceAccount":
            if name:
                errors += [invalid(path.child("name"), name, why) for why in check_dns1123_subdomain(name)]
            if group:
                errors.append(not_supported(path.child("apiGroup"), group, ("",)))
            if not namespaced and not subject.get("namespace"):
                errors.append(required(path.child("namespace")))
        case "User" | "Group":
            if group != GROUP:
                errors.append(not_supported(path.child("apiGroup"), group, (GROUP,)))
        case _:
            errors.append(not_supported(path.child("kind"), kind, (SERVICE_ACCOUNT, USER, GROUP_KIND)))
    return errors
