"""The scale subresource of custom resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.endpoints.api import API, WIDGETS, definition, served_version, widget

if TYPE_CHECKING:
    from kcp.meta.codec import Object

SCALE = f"{WIDGETS}/w/scale"
JSON_PATCH, MERGE, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
SUBRESOURCES = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


@pytest.fixture(autouse=True)
async def widgets(api: API) -> Object:
    await api.define(definition(served_version(subresources=SUBRESOURCES)))
    created: Object = await api.must("POST", WIDGETS, widget(spec={"replicas": 3, "other": "x"}))
    return created


def scale(replicas: Any, **metadata: Any) -> Object:  # noqa: ANN401
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "w", "namespace": "default", **metadata},
        "spec": {"replicas": replicas},
    }


async def test_replicas_are_read(api: API) -> None:
    shown = await api.must("GET", SCALE)
    assert (shown["kind"], shown["apiVersion"], shown["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 3})
    assert (await api.call("HEAD", SCALE)).status == 200
    answer = await api.get(f"{WIDGETS}/missing/scale")
    assert (answer.status, answer.message) == (404, 'widgets.example.io "missing" not found')


async def test_replicas_are_written_and_nothing_else(api: API) -> None:
    shown = await api.must("PUT", SCALE, scale(5))
    assert shown["spec"] == {"replicas": 5}
    stored = await api.must("GET", f"{WIDGETS}/w")
    assert stored["spec"] == {"replicas": 5, "other": "x"}
    assert stored["metadata"]["generation"] == 2
    assert [each.get("subresource") for each in stored["metadata"]["managedFields"]] == [None, "scale"]


async def test_a_scale_need_not_say_what_it_is(api: API) -> None:
    assert (await api.must("PUT", SCALE, {"spec": {"replicas": 1}}))["spec"] == {"replicas": 1}


async def test_versions_are_compared(api: API, widgets: Object) -> None:
    version = widgets["metadata"]["resourceVersion"]
    statuses = [(await api.put(SCALE, scale(count, resourceVersion=version))).status for count in (4, 5)]
    assert statuses == [200, 409]


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ([], 400, "the object provided is unrecognized (must be of type Scale): couldn't get version/kind; json parse"),
        ({**scale(1), "kind": "Other"}, 400, "no kind is registered for the type v1.Scale in scheme"),
        (scale("many"), 400, 'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal string'),
        (scale(1, name="x"), 400, "the name of the object (x) does not match the name on the URL (w)"),
        (scale(-1), 422, "spec.replicas"),
    ],
    ids=["array", "kind", "type", "name", "negative"],
)
async def test_scales_that_make_no_sense(api: API, body: Any, status: int, why: str) -> None:  # noqa: ANN401
    answer = await api.put(SCALE, body)
    assert answer.status == status
    assert why in answer.message
    assert (await api.must("GET", SCALE))["spec"] == {"replicas": 3}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [(MERGE, {"spec": {"replicas": 7}}), (JSON_PATCH, [{"op": "replace", "path": "/spec/replicas", "value": 7}])],
    ids=["merge", "json"],
)
async def test_replicas_are_patched(api: API, content_type: str, body: Any) -> None:  # noqa: ANN401
    assert (await api.patch(SCALE, body, content_type)).json()["spec"] == {"replicas": 7}
    wrong = [{"op": "add", "path": "/spec", "value": 7}] if content_type == JSON_PATCH else {"spec": 7}
    answer = await api.patch(SCALE, wrong, content_type)
    assert answer.status == 422
    assert "cannot unmarshal number into Go struct field Scale.spec" in answer.message


async def test_other_patches_are_not_taken(api: API) -> None:
    answer = await api.patch(SCALE, {}, "application/strategic-merge-patch+json")
    assert (answer.status, answer.message) == (
        415,
        "the body of the request was in an unknown format - accepted media types include: "
        f"{JSON_PATCH}, {MERGE}, {APPLY}",
    )
