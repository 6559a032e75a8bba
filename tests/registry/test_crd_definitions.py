"""Definitions of custom resources: defaults, status, rules."""

from __future__ import annotations

import base64
import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth.user import UserInfo
from kcp.meta import field
from kcp.meta.wellknown import FINALIZER_CUSTOM_RESOURCES
from kcp.registry.strategies.crd_internal import show_rule
from kcp.registry.strategies.customresourcedefinitions import CustomResourceDefinitionStrategy
from kcp.registry.strategy import WriteContext

if TYPE_CHECKING:
    from kcp.meta.field import FieldError, FieldPath

CONTEXT = WriteContext("root", UserInfo("me"), datetime(2026, 1, 2, tzinfo=UTC), lambda *asked: True)
STRATEGY = CustomResourceDefinitionStrategy()
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]}


def schema(**properties: Any) -> dict[str, Any]:  # noqa: ANN401 - schemas
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def definition(open_api: Any = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": open_api or schema()}}
    crd: dict[str, Any] = {
        "metadata": {"name": "widgets.example.test"},
        "spec": {
            "group": "example.test",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [version],
            **spec,
        },
    }
    STRATEGY.default(crd)
    return crd


def complaints(crd: dict[str, Any], strategy: CustomResourceDefinitionStrategy = STRATEGY) -> list[str]:
    strategy.prepare_for_create(crd, CONTEXT)
    return [str(error) for error in strategy.validate(crd, CONTEXT)]


def test_a_plain_definition_is_valid_and_gets_names_and_a_status() -> None:
    crd = definition(preserveUnknownFields=False)
    assert complaints(crd) == []
    assert list(crd["spec"]) == ["group", "names", "scope", "versions", "conversion", "preserveUnknownFields"]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    assert crd["spec"]["names"] == names
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    accepted = {"plural": "", "kind": ""}
    assert crd["status"] == {"conditions": None, "acceptedNames": accepted, "storedVersions": ["v1"]}


def test_without_a_storage_version_nothing_is_stored() -> None:
    crd = definition(versions=None)
    assert crd["status"]["storedVersions"] is None
    assert complaints(crd) == [
        "spec.versions: Invalid value: null: must have exactly one version marked as storage version",
        "status.storedVersions: Invalid value: null: must have at least one stored version",
    ]


def test_an_empty_spec_lacks_everything() -> None:
    crd: dict[str, Any] = {"metadata": {"name": "a.b", "generateName": "a"}, "spec": {"names": {}}}
    STRATEGY.default(crd)
    found = complaints(crd)
    assert found[0].startswith("metadata.generateName: Invalid value")
    assert "spec.names.listKind: Required value" in found


def test_a_webhooks_service_has_a_port() -> None:
    webhook = {"clientConfig": {"service": {"name": "a", "namespace": "b"}}, "conversionReviewVersions": ["v1"]}
    crd = definition(conversion={"strategy": "Webhook", "webhook": webhook})
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443
    assert complaints(crd) == []


def test_a_version_once_stored_in_stays_recorded() -> None:
    old = definition()
    old["status"] = {"conditions": [], "storedVersions": ["v1"]}
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["storage"] = False
    new["spec"]["versions"].append({**old["spec"]["versions"][0], "name": "v2"})
    STRATEGY.prepare_for_update(new, old, CONTEXT)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    again = copy.deepcopy(new)
    STRATEGY.prepare_for_update(again, new, CONTEXT)
    assert again["status"]["storedVersions"] == ["v1", "v2"]


def test_group_scope_and_names_cannot_change_once_established() -> None:
    old = definition()
    old["status"] = {**ESTABLISHED}
    new = copy.deepcopy(old)
    new["spec"]["group"] = "other.test"
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"].update(kind="Gadget", plural="gadgets")
    found = [str(error) for error in STRATEGY.validate_update(new, old, CONTEXT)]
    assert found == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Gadget": field is immutable',
        'spec.group: Invalid value: "other.test": field is immutable',
        'spec.names.plural: Invalid value: "gadgets": field is immutable',
    ]


def with_bundle(text: str) -> dict[str, Any]:
    bundle = base64.b64encode(text.encode()).decode()
    webhook = {"clientConfig": {"url": "https://x", "caBundle": bundle}, "conversionReviewVersions": ["v1"]}
    crd = definition(conversion={"strategy": "Webhook", "webhook": webhook})
    crd["status"] = {**ESTABLISHED}
    return crd


def test_a_bad_certificate_is_refused_unless_it_was_there() -> None:
    good = with_bundle("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n")
    bad = with_bundle("nothing")
    assert STRATEGY.validate_update(good, good, CONTEXT) == []
    assert STRATEGY.validate_update(bad, bad, CONTEXT) == []
    (error,) = STRATEGY.validate_update(bad, good, CONTEXT)
    assert error.detail == "unable to load root certificates: unable to parse bytes as PEM block"


def test_old_sins_are_forgiven_on_update() -> None:
    open_api = schema(
        s={"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
        d={"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}},
        m={
            "type": "array",
            "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
    )
    crd = definition(open_api)
    assert len(complaints(crd)) == 3
    assert STRATEGY.validate_update(crd, copy.deepcopy(crd), CONTEXT) == []


def test_too_many_selectable_fields_may_stay() -> None:
    names = [f"f{index}" for index in range(9)]
    crd = definition(schema(**{name: {"type": "string"} for name in names}))
    crd["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": f".spec.{name}"} for name in names]
    assert complaints(crd) == ["spec.selectableFields: Too many: 9: must have at most 8 items"]
    assert STRATEGY.validate_update(crd, copy.deepcopy(crd), CONTEXT) == []
    other = {"openAPIV3Schema": schema(f0={"type": "string"})}
    selectable = [{"jsonPath": ".spec.f0"}]
    crd["spec"]["versions"].append(
        {"name": "v2", "served": True, "storage": False, "schema": other, "selectableFields": selectable}
    )
    assert STRATEGY.validate_update(crd, copy.deepcopy(crd), CONTEXT) == []


def test_definitions_without_schemas_may_stay_so() -> None:
    crd = definition(versions=[{"name": "v1", "served": True, "storage": True}])
    assert complaints(crd) == ["spec.versions[0].schema.openAPIV3Schema: Required value"]
    (error,) = STRATEGY.validate_update(crd, copy.deepcopy(crd), CONTEXT)
    assert error.detail == "because otherwise all fields are pruned"
    crd["spec"]["versions"][0]["served"] = False
    assert STRATEGY.validate_update(crd, copy.deepcopy(crd), CONTEXT) == []


@pytest.mark.parametrize("top", [True, False], ids=["in common", "of one version"])
def test_selectable_fields_need_a_schema(top: bool) -> None:
    versions = [{"name": "v1", "served": True, "storage": True, "selectableFields": [{"jsonPath": ".a"}]}]
    if not top:
        versions.append({"name": "v2", "served": True, "storage": False})
    assert any(
        "selectableFields" in text and "may only be set" in text for text in complaints(definition(versions=versions))
    )


def test_protected_groups_need_an_approval() -> None:
    def protected(annotation: str | None) -> dict[str, Any]:
        crd = definition(group="x.k8s.io")
        crd["metadata"]["name"] = "widgets.x.k8s.io"
        if annotation is not None:
            crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
        return crd

    assert "Required value: protected groups must have" in complaints(protected(None))[0]
    assert "with either a URL or a reason" in complaints(protected("maybe"))[0]
    assert complaints(protected("https://github.com/x")) == []
    assert complaints(protected("unapproved, testing")) == []
    assert STRATEGY.validate_update(protected(None), protected(None), CONTEXT) == []


def test_unknown_formats_earn_a_warning_once() -> None:
    crd = definition(schema(f={"type": "string", "format": "nonsense"}))
    assert STRATEGY.warnings_on_create(crd, CONTEXT) == ['unrecognized format "nonsense"']
    assert STRATEGY.warnings_on_update(crd, definition(), CONTEXT) == ['unrecognized format "nonsense"']
    assert STRATEGY.warnings_on_update(crd, crd, CONTEXT) == []


def test_rules_are_compiled_when_the_schema_is_sound() -> None:
    seen = []

    def compile_rules(schema: dict[str, Any], path: FieldPath, unchanged: bool) -> list[FieldError]:
        seen.append(unchanged)
        rule = schema["properties"]["spec"]["properties"]["f"]["x-kubernetes-validations"][0]
        return [field.invalid(path, show_rule(rule), "compilation failed")]

    strategy = CustomResourceDefinitionStrategy(compile_rules)
    crd = definition(schema(f={"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}))
    (found,) = complaints(crd, strategy)
    assert '{"Rule":"self \\u003e 1","Message":"",' in found
    strategy.validate_update(crd, copy.deepcopy(crd), CONTEXT)
    assert seen == [False, True]
    broken = definition(schema(f={"x-kubernetes-validations": [{"rule": "self > 1"}]}))
    assert "compilation failed" not in complaints(broken, strategy)[0]


def test_deletion_waits_for_the_instances() -> None:
    crd = definition()
    crd["metadata"] |= {"deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": 0, "generation": 2}
    STRATEGY.mark_deleted(crd)
    assert crd["metadata"]["finalizers"] == [FINALIZER_CUSTOM_RESOURCES]
    assert crd["metadata"]["generation"] == 1
    assert "deletionGracePeriodSeconds" not in crd["metadata"]
    (condition,) = crd["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Terminating", "InstanceDeletionPending")
    del crd["metadata"]["generation"]
    STRATEGY.mark_deleted(crd)
    assert crd["metadata"]["finalizers"] == [FINALIZER_CUSTOM_RESOURCES]


def test_status_writes_keep_the_spec_and_check_the_names() -> None:
    strategy = STRATEGY.subresource("status")
    assert strategy is not None
    assert STRATEGY.subresource("scale") is None
    old = definition()
    new = copy.deepcopy(old)
    new["spec"]["group"] = "other"
    new["status"]["acceptedNames"] = {"plural": "Bad"}
    strategy.prepare_for_update(new, old, CONTEXT)
    assert new["spec"]["group"] == "example.test"
    (error,) = strategy.validate_update(new, old, CONTEXT)
    assert error.field == "status.acceptedNames.plural"


@pytest.mark.parametrize(
    ("open_api", "complaint"),
    [
        (
            {"properties": {"metadata": {"type": "object", "default": {}}}},
            "properties[metadata].default: Forbidden: must not be set in top-level metadata",
        ),
        (
            {"properties": {"metadata": {"type": "object", "additionalProperties": False}}},
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName",
        ),
        (
            {"properties": {"metadata": {"type": "object", "not": {}}}},
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName",
        ),
        ({"nullable": True}, "nullable: Forbidden: nullable cannot be true at the root"),
        ({"default": {"spec": {}}}, "default.apiVersion: Required value"),
    ],
)
def test_the_root_of_a_schema_has_rules_of_its_own(open_api: Any, complaint: str) -> None:  # noqa: ANN401
    found = complaints(definition({"type": "object", **open_api}))
    assert any(text.startswith(f"spec.validation.openAPIV3Schema.{complaint}") for text in found), found


EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("embedded", "complaint"),
    [
        ({"properties": {"metadata": {"type": "object", "default": {"name": "a/b"}}}}, "must result in valid metadata"),
        ({"properties": {"metadata": {"type": "object", "default": {"labels": 5}}}}, "must result in valid metadata"),
        ({"properties": {"kind": {"type": "string", "default": "bad kind"}}}, "must result in valid metadata"),
        ({"properties": {"kind": {"type": "string", "default": 5}}}, "must result in valid metadata"),
        ({"properties": {"kind": {"type": "string", "default": "Pod", "maxLength": 1}}}, "Too long"),
        ({"default": {"kind": 5}}, "must be a string"),
        ({"default": {"kind": "Pod"}}, "apiVersion: Required value"),
    ],
)
def test_defaults_in_embedded_resources_make_valid_ones(embedded: Any, complaint: str) -> None:  # noqa: ANN401
    found = complaints(definition(schema(f={**EMBEDDED, **embedded})))
    assert complaint in found[0]


def test_a_valid_default_in_metadata_passes() -> None:
    finalizers = {"type": "array", "items": {"type": "string", "default": "a.b/c"}}
    metadata = {"type": "object", "properties": {"finalizers": finalizers}}
    assert complaints(definition(schema(f={**EMBEDDED, "properties": {"metadata": metadata}}))) == []
