"""Role-based access control: which bindings of a logical cluster apply to a user, and what they allow.

    authorize(alice, get configmaps in "ns")
      policy of the cluster                  (LRU; forgotten when one of its RBAC objects changes)
        alice and her groups in "ns"         (the bindings that name her, from the cluster and from `system:admin`)
          verdict on (get, "", configmaps)   (for all names, or by name where rules have resourceNames)

Each step is remembered, so that a repeated question costs three dictionary look-ups, whatever the object's name.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.auth import bootstrap
from kcp.auth.attributes import Decision
from kcp.auth.rules import compile_rule
from kcp.auth.service_accounts import effective_user, make_username
from kcp.meta import wellknown
from kcp.meta.gotext import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kcp.auth.attributes import Attributes
    from kcp.auth.reader import Reader
    from kcp.auth.rules import Rule
    from kcp.auth.user import UserInfo
    from kcp.meta.codec import Object

MAX_CLUSTERS: Final = 4096  # logical clusters whose policy is kept compiled
MAX_VERDICTS: Final = 200_000  # over all of them; about 60 MB

_GROUP: Final = bootstrap.GROUP


class RoleRef(NamedTuple):
    kind: str
    namespace: str  # of the binding; empty for a ClusterRoleBinding
    name: str


class Grant(NamedTuple):
    """One binding, as it applies to one of its subjects. `position` keeps the order of bindings and subjects."""

    position: tuple[int, int]
    role: RoleRef
    source: str


class Verdict(NamedTuple):
    """What a user may do with a resource: `otherwise` for any name that is not in `names`."""

    names: dict[str, Decision]
    otherwise: Decision


class Role(NamedTuple):
    """The rules of a role, as they are written and as they are matched."""

    rules: list[Object]
    compiled: list[Rule]


class Rules(NamedTuple):
    """What a user may do in a namespace. `missing` are roles that bindings name but that do not exist."""

    rules: list[Object]
    missing: list[RoleRef]


class _Bindings:
    """The bindings of one scope, by the user and group names of their subjects."""

    def __init__(self, bindings: Iterable[Object], namespace: str) -> None:
        self._by_user: dict[str, list[Grant]] = {}
        self._by_group: dict[str, list[Grant]] = {}
        for number, binding in enumerate(bindings):
            self._add(binding, namespace, number)

    def of(self, user: UserInfo) -> list[Grant]:
        """One grant for each binding that applies, for the first subject that it names of the user."""
        found = list(self._by_user.get(user.name, ()))
        for group in user.groups:
            found += self._by_group.get(group, ())
        first: dict[int, Grant] = {}
        for grant in sorted(found):
            first.setdefault(grant.position[0], grant)
        return list(first.values())

    def _add(self, binding: Object, namespace: str, number: int) -> None:
        name, ref = binding["metadata"]["name"], binding["roleRef"]
        role = RoleRef(ref.get("kind", ""), namespace, ref.get("name", ""))
        title = f"RoleBinding {quote(f'{name}/{namespace}')}" if namespace else f"ClusterRoleBinding {quote(name)}"
        for place, subject in enumerate(binding.get("subjects") or ()):
            kind, subject_name = subject.get("kind"), subject.get("name", "")
            home = subject.get("namespace") or namespace
            shown = f"{subject_name}/{home}" if kind == "ServiceAccount" else subject_name
            source = f"{title} of {role.kind} {quote(role.name)} to {kind} {quote(shown)}"
            grant = Grant((number, place), role, source)
            if kind == "User":
                self._by_user.setdefault(subject_name, []).append(grant)
            elif kind == "Group":
                self._by_group.setdefault(subject_name, []).append(grant)
            elif kind == "ServiceAccount" and home:
                self._by_user.setdefault(make_username(home, subject_name), []).append(grant)


class Policy:
    """The RBAC objects of one logical cluster, read when first needed. `parent` is the policy of `system:admin`."""

    def __init__(self, cluster: str, reader: Reader, parent: Policy | None) -> None:
        self.cluster = cluster
        self.parent = parent
        self.verdicts: dict[tuple[str, tuple[str, ...], str], dict[tuple[str, ...], Verdict]] = {}
        self._reader = reader
        self._bindings: dict[str, _Bindings] = {}
        self._roles: dict[RoleRef, Role] = {}

    def grants(self, user: UserInfo, namespace: str) -> Iterator[tuple[Grant, Role | None]]:
        """The bindings that apply, those for all clusters first; None for a role that does not exist."""
        if self.parent is not None:
            yield from self.parent.grants(user, "")
        scopes = ("", namespace) if namespace else ("",)
        for scope in scopes:
            for grant in self._bindings_in(scope).of(user):
                yield grant, self.role(grant.role)

    def role(self, ref: RoleRef) -> Role | None:
        """A role, looked for here and then among those that every cluster has."""
        role = self._roles.get(ref)
        if role is not None:
            return role
        found = self._read_role(ref)
        if found is not None:
            rules = found.get("rules") or []
            role = self._roles[ref] = Role(rules, [compile_rule(rule) for rule in rules])
            return role
        # Not remembered: clients may ask for any number of roles that do not exist.
        return self.parent.role(ref._replace(namespace="")) if self.parent and ref.kind == "ClusterRole" else None

    def _read_role(self, ref: RoleRef) -> Object | None:
        if ref.kind == "ClusterRole":
            return self._reader.get(self.cluster, _GROUP, "clusterroles", "", ref.name)
        if ref.kind == "Role" and ref.namespace:
            return self._reader.get(self.cluster, _GROUP, "roles", ref.namespace, ref.name)
        return None

    def _bindings_in(self, namespace: str) -> _Bindings:
        bindings = self._bindings.get(namespace)
        if bindings is None:
            resource, scope = ("rolebindings", namespace) if namespace else ("clusterrolebindings", None)
            found = self._reader.list(self.cluster, _GROUP, resource, scope)
            bindings = self._bindings[namespace] = _Bindings(found, namespace)
        return bindings


class _WithBootstrap:
    """`system:admin` as it is stored, and the built-in policy for what is not stored there."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._built_in = {
            "clusterroles": {role["metadata"]["name"]: role for role in bootstrap.cluster_roles()},
            "clusterrolebindings": {item["metadata"]["name"]: item for item in bootstrap.cluster_role_bindings()},
        }

    def get(self, cluster: str, group: str, resource: str, namespace: str, name: str) -> Object | None:
        stored = self._reader.get(cluster, group, resource, namespace, name)
        return stored if stored is not None else self._built_in.get(resource, {}).get(name)

    def list(self, cluster: str, group: str, resource: str, namespace: str | None) -> list[Object]:
        stored = {item["metadata"]["name"]: item for item in self._reader.list(cluster, group, resource, namespace)}
        return list((self._built_in.get(resource, {}) | stored).values())


class RBACAuthorizer:
    """Decides by the roles and bindings of a logical cluster and those of `system:admin`, which hold everywhere."""

    def __init__(self, reader: Reader, *, max_clusters: int = MAX_CLUSTERS, max_verdicts: int = MAX_VERDICTS) -> None:
        self._reader = reader
        self._admin_reader = _WithBootstrap(reader)
        self._max_clusters = max_clusters
        self._max_verdicts = max_verdicts
        self._admin_policy = Policy(wellknown.ADMIN_CLUSTER, self._admin_reader, None)
        self._policies: OrderedDict[str, Policy] = OrderedDict()
        self._verdict_count = 0

    def authorize(self, attributes: Attributes) -> Decision:
        """Allowed by which binding, or not; then the reason names roles that are bound to the user but missing."""
        user, verb, cluster, group, _, resource, subresource, namespace, name, path = attributes
        user = effective_user(user, cluster)
        verdicts = self.policy(cluster).verdicts.get((user.name, user.groups, namespace))
        # No path: a question about a resource, even if it does not say which.
        key = (verb, group, resource, subresource) if resource or not path else (verb, path)
        verdict = verdicts.get(key) if verdicts is not None else None
        if verdict is None:
            verdict = self._decide(user, cluster, namespace, key)
        return verdict.names.get(name, verdict.otherwise) if verdict.names else verdict.otherwise

    def rules_for(self, user: UserInfo, cluster: str, namespace: str) -> Rules:
        """Everything the user may do in a namespace, or cluster-wide if that is empty."""
        rules: list[Object] = []
        missing: list[RoleRef] = []
        for grant, role in self.policy(cluster).grants(effective_user(user, cluster), namespace):
            if role is None:
                missing.append(grant.role)
            else:
                rules += role.rules
        return Rules(rules, missing)

    def policy(self, cluster: str) -> Policy:
        policy = self._policies.get(cluster)
        if policy is not None:
            self._policies.move_to_end(cluster)
            return policy
        if cluster == wellknown.ADMIN_CLUSTER:
            return self._admin_policy
        policy = self._policies[cluster] = Policy(cluster, self._reader, self._admin_policy)
        if len(self._policies) > self._max_clusters:
            self._policies.popitem(last=False)
        return policy

    def forget(self, cluster: str) -> None:
        """To be called when a role or binding of the cluster has changed."""
        if cluster == wellknown.ADMIN_CLUSTER:
            self._admin_policy = Policy(wellknown.ADMIN_CLUSTER, self._admin_reader, None)
            self._policies.clear()
            self._verdict_count = 0
        else:
            self._policies.pop(cluster, None)

    def _decide(self, user: UserInfo, cluster: str, namespace: str, key: tuple[str, ...]) -> Verdict:
        if self._verdict_count >= self._max_verdicts:
            # Starting afresh is rare and costs each cluster one reading of its bindings.
            self._policies.clear()
            self._admin_policy.verdicts.clear()
            self._verdict_count = 0
        policy = self.policy(cluster)
        verdict = _make_verdict(policy.grants(user, namespace), key)
        policy.verdicts.setdefault((user.name, user.groups, namespace), {})[key] = verdict
        self._verdict_count += 1
        return verdict


def describe_not_found(resource: str, ref: RoleRef) -> str:
    """Why a role reference leads nowhere; `resource` is how the reader calls what it looked for."""
    if ref.kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {quote(ref.kind)}"
    return f"{resource}.{_GROUP} {quote(ref.name)} not found"


def join_errors(errors: Iterable[str]) -> str:
    """Several errors as one text, each once."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _make_verdict(grants: Iterable[tuple[Grant, Role | None]], key: tuple[str, ...]) -> Verdict:
    names: dict[str, Decision] = {}
    errors: list[str] = []
    for grant, role in grants:
        if role is None:
            errors.append(describe_not_found(grant.role.kind.lower(), grant.role))
            continue
        for rule in role.compiled:
            if not _allows(rule, key):
                continue
            decision = Decision(True, f"RBAC: allowed by {grant.source}")
            if not rule.names or len(key) == 2:
                return Verdict(names, decision)
            for name in rule.names:
                names.setdefault(name, decision)
    return Verdict(names, Decision(False, f"RBAC: {join_errors(errors)}" if errors else ""))


def _allows(rule: Rule, key: tuple[str, ...]) -> bool:
    if len(key) == 2:
        verb, path = key
        return rule.allows_path(verb, path)
    verb, group, resource, subresource = key
    return rule.allows_resource(verb, group, resource, subresource)
