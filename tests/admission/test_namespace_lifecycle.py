"""Writes need a namespace that lives, and some namespaces never die."""

from __future__ import annotations

from typing import Any

import pytest

from kcp.admission.attributes import Attributes, Operation
from kcp.admission.namespace_lifecycle import NamespaceLifecycle
from kcp.meta.errors import Forbidden, NotFound
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource
from tests.admission.fakes import FakeReader, widget, write

NAMESPACE: dict[str, Any] = {
    "gvr": GroupVersionResource("", "v1", "namespaces"),
    "gvk": GroupVersionKind("", "v1", "Namespace"),
}


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


async def admit(reader: FakeReader, a: Attributes) -> None:
    await NamespaceLifecycle(reader).admit(a)


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
async def test_a_missing_namespace_is_not_found(reader: FakeReader, operation: Operation) -> None:
    with pytest.raises(NotFound, match='namespaces "ns" not found'):
        await admit(reader, write(widget(), operation=operation))


async def test_nothing_new_comes_into_a_terminating_namespace(reader: FakeReader) -> None:
    reader.add_namespace("ns", status={"phase": "Terminating"})
    with pytest.raises(Forbidden) as caught:
        await admit(reader, write(widget("b")))
    assert caught.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'widgets.conf.test "b" is forbidden: unable to create new content in namespace ns '
        "because it is being terminated",
        "reason": "Forbidden",
        "details": {
            "name": "b",
            "group": "conf.test",
            "kind": "widgets",
            "causes": [
                {
                    "reason": "NamespaceTerminating",
                    "message": "namespace ns is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        },
        "code": 403,
    }
    await admit(reader, write(widget("b"), operation=Operation.UPDATE))


async def test_a_name_that_is_still_to_be_made_is_shown_as_its_beginning(reader: FakeReader) -> None:
    reader.add_namespace("ns", status={"phase": "Terminating"})
    with pytest.raises(Forbidden, match=r'widgets\.conf\.test "w-" is forbidden'):
        await admit(reader, write({"metadata": {"generateName": "w-"}}))
    with pytest.raises(Forbidden, match=r'widgets\.conf\.test "Unknown" is forbidden'):
        await admit(reader, write({"metadata": {}}))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_immortal_namespaces_cannot_be_deleted(reader: FakeReader, name: str) -> None:
    a = write(operation=Operation.DELETE, name=name, namespace=name, **NAMESPACE)
    with pytest.raises(Forbidden, match=f'namespaces "{name}" is forbidden: this namespace may not be deleted'):
        await admit(reader, a)


async def test_immortal_namespaces_go_with_their_logical_cluster(reader: FakeReader) -> None:
    cluster = {"metadata": {"name": "cluster", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    reader.add("core.kcp.io", "logicalclusters", cluster)
    await admit(reader, write(operation=Operation.DELETE, name="default", namespace="default", **NAMESPACE))


@pytest.mark.parametrize(
    "a",
    [
        pytest.param(write(operation=Operation.DELETE, name="x", namespace="x", **NAMESPACE), id="other namespace"),
        pytest.param(write(name="x", namespace="x", **NAMESPACE), id="new namespace"),
        pytest.param(write(namespace=""), id="cluster-scoped"),
        pytest.param(write(operation=Operation.DELETE), id="deletion"),
        pytest.param(
            write(gvr=GroupVersionResource("authorization.k8s.io", "v1", "localsubjectaccessreviews")), id="review"
        ),
    ],
)
async def test_what_needs_no_namespace_passes(reader: FakeReader, a: Attributes) -> None:
    await admit(reader, a)


async def test_a_living_namespace_takes_new_objects(reader: FakeReader) -> None:
    reader.add_namespace("ns")
    await admit(reader, write(widget()))
