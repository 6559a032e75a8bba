"""Whether a rule, a namespace selector and an object selector are about a write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.admission.attributes import Operation
from kcp.meta import errors, labels
from kcp.meta.gvk import GroupResource, GroupVersionResource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.admission.attributes import Attributes
    from kcp.admission.configuration import Kinds
    from kcp.auth.reader import Reader
    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind

_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")


class Match(NamedTuple):
    """The resource and kind that the rule was written for: the request's, or an equivalent one."""

    gvr: GroupVersionResource
    gvk: GroupVersionKind


@dataclass(frozen=True, slots=True)
class Rule:
    """RuleWithOperations, and the names that policies may add."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]  # resource and subresource
    scope: str = "*"
    names: frozenset[str] = frozenset()

    def matches(self, a: Attributes, gvr: GroupVersionResource) -> bool:
        return (
            self._matches_scope(a, gvr)
            and _has(self.operations, a.operation.value)
            and _has(self.groups, gvr.group)
            and _has(self.versions, gvr.version)
            and any(
                resource in ("*", gvr.resource) and subresource in ("*", a.subresource)
                for resource, subresource in self.resources
            )
            and (not self.names or a.name in self.names)
        )

    def _matches_scope(self, a: Attributes, gvr: GroupVersionResource) -> bool:
        if self.scope == "*":
            return True
        is_cluster_scoped = not a.namespace or gvr == _NAMESPACES
        return is_cluster_scoped is (self.scope == "Cluster")


def parse_rule(rule: Object) -> Rule:
    resources = (entry.partition("/") for entry in rule.get("resources") or ())
    return Rule(
        operations=frozenset(rule.get("operations") or ()),
        groups=frozenset(rule.get("apiGroups") or ()),
        versions=frozenset(rule.get("apiVersions") or ()),
        resources=tuple((resource, subresource) for resource, _, subresource in resources),
        scope=rule.get("scope") or "*",
        names=frozenset(rule.get("resourceNames") or ()),
    )


@dataclass(frozen=True, slots=True)
class Criteria:
    """MatchResources of a policy or binding, or the matching part of a webhook."""

    rules: tuple[Rule, ...]
    excluded: tuple[Rule, ...]
    is_equivalent: bool
    namespace_selector: labels.Selector
    object_selector: labels.Selector
    matches_without_rules: bool


def parse_criteria(source: Object, rules: Iterable[Object], *, matches_without_rules: bool) -> Criteria:
    """Raises SelectorSyntaxError; what the API server accepts has none."""
    return Criteria(
        rules=tuple(map(parse_rule, rules)),
        excluded=tuple(map(parse_rule, source.get("excludeResourceRules") or ())),
        is_equivalent=source.get("matchPolicy", "Equivalent") == "Equivalent",
        namespace_selector=labels.from_label_selector(source.get("namespaceSelector") or {}),
        object_selector=labels.from_label_selector(source.get("objectSelector") or {}),
        matches_without_rules=matches_without_rules,
    )


class Matcher:
    """Answers for the objects of all logical clusters."""

    def __init__(self, reader: Reader, kinds: Kinds) -> None:
        self._reader = reader
        self._kinds = kinds

    def match(self, criteria: Criteria, a: Attributes) -> Match | None:
        """None if the write is not meant. Raises NotFound if its namespace is missing."""
        if criteria.excluded and self._match_rules(criteria.excluded, criteria, a) is not None:
            return None
        matched = (
            Match(a.gvr, a.gvk)
            if not criteria.rules and criteria.matches_without_rules
            else self._match_rules(criteria.rules, criteria, a)
        )
        if matched is None or not _matches_object(criteria.object_selector, a):
            return None
        return matched if self._matches_namespace(criteria.namespace_selector, a) else None

    def _match_rules(self, rules: tuple[Rule, ...], criteria: Criteria, a: Attributes) -> Match | None:
        for rule in rules:
            if rule.matches(a, a.gvr):
                return Match(a.gvr, a.gvk)
        if not rules or not criteria.is_equivalent:
            return None
        equivalents = self._kinds.equivalents(a.cluster, a.gvr)
        for rule in rules:
            for gvr, gvk in equivalents:
                if gvr != a.gvr and rule.matches(a, gvr):
                    return Match(gvr, gvk)
        return None

    def _matches_namespace(self, selector: labels.Selector, a: Attributes) -> bool:
        if selector.is_empty or (not a.namespace and a.gvr.resource != "namespaces"):
            return True
        return selector.matches(self._namespace_labels(a))

    def _namespace_labels(self, a: Attributes) -> dict[str, str]:
        if a.gvr.resource == "namespaces" and not a.subresource and a.operation is not Operation.DELETE:
            return _labels(a.obj)
        namespace = self.namespace_of(a)
        return _labels(namespace)

    def namespace_of(self, a: Attributes) -> Object:
        """The namespace that the write is about. Raises NotFound."""
        namespace = self._reader.get(a.cluster, "", "namespaces", "", a.namespace)
        if namespace is None:
            raise errors.NotFound(GroupResource("", "namespaces"), a.namespace)
        return namespace


def _matches_object(selector: labels.Selector, a: Attributes) -> bool:
    if selector.is_empty:
        return True
    return any(obj is not None and selector.matches(_labels(obj)) for obj in (a.obj, a.old_obj))


def _labels(obj: Object | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _has(items: frozenset[str], item: str) -> bool:
    return item in items or "*" in items
