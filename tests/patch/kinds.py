"""Schemas and small objects for the tests of this room."""

from datetime import UTC, datetime
from typing import Any

from kcp.meta.codec import Object
from kcp.meta.gvk import GroupVersionKind
from kcp.patch.managed_fields import WriteScope
from kcp.patch.merge_schema import MergeSchema

NOW = datetime(2025, 6, 1, 12, 0, 0, tzinfo=UTC)
LATER = datetime(2025, 6, 1, 13, 0, 0, tzinfo=UTC)

TEXT: Object = {"type": "string"}
TEXTS: Object = {"type": "object", "additionalProperties": {"type": "string", "default": ""}}
PREFIX = "#/components/schemas/"


def ref(name: str, **more: Any) -> Object:  # noqa: ANN401 - OpenAPI extensions
    return {"allOf": [{"$ref": PREFIX + name}], "default": {}, **more}


DEFINITIONS: dict[str, Object] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "name": TEXT,
            "namespace": TEXT,
            "uid": TEXT,
            "creationTimestamp": {"type": "string", "format": "date-time"},
            "labels": TEXTS,
            "annotations": TEXTS,
            "finalizers": {
                "type": "array",
                "items": TEXT,
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
            "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
        },
    },
    "io.k8s.api.core.v1.ConfigMap": {
        "type": "object",
        "properties": {
            "apiVersion": TEXT,
            "kind": TEXT,
            "metadata": ref("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
            "data": TEXTS,
            "immutable": {"type": "boolean"},
        },
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMap"}],
    },
    "io.k8s.api.core.v1.ServicePort": {
        "type": "object",
        "required": ["port"],
        "properties": {
            "name": TEXT,
            "port": {"type": "integer", "default": 0},
            "protocol": {"type": "string", "default": "TCP"},
            "targetPort": {"$ref": PREFIX + "io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
        },
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"format": "int-or-string"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    "io.k8s.api.core.v1.ServiceSpec": {
        "type": "object",
        "required": ["hosts"],
        "properties": {
            "clusterIP": TEXT,
            "hosts": {"type": "array", "items": TEXT},
            "type": TEXT,
            "strategy": {
                "$ref": PREFIX + "io.k8s.api.core.v1.Strategy",
                "x-kubernetes-patch-strategy": "retainKeys",
            },
            "replaced": {**TEXTS, "x-kubernetes-patch-strategy": "replace"},
            "selector": {**TEXTS, "x-kubernetes-map-type": "atomic"},
            "extra": {"type": "object", "additionalProperties": {"type": "array", "items": TEXT}},
            "raw": {"$ref": PREFIX + "io.k8s.apimachinery.pkg.runtime.RawExtension"},
            "limits": {
                "type": "object",
                "additionalProperties": {"$ref": PREFIX + "io.k8s.apimachinery.pkg.api.resource.Quantity"},
            },
            "ports": {
                "type": "array",
                "items": ref("io.k8s.api.core.v1.ServicePort"),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "x-kubernetes-patch-merge-key": "port",
                "x-kubernetes-patch-strategy": "merge",
            },
            "keyless": {
                "type": "array",
                "items": ref("io.k8s.api.core.v1.ServicePort"),
                "x-kubernetes-patch-strategy": "merge",
            },
            "named": {
                "type": "array",
                "items": ref("io.k8s.api.core.v1.ServicePort"),
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge,retainKeys",
            },
        },
    },
    "io.k8s.api.core.v1.Strategy": {
        "type": "object",
        "properties": {"type": TEXT, "rollingUpdate": TEXTS, "list": {"type": "array", "items": TEXT}},
    },
    "io.k8s.api.core.v1.Service": {
        "type": "object",
        "properties": {
            "apiVersion": TEXT,
            "kind": TEXT,
            "metadata": ref("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
            "spec": ref("io.k8s.api.core.v1.ServiceSpec"),
            "status": TEXTS,
        },
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Service"}],
    },
    "io.k8s.api.core.v1.Tree": {
        "type": "object",
        "properties": {
            "children": {"type": "object", "additionalProperties": {"$ref": PREFIX + "io.k8s.api.core.v1.Tree"}}
        },
    },
}

CONFIG_MAP = MergeSchema.from_openapi(DEFINITIONS["io.k8s.api.core.v1.ConfigMap"], DEFINITIONS)
SERVICE = MergeSchema.from_openapi({"$ref": PREFIX + "io.k8s.api.core.v1.Service"}, DEFINITIONS)

# What the conformance suite uses to look at all kinds of lists.
WIDGET_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "s": TEXT,
                "b": {"type": "boolean"},
                "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                "numbers": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
                "map": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {"name": TEXT, "port": {"type": "integer"}, "proto": TEXT},
                    },
                },
                "atomic": {"type": "array", "items": TEXT},
                "whole": {**TEXTS, "x-kubernetes-map-type": "atomic"},
                "labels": TEXTS,
                "nested": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "port": {"x-kubernetes-int-or-string": True},
                "template": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": TEXT}},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
WIDGET = MergeSchema.from_openapi(WIDGET_SCHEMA, {}, custom=True)

CONFIG_MAPS = WriteScope(GroupVersionKind("", "v1", "ConfigMap"), CONFIG_MAP)
SERVICES = WriteScope(GroupVersionKind("", "v1", "Service"), SERVICE)
WIDGETS = WriteScope(GroupVersionKind("conf.test", "v1", "Widget"), WIDGET)


def config_map(data: Object | None = None, **metadata: Any) -> Object:  # noqa: ANN401
    obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return obj if data is None else {**obj, "data": data}


def widget(spec: Object | None = None, **more: Any) -> Object:  # noqa: ANN401
    obj: Object = {"apiVersion": "conf.test/v1", "kind": "Widget", "metadata": {"name": "a"}, **more}
    return obj if spec is None else {**obj, "spec": spec}


def managers_of(obj: Object) -> dict[str, Object]:
    """The fields of each manager, by its name; an updater's is followed by its operation's first letter."""
    entries = obj["metadata"].get("managedFields", [])
    return {f"{entry.get('manager')}/{entry['operation'][0]}": entry["fieldsV1"] for entry in entries}
