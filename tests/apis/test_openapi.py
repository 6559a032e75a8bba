"""The schemas of the built-in kinds."""

from __future__ import annotations

from kcp.apis import openapi
from kcp.apis.builtin import RESOURCES
from kcp.meta.gvk import GroupVersionKind


def test_a_kind_has_its_schema() -> None:
    schema = openapi.schema(GroupVersionKind("", "v1", "ConfigMap"))
    assert schema is not None
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "data", "binaryData", "immutable"}


def test_a_kind_that_is_not_built_in_has_none() -> None:
    pod = GroupVersionKind("", "v1", "Pod")
    assert openapi.schema(pod) is None
    assert openapi.definition_name(pod) is None


def test_every_resource_is_published() -> None:
    assert [resource.gvk for resource in openapi.published()] == [resource.gvk for resource in RESOURCES]
    for resource in openapi.published():
        assert resource.definition in openapi.definitions()
        assert ("list" not in resource.verbs) or resource.list_definition in openapi.definitions()
