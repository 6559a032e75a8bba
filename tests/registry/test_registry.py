"""What all verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.registry.registry import StoreReader, key_of, read_object
from tests.registry.verbs import (
    ADMIN,
    CLUSTER,
    CONFIGMAPS,
    JANE,
    NAMESPACES,
    OLD_WIDGETS,
    OTHER,
    WIDGETS,
    Verbs,
    crd,
    version,
)

if TYPE_CHECKING:
    from kcp.store import Record


async def test_a_write_may_ask_what_its_user_may_do(verbs: Verbs) -> None:
    question = ("update", "", "configmaps", "", "default", "a")
    context = verbs.registry.context(CLUSTER, ADMIN)
    assert (context.cluster, context.user, context.now) == (CLUSTER, ADMIN, verbs.clock.now())
    assert context.authorize(*question)
    assert not verbs.registry.context(CLUSTER, JANE).authorize(*question)


async def test_namespaces_are_looked_up_in_their_cluster(verbs: Verbs) -> None:
    found = verbs.registry.namespace_record(CLUSTER, "default")
    assert found is not None
    assert found.key.name == "default"
    assert verbs.registry.namespace_record(OTHER, "default") is None


async def test_cluster_scoped_objects_have_no_namespace(verbs: Verbs) -> None:
    assert key_of(verbs.resource(NAMESPACES), CLUSTER, "x", "a").namespace == ""
    assert key_of(verbs.resource(CONFIGMAPS), CLUSTER, "x", "a").namespace == "x"


async def test_objects_are_read_in_the_version_asked_for(verbs: Verbs) -> None:
    await verbs.define(crd(version(), version("v1beta1")))
    await verbs.create(WIDGETS, "a")
    record: Record | None = verbs.store.get(key_of(verbs.resource(WIDGETS), CLUSTER, "default", "a"))
    assert record is not None
    assert read_object(verbs.resource(OLD_WIDGETS), record)["apiVersion"] == "example.io/v1beta1"
    assert read_object(verbs.resource(WIDGETS), record)["apiVersion"] == "example.io/v1"


async def test_the_reader_sees_one_cluster_at_a_time(verbs: Verbs) -> None:
    await verbs.create(NAMESPACES, "other")
    made = await verbs.create(CONFIGMAPS, "a")
    await verbs.create(CONFIGMAPS, "b", request=verbs.request(CONFIGMAPS, namespace="other"))
    reader = StoreReader(verbs.store)
    assert reader.get(CLUSTER, "", "configmaps", "default", "a") == made
    assert reader.get(OTHER, "", "configmaps", "default", "a") is None
    assert [obj["metadata"]["name"] for obj in reader.list(CLUSTER, "", "configmaps")] == ["a", "b"]
    assert reader.list(CLUSTER, "", "configmaps", "default") == [made]
    assert reader.list(OTHER, "", "configmaps") == []
