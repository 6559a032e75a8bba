"""Objects shown as tables, and as metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.endpoints.api import (
    API,
    CONFIGMAPS,
    PARTIAL,
    PARTIAL_LIST,
    PROTOBUF,
    TABLE,
    WIDGETS,
    definition,
    served_version,
    widget,
)

if TYPE_CHECKING:
    from kcp.meta.fake_clock import FakeClock


@pytest.mark.parametrize(
    ("include", "expected"),
    [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap"), ("None", None)],
)
async def test_what_a_row_holds_of_its_object(api: API, include: str, expected: str | None) -> None:
    await api.create_configmap(data={"k": "v"})
    for path in (CONFIGMAPS, f"{CONFIGMAPS}/a"):
        table = await api.must("GET", path, accept=TABLE, includeObject=include)
        found = table["rows"][0].get("object")
        assert (found and found["kind"]) == expected


async def test_a_policy_that_does_not_exist(api: API) -> None:
    await api.create_configmap()
    for path in (CONFIGMAPS, f"{CONFIGMAPS}/a"):
        answer = await api.get(path, accept=TABLE, includeObject="Some")
        assert answer.status == 400
        assert answer.message == (
            'Unable to convert to Table as requested: includeObject: Invalid value: "Some": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    assert (await api.get(CONFIGMAPS, accept=TABLE, includeObject="Some", watch="1")).status == 400


async def test_ages_are_told_by_the_clock(api: API, clock: FakeClock) -> None:
    created = await api.create_configmap()
    clock.advance(3600 * 5)
    table = await api.must("GET", f"{CONFIGMAPS}/a", accept=TABLE)
    assert table["rows"][0]["cells"] == ["a", 0, "5h"]
    assert table["metadata"] == {"resourceVersion": created["metadata"]["resourceVersion"]}


async def test_a_custom_resource_has_the_columns_of_its_definition(api: API) -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    await api.define(definition(served_version(additionalPrinterColumns=columns)))
    await api.must("POST", WIDGETS, widget(spec={"size": 7}))
    table = await api.must("GET", WIDGETS, accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", 7]


@pytest.mark.parametrize(
    ("custom", "is_list", "named"),
    [
        (False, True, "*core.ConfigMapList"),
        (False, False, "*core.ConfigMap"),
        (True, True, "*unstructured.UnstructuredList"),
        (True, False, "*unstructured.Unstructured"),
    ],
)
async def test_lists_and_objects_have_forms_of_their_own(api: API, custom: bool, is_list: bool, named: str) -> None:
    await api.define(definition())
    await api.must("POST", WIDGETS, widget("a"))
    await api.create_configmap("a")
    path = WIDGETS if custom else CONFIGMAPS
    answer = await api.get(path if is_list else f"{path}/a", accept=PARTIAL if is_list else PARTIAL_LIST)
    assert answer.status == 406
    asked = "PartialObjectMetadata" if is_list else "PartialObjectMetadataList"
    is_what = "is a list" if is_list else "is not a list"
    assert answer.message == f"you requested {asked}, but the requested object {is_what} ({named})"


async def test_metadata_alone(api: API) -> None:
    created = await api.create_configmap(data={"k": "v"})
    partial = await api.must("GET", f"{CONFIGMAPS}/a", accept=PARTIAL)
    expected = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]}
    assert partial == expected
    enveloped = await api.get(f"{CONFIGMAPS}/a", accept=PARTIAL.replace("application/json", PROTOBUF))
    assert enveloped.body.startswith(b"k8s\0")
