"""Stand-ins for what admission asks of the rest of the server."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from kcp.admission.attributes import Attributes, Operation
from kcp.auth.attributes import Decision
from kcp.auth.user import UserInfo
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kcp.auth.attributes import Attributes as Question
    from kcp.meta.codec import Object

CLUSTER = "root:here"
ADMISSION = "admissionregistration.k8s.io"
WIDGETS = GroupVersionResource("conf.test", "v1", "widgets")
WIDGET = GroupVersionKind("conf.test", "v1", "Widget")
OLD_WIDGETS = GroupVersionResource("conf.test", "v1beta1", "widgets")
OLD_WIDGET = GroupVersionKind("conf.test", "v1beta1", "Widget")
JANE = UserInfo("jane", uid="7", groups=("devs",), extra={"scope": ("a", "b")})


class FakeReader:
    """Objects by cluster, group, resource, namespace and name; counts the lists it was asked for."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str, str, str], Object] = {}
        self.lists = 0

    def add(self, group: str, resource: str, obj: Object, cluster: str = CLUSTER) -> Object:
        metadata = obj["metadata"]
        self.objects[cluster, group, resource, metadata.get("namespace", ""), metadata["name"]] = obj
        return obj

    def add_namespace(self, name: str, **more: Any) -> Object:  # noqa: ANN401 - parts of an object
        namespace = {"metadata": {"name": name}, "status": {"phase": "Active"}} | more
        return self.add("", "namespaces", namespace)

    def get(self, cluster: str, group: str, resource: str, namespace: str, name: str) -> Object | None:
        return self.objects.get((cluster, group, resource, namespace, name))

    def list(self, cluster: str, group: str, resource: str, namespace: str | None) -> list[Object]:
        self.lists += 1
        return [
            copy.deepcopy(obj)
            for key, obj in sorted(self.objects.items(), key=lambda item: item[0])
            if key[:3] == (cluster, group, resource) and namespace in (None, key[3])
        ]


class FakeKinds:
    """Widgets exist in two versions, of which the older one calls its field `size` and not `n`."""

    def equivalents(
        self, cluster: str, gvr: GroupVersionResource
    ) -> Sequence[tuple[GroupVersionResource, GroupVersionKind]]:
        return [(WIDGETS, WIDGET), (OLD_WIDGETS, OLD_WIDGET)] if gvr.resource == "widgets" else []

    def convert(self, cluster: str, obj: Object, gvk: GroupVersionKind) -> Object:
        converted = copy.deepcopy(obj) | {"apiVersion": gvk.api_version}
        old, new = ("n", "size") if gvk == OLD_WIDGET else ("size", "n")
        spec = converted.get("spec") or {}
        if old in spec:
            spec[new] = spec.pop(old)
        return converted

    def decode(self, cluster: str, obj: Object, gvk: GroupVersionKind) -> Object:
        if obj.get("spec", {}).get("n") == "bad":
            raise ValueError("n must be a number")
        obj.get("spec", {}).pop("unknown", None)
        return obj

    def resource_for(self, cluster: str, gvk: GroupVersionKind) -> tuple[GroupVersionResource, bool] | None:
        known = {
            WIDGET: (WIDGETS, True),
            GroupVersionKind("", "v1", "ConfigMap"): (GroupVersionResource("", "v1", "configmaps"), True),
            GroupVersionKind("conf.test", "v1", "Limit"): (GroupVersionResource("conf.test", "v1", "limits"), False),
        }
        return known.get(gvk)


class FakeAuthorizer:
    """Allows what is listed as (user, verb, resource or path, name)."""

    def __init__(self, *allowed: tuple[str, str, str, str]) -> None:
        self.allowed = set(allowed)
        self.questions: list[Question] = []

    def authorize(self, question: Question) -> Decision:
        self.questions.append(question)
        asked = (question.user.name, question.verb, question.resource or question.path, question.name)
        return Decision(asked in self.allowed, "listed" if asked in self.allowed else "")


def widget(name: str = "a", labels: Mapping[str, str] | None = None, **spec: Any) -> Object:  # noqa: ANN401
    metadata: Object = {"name": name, "namespace": "ns"}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": "conf.test/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def write(obj: Object | None = None, **more: Any) -> Attributes:  # noqa: ANN401
    """The creation of a widget, unless `more` says otherwise."""
    attributes: dict[str, Any] = {
        "operation": Operation.CREATE,
        "cluster": CLUSTER,
        "gvr": WIDGETS,
        "gvk": WIDGET,
        "namespace": "ns",
        "name": (obj or {}).get("metadata", {}).get("name", ""),
        "user": JANE,
        "obj": obj,
    }
    return Attributes(**(attributes | more))
