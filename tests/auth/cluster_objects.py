"""A reader over plain dictionaries, and short ways to write the objects of a logical cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcp.meta.codec import Object

RBAC = "rbac.authorization.k8s.io"


class FakeReader:
    """Implements `kcp.auth.reader.Reader`; counts what is read."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str, str, str], Object] = {}
        self.reads = 0

    def add(self, cluster: str, group: str, resource: str, obj: Object) -> Object:
        metadata = obj["metadata"]
        self._objects[cluster, group, resource, metadata.get("namespace", ""), metadata["name"]] = obj
        return obj

    def remove(self, cluster: str, group: str, resource: str, namespace: str, name: str) -> None:
        del self._objects[cluster, group, resource, namespace, name]

    def get(self, cluster: str, group: str, resource: str, namespace: str, name: str) -> Object | None:
        self.reads += 1
        return self._objects.get((cluster, group, resource, namespace, name))

    def list(self, cluster: str, group: str, resource: str, namespace: str | None) -> list[Object]:
        self.reads += 1
        return [
            obj
            for key, obj in sorted(self._objects.items())
            if key[:3] == (cluster, group, resource) and namespace in (None, key[3])
        ]

    def role(self, cluster: str, namespace: str, name: str, *rules: Object) -> None:
        self.add(cluster, RBAC, "roles", {"metadata": {"name": name, "namespace": namespace}, "rules": list(rules)})

    def cluster_role(self, cluster: str, name: str, *rules: Object) -> None:
        self.add(cluster, RBAC, "clusterroles", {"metadata": {"name": name}, "rules": list(rules)})

    def bind(self, cluster: str, namespace: str, name: str, role: str, *subjects: Object) -> None:
        """Bind `Role/name` or `ClusterRole/name`; without a namespace it is a ClusterRoleBinding."""
        self.add(
            cluster,
            RBAC,
            "rolebindings" if namespace else "clusterrolebindings",
            binding(name, role, *subjects, namespace=namespace),
        )


def binding(name: str, role: str, *subjects: Object, namespace: str = "") -> Object:
    kind, _, role_name = role.partition("/")
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    ref = {"apiGroup": RBAC, "kind": kind, "name": role_name}
    return {"metadata": metadata, "roleRef": ref, "subjects": list(subjects)}


def user(name: str) -> Object:
    return {"kind": "User", "apiGroup": RBAC, "name": name}


def group(name: str) -> Object:
    return {"kind": "Group", "apiGroup": RBAC, "name": name}


def account(name: str, namespace: str = "") -> Object:
    subject: dict[str, Any] = {"kind": "ServiceAccount", "name": name}
    return subject | ({"namespace": namespace} if namespace else {})


def allow(verbs: str, resources: str, *, groups: str = "", names: str = "") -> Object:
    """A rule from lists in words; the empty API group is the word for none."""
    rule: dict[str, Any] = {
        "verbs": verbs.split(),
        "apiGroups": groups.split() or [""],
        "resources": resources.split(),
    }
    return rule | ({"resourceNames": names.split()} if names else {})


def allow_urls(verbs: str, urls: str) -> Object:
    return {"verbs": verbs.split(), "nonResourceURLs": urls.split()}


def service_account(name: str = "bot", namespace: str = "ns", uid: str = "uid-1") -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "uid": uid}}


def secret(name: str = "s", namespace: str = "ns", uid: str = "uid-s") -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "uid": uid}}
