"""The four kinds of patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kcp.endpoints.patches import ATTEMPTS
from kcp.meta import codec
from tests.endpoints.api import API, CONFIGMAPS, PROTOBUF, WIDGETS, configmap, definition, widget

if TYPE_CHECKING:
    from collections.abc import Callable

JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
PATH = f"{CONFIGMAPS}/a"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (
            JSON_PATCH,
            [{"op": "replace", "path": "/data/k", "value": "w"}, {"op": "add", "path": "/data/n", "value": "1"}],
        ),
        (MERGE, {"data": {"k": "w", "n": "1"}}),
        (STRATEGIC, {"data": {"k": "w", "n": "1"}}),
    ],
    ids=["json", "merge", "strategic"],
)
async def test_a_patch_changes_an_object(api: API, content_type: str, body: Any) -> None:  # noqa: ANN401
    await api.create_configmap(data={"k": "v", "other": "x"})
    patched = await api.patch(PATH, body, f"{content_type}; charset=utf-8")
    assert patched.status == 200
    assert patched.json()["data"] == {"k": "w", "n": "1", "other": "x"}
    assert (await api.get(PATH)).body == patched.body
    again = await api.patch(PATH, body, content_type)
    assert again.json()["metadata"]["resourceVersion"] == patched.json()["metadata"]["resourceVersion"]


async def test_apply_creates_and_then_changes(api: API) -> None:
    body = b"kind: ConfigMap\napiVersion: v1\ndata:\n  k: v\n"
    statuses = [(await api.patch(PATH, body, APPLY, fieldManager="m")).status for _ in range(2)]
    assert statuses == [201, 200]
    conflict = await api.patch(PATH, configmap(data={"k": "w"}), APPLY, fieldManager="other")
    assert (conflict.status, conflict.json()["reason"]) == (409, "Conflict")
    forced = await api.patch(PATH, configmap(data={"k": "w"}), APPLY, fieldManager="other", force="true")
    assert forced.json()["data"] == {"k": "w"}


@pytest.mark.parametrize("content_type", [JSON_PATCH, MERGE, STRATEGIC])
async def test_only_apply_creates(api: API, content_type: str) -> None:
    answer = await api.patch(PATH, [] if content_type == JSON_PATCH else {}, content_type)
    assert (answer.status, answer.message) == (404, 'configmaps "a" not found')


@pytest.mark.parametrize("content_type", ["", "application/json", "text/plain"])
async def test_other_kinds_of_patches(api: API, content_type: str) -> None:
    await api.define(definition())
    built_in = await api.patch(PATH, {}, content_type)
    assert (built_in.status, built_in.message) == (415, "415: Unsupported Media Type")
    custom = await api.patch(f"{WIDGETS}/w", {}, content_type or STRATEGIC)
    assert (custom.status, custom.message) == (
        415,
        "the body of the request was in an unknown format - accepted media types include: "
        f"{JSON_PATCH}, {MERGE}, {APPLY}",
    )


async def test_custom_resources_take_no_strategic_patch(api: API) -> None:
    await api.define(definition())
    await api.must("POST", WIDGETS, widget(spec={"a": 1}))
    assert (await api.patch(f"{WIDGETS}/w", {"spec": {}}, STRATEGIC)).status == 415
    assert (await api.patch(f"{WIDGETS}/w", {"spec": {"b": 2}}, MERGE)).json()["spec"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("content_type", "body", "status", "why"),
    [
        (MERGE, b"{", 400, "unexpected end of JSON input"),
        (JSON_PATCH, b"{}", 400, "json: cannot unmarshal object into Go value of type"),
        (
            JSON_PATCH,
            b'[{"op":"test","path":"/data/k","value":"x"}]',
            422,
            "the server rejected our request due to an error",
        ),
        (JSON_PATCH, b'[{"op":"replace","path":"","value":[]}]', 422, "cannot unmarshal array into Go value of type"),
        (MERGE, b'{"kind":null}', 422, "Object 'Kind' is missing in"),
        (MERGE, b'{"kind":7}', 422, "Object 'Kind' is missing in"),
        (MERGE, b'{"kind":"Nonsense"}', 422, 'no kind "Nonsense" is registered for version "v1"'),
        (
            MERGE,
            b'{"kind":"LimitRange"}',
            400,
            "cannot be handled as a ConfigMap: converting (v1.LimitRange) to (c",
        ),
        (MERGE, b'{"kind":"Namespace","spec":7}', 422, "cannot unmarshal number into Go struct field"),
        (MERGE, b'{"data":{"k":7}}', 422, "cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        (APPLY, b"a: [", 400, "error decoding YAML: error converting YAML to JSON: "),
        (
            APPLY,
            b"text",
            400,
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go "
            "value of type map[string]interface {}",
        ),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
async def test_patches_that_fail(api: API, content_type: str, body: bytes, status: int, why: str) -> None:
    created = await api.create_configmap(data={"k": "v"})
    answer = await api.patch(PATH, body, content_type, fieldManager="m")
    assert answer.status == status
    assert why in answer.message
    assert await api.must("GET", PATH) == created


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"kind": "Gadget"}, 422, 'Gadget.example.io "w" is invalid: kind: Invalid value: "Gadget": must be Widget'),
        ({"apiVersion": "example.io/v2"}, 400, "does not match the expected API version (example.io/v1)"),
    ],
    ids=["kind", "version"],
)
async def test_patches_that_make_another_kind_of_a_custom_resource(
    api: API, body: dict[str, Any], status: int, why: str
) -> None:
    await api.define(definition())
    await api.must("POST", WIDGETS, widget())
    answer = await api.patch(f"{WIDGETS}/w", body, MERGE)
    assert answer.status == status
    assert why in answer.message
    assert (await api.must("GET", f"{WIDGETS}/w"))["kind"] == "Widget"


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC, JSON_PATCH, APPLY])
@pytest.mark.parametrize("mode", ["Ignore", "Warn", "Strict", ""])
async def test_fields_given_twice(api: API, content_type: str, mode: str) -> None:
    await api.create_configmap()
    body = b'{"kind":"ConfigMap","apiVersion":"v1","data":{"k":"v","k":"w"}}'
    if content_type == JSON_PATCH:
        body = b'[{"op":"add","path":"/data","path":"/data","value":{"k":"w"}}]'
    options = {"fieldValidation": mode} if mode else {}
    answer = await api.patch(PATH, body, content_type, fieldManager="m", **options)
    if mode == "Strict":
        assert answer.status == (400 if content_type == APPLY else 422)
        why = "error strict decoding YAML: " if content_type == APPLY else "strict decoding error: "
        assert why in answer.message
        return
    assert answer.json()["data"] == {"k": "w"}
    why = 'key \\"k\\" already set in map' if content_type == APPLY else "duplicate field"
    assert [why in each for each in answer.all("warning")] == ([] if mode == "Ignore" else [True])


async def test_unknown_fields_in_a_patch(api: API) -> None:
    await api.create_configmap()
    assert (await api.patch(PATH, {"nonsense": 1}, MERGE)).all("warning") == ['299 - "unknown field \\"nonsense\\""']
    strict = await api.patch(PATH, {"nonsense": 1}, MERGE, fieldValidation="Strict")
    assert (strict.status, 'strict decoding error: unknown field "nonsense"' in strict.message) == (422, True)


async def test_an_answer_in_protobuf(api: API) -> None:
    await api.create_configmap()
    assert (await api.patch(PATH, {"data": {"k": "v"}}, MERGE, accept=PROTOBUF)).body.startswith(b"k8s\0")


async def test_a_lost_race_is_run_again_and_warns_once(api: API, interfere: Callable[[int], None]) -> None:
    await api.create_configmap(data={"k": "v"})
    interfere(2)
    answer = await api.patch(PATH, {"data": {"mine": "1"}, "nonsense": 1}, MERGE)
    assert answer.json()["data"] == {"k": "v", "theirs": "2", "mine": "1"}
    assert len(answer.all("warning")) == 1


@pytest.mark.parametrize("content_type", [MERGE, APPLY])
async def test_races_are_not_run_for_ever(api: API, interfere: Callable[[int], None], content_type: str) -> None:
    await api.create_configmap()
    interfere(ATTEMPTS)
    answer = await api.patch(PATH, configmap(data={"mine": "1"}), content_type, fieldManager="m")
    assert (answer.status, answer.json()["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer.message


async def test_a_patch_with_a_version_is_conditional(api: API) -> None:
    created = await api.create_configmap()
    version = created["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "data": {"k": "v"}}
    assert [(await api.patch(PATH, body, MERGE)).status for _ in range(2)] == [200, 409]


@pytest.fixture
def interfere(api: API, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let somebody else be faster, so many times: between the look at the object and the commit."""
    commit = api.store.commit
    left = 0

    async def commit_later(operations: Any) -> Any:  # noqa: ANN401 - as the store's
        nonlocal left
        if left:
            left -= 1
            number = left
            monkeypatch.setattr(api.store, "commit", commit)
            current = await api.must("GET", PATH)
            current["data"] = {**current.get("data", {}), "theirs": str(2 - number)}
            await api.must("PUT", PATH, current)
            monkeypatch.setattr(api.store, "commit", commit_later)
        return await commit(operations)

    def begin(times: int) -> None:
        nonlocal left
        left = times
        monkeypatch.setattr(api.store, "commit", commit_later)

    return begin


async def test_apply_to_a_subresource(api: API) -> None:
    body = codec.dumps({"kind": "Namespace", "apiVersion": "v1", "status": {"phase": "Active"}})
    answer = await api.patch("/api/v1/namespaces/default/status", body, APPLY, fieldManager="m")
    assert answer.status == 200
    entries = [each for each in answer.json()["metadata"]["managedFields"] if each["manager"] == "m"]
    assert [each["subresource"] for each in entries] == ["status"]
