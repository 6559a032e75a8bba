"""OpenAPI documents, as kubectl and other clients read them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from kcp.apis import openapi
from kcp.meta.gvk import GroupVersion, GroupVersionKind
from kcp.schema.openapi import CustomKind, build_v2, build_v3, build_v3_index, v3_path
from kcp.schema.openapi.custom import definitions_v2, definitions_v3

WIDGET = GroupVersionKind("conf.test", "v1", "Widget")
V3 = "#/components/schemas/"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def widgets(schema: dict[str, Any] | None, **options: Any) -> CustomKind:  # noqa: ANN401
    return CustomKind(WIDGET, "WidgetList", "widgets", options.pop("namespaced", True), schema, **options)


def v3_of(group_version: GroupVersion, *custom_kinds: CustomKind) -> dict[str, Any]:
    resources = [resource for resource in openapi.published() if resource.gvk.group_version == group_version]
    body, _ = build_v3(group_version, resources, custom_kinds, openapi.definitions(), version="v1.35.0")
    document: dict[str, Any] = json.loads(body)
    return document


def v2_of(*custom_kinds: CustomKind) -> dict[str, Any]:
    body, _ = build_v2(openapi.published(), custom_kinds, openapi.definitions(), version="v1.35.0")
    document: dict[str, Any] = json.loads(body)
    return document


CORE = GroupVersion("", "v1")
RBAC = GroupVersion("rbac.authorization.k8s.io", "v1")


# Recorded from Kubernetes' own document.
@pytest.mark.parametrize(
    ("path", "method", "operation_id", "action"),
    [
        ("/api/v1/configmaps", "get", "listCoreV1ConfigMapForAllNamespaces", "list"),
        ("/api/v1/namespaces/{namespace}/configmaps", "get", "listCoreV1NamespacedConfigMap", "list"),
        ("/api/v1/namespaces/{namespace}/configmaps", "post", "createCoreV1NamespacedConfigMap", "post"),
        (
            "/api/v1/namespaces/{namespace}/configmaps",
            "delete",
            "deleteCoreV1CollectionNamespacedConfigMap",
            "deletecollection",
        ),
        ("/api/v1/namespaces/{namespace}/configmaps/{name}", "get", "readCoreV1NamespacedConfigMap", "get"),
        ("/api/v1/namespaces/{namespace}/configmaps/{name}", "put", "replaceCoreV1NamespacedConfigMap", "put"),
        ("/api/v1/namespaces/{namespace}/configmaps/{name}", "patch", "patchCoreV1NamespacedConfigMap", "patch"),
        ("/api/v1/namespaces/{namespace}/configmaps/{name}", "delete", "deleteCoreV1NamespacedConfigMap", "delete"),
        ("/api/v1/namespaces/{name}/finalize", "put", "replaceCoreV1NamespaceFinalize", "put"),
        ("/api/v1/namespaces/{name}/status", "patch", "patchCoreV1NamespaceStatus", "patch"),
        (
            "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            "post",
            "createCoreV1NamespacedServiceAccountToken",
            "post",
        ),
        ("/api/v1/watch/configmaps", "get", "watchCoreV1ConfigMapListForAllNamespaces", "watchlist"),
        ("/api/v1/watch/namespaces", "get", "watchCoreV1NamespaceList", "watchlist"),
        ("/api/v1/watch/namespaces/{namespace}/configmaps/{name}", "get", "watchCoreV1NamespacedConfigMap", "watch"),
        ("/api/v1/", "get", "getCoreV1APIResources", None),
    ],
)
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_operations_have_kubernetes_names(
    version: str, path: str, method: str, operation_id: str, action: str | None
) -> None:
    document = v3_of(CORE) if version == "v3" else v2_of()
    operation = document["paths"][path][method]
    assert operation["operationId"] == operation_id
    assert operation.get("x-kubernetes-action") == action
    assert operation["tags"] == ["core_v1"]


def test_names_of_a_group_with_dots() -> None:
    operation = v3_of(RBAC)["paths"]["/apis/rbac.authorization.k8s.io/v1/clusterroles"]["get"]
    assert (operation["operationId"], operation["tags"]) == (
        "listRbacAuthorizationV1ClusterRole",
        ["rbacAuthorization_v1"],
    )


def test_parameters_that_all_operations_share_stand_at_the_path() -> None:
    item = v3_of(CORE)["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]
    assert [parameter["name"] for parameter in item["parameters"]] == ["name", "namespace", "pretty"]
    assert [parameter["name"] for parameter in item["patch"]["parameters"]] == [
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
    ]
    assert "parameters" not in item["get"]


def test_a_patch_says_what_it_takes_and_what_kind_it_changes() -> None:
    operation = v3_of(CORE)["paths"]["/api/v1/namespaces/{name}"]["patch"]
    assert set(operation["requestBody"]["content"]) == {
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    }
    assert operation["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Namespace", "version": "v1"}
    assert set(operation["responses"]) == {"200", "201", "401"}


@pytest.mark.parametrize(
    ("resource", "returned"), [("configmaps", "meta.v1.Status"), ("serviceaccounts", "core.v1.ServiceAccount")]
)
def test_what_a_deletion_returns(resource: str, returned: str) -> None:
    operation = v3_of(CORE)["paths"][f"/api/v1/namespaces/{{namespace}}/{resource}/{{name}}"]["delete"]
    assert operation["responses"]["202"]["content"]["application/json"]["schema"]["$ref"].endswith(returned)


@pytest.mark.parametrize("group_version", dict.fromkeys(r.gvk.group_version for r in openapi.published()), ids=str)
def test_every_reference_in_a_v3_document_is_resolved(group_version: GroupVersion) -> None:
    document = v3_of(group_version)
    text = json.dumps(document)
    for name in document["components"]["schemas"]:
        assert f'"{V3}{name}"' in text, "nothing refers to it"
    for reference in text.split(V3)[1:]:
        assert reference.split('"')[0] in document["components"]["schemas"]


def test_every_reference_in_the_v2_document_is_resolved_and_nothing_is_left_of_v3() -> None:
    document = v2_of(widgets({"type": "object"}))
    text = json.dumps(document)
    for reference in text.split("#/definitions/")[1:]:
        assert reference.split('"')[0] in document["definitions"]
    assert V3 not in text
    assert '"allOf"' not in json.dumps(document["paths"])


def test_v2_definitions_are_simpler_than_those_of_v3() -> None:
    definitions = v2_of()["definitions"]
    assert definitions["io.k8s.api.core.v1.ConfigMap"]["properties"]["metadata"] == {
        "$ref": "#/definitions/" + OBJECT_META
    }
    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] == {"type": "string"}
    assert definitions["io.k8s.api.core.v1.NamespaceCondition"]["properties"]["type"] == {"type": "string"}
    # A property may be called `default`, as in JSON schemas themselves.
    assert (
        "default"
        in definitions["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"]["properties"]
    )


def test_the_index_has_a_link_for_each_document() -> None:
    body, etag = build_v3_index({RBAC: "B", CORE: "A"})
    assert json.loads(body) == {
        "paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A"},
            "apis/rbac.authorization.k8s.io/v1": {
                "serverRelativeURL": "/openapi/v3/apis/rbac.authorization.k8s.io/v1?hash=B"
            },
        }
    }
    assert etag == hashlib.sha512(body).hexdigest().upper()
    assert v3_path(CORE) == "api/v1"


SPEC = {
    "type": "object",
    "required": ["size", "mode"],
    "description": "What is wanted.",
    "properties": {
        "size": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9, "default": 0, "example": 5},
        "mode": {"type": "string", "enum": ["on", "off"], "nullable": True},
        "port": {"x-kubernetes-int-or-string": True},
        "more": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "string"}},
        },
        "list": {"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": {"type": "string"}},
        "free": {"type": "object", "additionalProperties": True, "nullable": False},
        "not": {"type": "string", "not": {"enum": ["x"]}, "oneOf": [{"minLength": 1}]},
    },
}


def test_schema_of_a_custom_kind_in_v3() -> None:
    schemas = definitions_v3(widgets({"type": "object", "properties": {"spec": SPEC}}))
    assert set(schemas) == {"test.conf.v1.Widget", "test.conf.v1.WidgetList"}
    properties = schemas["test.conf.v1.Widget"]["properties"]
    assert properties["metadata"]["allOf"] == [{"$ref": V3 + OBJECT_META}]
    assert properties["kind"]["description"].startswith("Kind is a string value")
    spec = properties["spec"]["properties"]
    assert spec["size"] == {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9, "default": 0}
    assert spec["port"] == {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    assert spec["free"] == {"type": "object", "additionalProperties": True}
    assert spec["not"] == SPEC["properties"]["not"]  # type: ignore[index]
    assert schemas["test.conf.v1.Widget"]["x-kubernetes-group-version-kind"] == [
        {"group": "conf.test", "kind": "Widget", "version": "v1"}
    ]


def test_schema_of_a_custom_kind_in_v2() -> None:
    schemas = definitions_v2(widgets({"type": "object", "properties": {"spec": SPEC}}))
    spec = schemas["test.conf.v1.Widget"]["properties"]["spec"]
    assert spec["required"] == ["size"]
    assert spec["properties"] == {
        "size": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9},
        "mode": {"enum": ["on", "off"]},
        "port": {"x-kubernetes-int-or-string": True},
        "more": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "list": {"x-kubernetes-preserve-unknown-fields": True},
        "free": {"type": "object", "additionalProperties": True},
        "not": {"type": "string"},
    }
    assert schemas["test.conf.v1.WidgetList"]["properties"]["items"]["items"] == {
        "$ref": "#/definitions/test.conf.v1.Widget"
    }


def test_the_definition_is_not_changed_by_publishing_it() -> None:
    schema = {"type": "object", "properties": {"spec": SPEC}}
    before = json.dumps(schema)
    definitions_v2(widgets(schema))
    definitions_v3(widgets(schema))
    assert json.dumps(schema) == before


@pytest.mark.parametrize("schema", [None, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}])
def test_without_a_schema_v2_lets_everything_pass(schema: dict[str, Any] | None) -> None:
    assert set(definitions_v2(widgets(schema))["test.conf.v1.Widget"]) == {"type", "x-kubernetes-group-version-kind"}


def test_nullable_values_of_a_map_lift_requirements_in_v2() -> None:
    schema = {"type": "object", "required": ["a"], "additionalProperties": {"type": "string", "nullable": True}}
    published = definitions_v2(widgets({"type": "object", "properties": {"m": schema}}))["test.conf.v1.Widget"]
    assert published["properties"]["m"] == {"type": "object", "additionalProperties": {}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (
            {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
            {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
        ),
        (
            {"anyOf": [{"maximum": 5}]},
            {"anyOf": [{"maximum": 5}], "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
        ),
    ],
    ids=["pattern", "pattern in allOf", "another anyOf"],
)
def test_int_or_string_is_unfolded_once(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    mark = {"x-kubernetes-int-or-string": True}
    published = definitions_v3(widgets({"type": "object", "properties": {"port": schema | mark}}))
    assert published["test.conf.v1.Widget"]["properties"]["port"] == expected | mark


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_embedded_resources_get_the_fields_of_an_object(version: str) -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["kind"], "properties": {}}
    loose = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    kind = widgets({"type": "object", "properties": {"one": embedded, "many": {"type": "array", "items": loose}}})
    published = (definitions_v2 if version == "v2" else definitions_v3)(kind)["test.conf.v1.Widget"]["properties"]
    assert published["one"]["required"] == ["kind", "apiVersion"]
    assert published["one"]["properties"]["kind"]["description"].startswith("kind is a string value")
    assert ("properties" in published["many"]["items"]) == (version == "v3")


def test_selectable_fields_are_published() -> None:
    schemas = definitions_v3(widgets({"type": "object"}, selectable_fields=(".spec.color",)))
    assert [schema["x-kubernetes-selectable-fields"] for schema in schemas.values()] == [
        [{"fieldPath": "spec.color"}]
    ] * 2


def test_paths_of_a_custom_kind() -> None:
    kind = widgets({"type": "object"}, subresources=("status", "scale"))
    document = v3_of(WIDGET.group_version, kind)
    root = "/apis/conf.test/v1/namespaces/{namespace}/widgets"
    assert {path: sorted(item) for path, item in document["paths"].items()} == {
        "/apis/conf.test/v1/widgets": ["get", "parameters"],
        root: ["delete", "get", "parameters", "post"],
        root + "/{name}": ["delete", "get", "parameters", "patch", "put"],
        root + "/{name}/scale": ["get", "parameters", "patch", "put"],
        root + "/{name}/status": ["get", "parameters", "patch", "put"],
    }
    patch = document["paths"][root + "/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert patch["operationId"] == "patchConfTestV1NamespacedWidget"
    assert "io.k8s.api.autoscaling.v1.Scale" in document["components"]["schemas"]


def test_paths_of_a_cluster_scoped_custom_kind() -> None:
    document = v3_of(WIDGET.group_version, widgets(None, namespaced=False))
    assert set(document["paths"]) == {"/apis/conf.test/v1/widgets", "/apis/conf.test/v1/widgets/{name}"}


def test_documents_are_the_same_each_time() -> None:
    assert build_v2(openapi.published(), (), openapi.definitions(), version="v") == build_v2(
        openapi.published(), (), openapi.definitions(), version="v"
    )
