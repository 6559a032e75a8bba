"""Resources that every logical cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.apis import builtin
from kcp.meta import codec
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource
from kcp.registry.builtin import STRATEGIES, builtin_resources, known_kinds, merge_schema, reset_fields
from kcp.registry.strategies.builtin import BUILTIN
from kcp.registry.strategies.customresourcedefinitions import CustomResourceDefinitionStrategy
from kcp.registry.strategy import Strategy
from kcp.store import ResourceKey, pack_object
from kcp.store.value import body_of, stamp
from tests.registry.verbs import CRDS, EVENTS, NAMESPACES, NEW_EVENTS

if TYPE_CHECKING:
    from kcp.registry.resource import Resource

RESOURCES = builtin_resources()


def test_everything_built_in_is_there_once() -> None:
    assert set(RESOURCES) == {entry.gvr for entry in builtin.RESOURCES}
    assert builtin_resources() is RESOURCES
    assert {"v1/ConfigMap", "events.k8s.io/v1/Event"} <= known_kinds()
    assert "v1/Pod" not in known_kinds()


def test_every_kind_with_rules_of_its_own_has_them() -> None:
    for gvr, resource in RESOURCES.items():
        expected = STRATEGIES.get((gvr.group, gvr.resource))
        assert resource.strategy is expected or expected is None
    crds = RESOURCES[CRDS].strategy
    assert isinstance(crds, CustomResourceDefinitionStrategy)
    unused = set(BUILTIN) - {(gvr.group, gvr.resource) for gvr in RESOURCES}
    assert {resource for _, resource in unused} <= {"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=lambda resource: str(resource.gvr))
def test_each_can_be_written_and_read(resource: Resource) -> None:
    assert resource.write_scope().gvk == resource.gvk
    stored = pack_object({"kind": resource.gvk.kind, "apiVersion": resource.api_version, "metadata": {"name": "a"}})
    assert body_of(stamp(stored, 7)).startswith(resource.body_prefix), "a list leaves this out"
    for name, subresource in resource.subresources.items():
        if subresource.strategy is not None:
            assert resource.write_scope(name).subresource == name


def test_the_two_groups_of_events_share_their_objects() -> None:
    core, new = RESOURCES[EVENTS], RESOURCES[NEW_EVENTS]
    assert core.key == new.key == ResourceKey("", "events")
    assert (core.from_storage, core.to_storage) == (None, None)
    event = {"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "e"}, "note": "n", "regarding": {}}
    assert new.to_storage is not None
    assert new.from_storage is not None
    stored = new.to_storage(codec.loads(codec.dumps(event)))
    assert (stored["apiVersion"], stored["message"]) == ("v1", "n")
    assert new.from_storage(stored)["note"] == "n"


def test_subresources_have_their_own_rules() -> None:
    namespaces = RESOURCES[NAMESPACES]
    assert set(namespaces.subresources) == {"status", "finalize"}
    assert namespaces.subresources["status"].strategy is not namespaces.strategy
    token = RESOURCES[GroupVersionResource("", "v1", "serviceaccounts")].subresources["token"]
    assert (token.strategy, token.reset_fields) == (None, None)
    assert token.gvk.kind == "TokenRequest"


def test_what_an_endpoint_resets_is_in_its_rules() -> None:
    assert reset_fields(Strategy()) is None
    found = reset_fields(RESOURCES[NAMESPACES].strategy)
    assert found is not None
    assert found == RESOURCES[NAMESPACES].reset_fields


def test_a_kind_without_a_schema_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="has no schema"):
        merge_schema(GroupVersionKind("example.io", "v1", "Nothing"))
