"""RBAC policy rules: what a rule allows, whether some rules cover others, and how Kubernetes prints them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.meta.gotext import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kcp.meta.codec import Object

ALL: Final = "*"

# A rule of many groups, resources, verbs and names stands for their product. Past this many single permissions a rule
# that no other covers as a whole counts as missing as it stands: one request must not keep the server busy for minutes.
_MAX_SINGLE_PERMISSIONS: Final = 20_000

FULL_AUTHORITY: Final[tuple[Object, ...]] = (
    {"verbs": [ALL], "apiGroups": [ALL], "resources": [ALL]},
    {"verbs": [ALL], "nonResourceURLs": [ALL]},
)


class Rule(NamedTuple):
    """A policy rule prepared for matching. `*` among the verbs, groups or resources stands for all of them."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]  # empty: any
    urls: frozenset[str]
    url_prefixes: tuple[str, ...]  # of URLs with a trailing star

    def allows_resource(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether it allows this for the objects in `names`, or for all if there are none."""
        if verb not in self.verbs and ALL not in self.verbs:
            return False
        if group not in self.groups and ALL not in self.groups:
            return False
        if ALL in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources

    def allows_path(self, verb: str, path: str) -> bool:
        if verb not in self.verbs and ALL not in self.verbs:
            return False
        return path in self.urls or path.startswith(self.url_prefixes)


def compile_rule(rule: Object) -> Rule:
    urls = rule.get("nonResourceURLs") or ()
    return Rule(
        verbs=_set(rule, "verbs"),
        groups=_set(rule, "apiGroups"),
        resources=_set(rule, "resources"),
        names=_set(rule, "resourceNames"),
        urls=frozenset(urls),
        url_prefixes=tuple(url.rstrip("*") for url in urls if url.endswith("*")),
    )


def find_missing(owner_rules: Iterable[Object], servant_rules: Iterable[Object]) -> list[Object]:
    """The single permissions of `servant_rules` that no rule of `owner_rules` covers, in their order."""
    owners = [compile_rule(rule) for rule in owner_rules]
    missing: list[Object] = []
    for servant in servant_rules:
        if any(_covers(owner, servant) for owner in owners):
            continue
        if _count(servant) > _MAX_SINGLE_PERMISSIONS:
            missing.append(servant)
        else:
            missing += [
                single for single in _break_down(servant) if not any(_covers(owner, single) for owner in owners)
            ]
    return missing


def covers(owner_rules: Iterable[Object], servant_rules: Iterable[Object]) -> bool:
    return not find_missing(owner_rules, servant_rules)


def describe_missing(missing: Iterable[Object]) -> str:
    """The lines of an escalation error: verbs of the same resource together, sorted, each once."""
    return "\n".join(sorted({_describe(rule) for rule in _compact(missing)}))


def quote_list(values: Iterable[str]) -> str:
    """A []string under Go's verb %q."""
    return "[" + " ".join(map(quote, values)) + "]"


def _set(rule: Object, field: str) -> frozenset[str]:
    return frozenset(rule.get(field) or ())


def _covers(owner: Rule, servant: Object) -> bool:
    """Whether one rule alone covers the other entirely (policy_comparator.go)."""
    return (
        _has_all(owner.verbs, servant.get("verbs"))
        and _has_all(owner.groups, servant.get("apiGroups"))
        and _covers_resources(owner.resources, servant.get("resources") or ())
        and _covers_names(owner.names, servant.get("resourceNames"))
        and all(url in owner.urls or url.startswith(owner.url_prefixes) for url in servant.get("nonResourceURLs") or ())
    )


def _has_all(owned: frozenset[str], wanted: Sequence[str] | None) -> bool:
    return ALL in owned or owned.issuperset(wanted or ())


def _covers_resources(owned: frozenset[str], wanted: Sequence[str]) -> bool:
    if ALL in owned:
        return True
    for resource in wanted:
        _, slash, subresource = resource.partition("/")
        if resource not in owned and not (slash and f"*/{subresource}" in owned):
            return False
    return True


def _covers_names(owned: frozenset[str], wanted: Sequence[str] | None) -> bool:
    return not owned or (bool(wanted) and owned.issuperset(wanted or ()))


def _count(rule: Object) -> int:
    verbs = len(rule.get("verbs") or ())
    named = len(rule.get("resourceNames") or ()) or 1
    resources = len(rule.get("apiGroups") or ()) * len(rule.get("resources") or ()) * named
    return verbs * (resources + len(rule.get("nonResourceURLs") or ()))


def _break_down(rule: Object) -> list[Object]:
    verbs, names = rule.get("verbs") or (), rule.get("resourceNames") or ()
    singles: list[Object] = []
    for group, resource, verb in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs):
        single: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        singles += [{**single, "resourceNames": [name]} for name in names] if names else [single]
    return singles + [
        {"nonResourceURLs": [url], "verbs": [verb]} for url in rule.get("nonResourceURLs") or () for verb in verbs
    ]


def _compact(rules: Iterable[Object]) -> list[Object]:
    """Join rules that differ in their verbs only; those for URLs and those of several resources stay as they are."""
    kept: list[Object] = []
    by_resource: dict[tuple[str, str, tuple[str, ...]], Object] = {}
    for rule in rules:
        groups, resources = rule.get("apiGroups") or [], rule.get("resources") or []
        names = tuple(rule.get("resourceNames") or ())
        if rule.get("nonResourceURLs") or len(groups) != 1 or len(resources) != 1 or len(names) > 1:
            kept.append(rule)
            continue
        joined = by_resource.setdefault((groups[0], resources[0], names), {**rule, "verbs": []})
        joined["verbs"] += rule.get("verbs") or ()
    return kept + list(by_resource.values())


def _describe(rule: Object) -> str:
    titles = (
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    )
    return "{" + ", ".join(f"{title}:{quote_list(rule[field])}" for title, field in titles if rule.get(field)) + "}"
