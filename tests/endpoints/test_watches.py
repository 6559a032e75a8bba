"""Watches as a client sees them."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any

import pytest

from kcp.endpoints import protobuf, watches
from kcp.meta import codec, wellknown
from kcp.store import Delete, ObjectKey, ResourceKey
from tests.endpoints.api import (
    API,
    CONFIGMAPS,
    OPERATOR,
    PARTIAL,
    PROTOBUF,
    TABLE,
    USER,
    WIDGETS,
    Stream,
    configmap,
    definition,
    served_version,
    widget,
)

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from tests.endpoints.conftest import LoopTime

END = {"k8s.io/initial-events-end": "true"}
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


def brief(event: Object) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


# -- events -------------------------------------------------------------------


async def test_what_is_there_then_what_changes(api: API) -> None:
    await api.create_configmap("a")
    async with api.watch(CONFIGMAPS) as watch:
        assert (watch.status, watch.headers["content-type"]) == (200, "application/json")
        assert brief(await watch.event()) == ("ADDED", "a")
        created = await api.create_configmap("b", data={"k": "v"})
        added = await watch.event()
        assert added == {"type": "ADDED", "object": created}
        updated = await api.must("PUT", f"{CONFIGMAPS}/b", configmap("b"))
        assert await watch.event() == {"type": "MODIFIED", "object": updated}
        await api.delete(f"{CONFIGMAPS}/b")
        deleted = await watch.event()
        assert brief(deleted) == ("DELETED", "b")
        assert int(deleted["object"]["metadata"]["resourceVersion"]) == api.store.revision


async def test_from_a_version_on(api: API) -> None:
    first = await api.create_configmap("a")
    await api.create_configmap("b")
    async with api.watch(CONFIGMAPS, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        assert brief(await watch.event()) == ("ADDED", "b")


async def test_a_watch_is_of_one_cluster_and_one_namespace(api: API) -> None:
    await api.create_cluster("other")
    await api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "second"}})
    async with api.watch(CONFIGMAPS) as narrow, api.watch("/api/v1/configmaps") as wide:
        await api.create_configmap("hidden", "other")
        await api.must("POST", "/api/v1/namespaces/second/configmaps", configmap("b"))
        await api.create_configmap("c")
        assert brief(await narrow.event()) == ("ADDED", "c")
        assert [brief(each)[1] for each in await wide.events(2)] == ["b", "c"]


async def test_a_watch_of_all_clusters_says_where(api: API) -> None:
    await api.create_cluster("other")
    await api.create_configmap("a")
    async with api.watch("/api/v1/configmaps", cluster="*", token=OPERATOR) as watch:
        await api.create_configmap("b", "other")
        where = [
            each["object"]["metadata"]["annotations"][wellknown.CLUSTER_ANNOTATION] for each in await watch.events(2)
        ]
        assert where == ["root", "other"]
        await api.delete(f"{CONFIGMAPS}/b", cluster="other")
        deleted = await watch.event()
        assert deleted["object"]["metadata"]["annotations"] == {wellknown.CLUSTER_ANNOTATION: "other"}


async def test_selectors_turn_changes_into_comings_and_goings(api: API) -> None:
    async with api.watch(CONFIGMAPS, labelSelector="color=red") as watch:
        for color in ("blue", "red", "green"):
            body = configmap(metadata={"labels": {"color": color}})
            await (api.post(CONFIGMAPS, body) if color == "blue" else api.put(f"{CONFIGMAPS}/a", body))
        assert [brief(each) for each in await watch.events(2)] == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_burst_arrives_in_order(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "WRITE_BYTES", 600)
    for number in range(7):
        await api.create_configmap(f"a{number}")
    async with api.watch(CONFIGMAPS) as watch:
        assert [brief(each)[1] for each in await watch.events(7)] == [f"a{number}" for number in range(7)]
        assert len(watch.sent) == 3
        await asyncio.gather(*(api.create_configmap(f"b{number}") for number in range(7)))
        names = {brief(each)[1] for each in await watch.events(7)}
        assert names == {f"b{number}" for number in range(7)}


async def test_events_in_the_other_group(api: API) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    body = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "a"}}
    async with api.watch(path) as watch:
        await api.must("POST", "/api/v1/namespaces/default/events", body)
        event = (await watch.event())["object"]
        assert (event["apiVersion"], event["regarding"]["name"]) == ("events.k8s.io/v1", "a")


async def test_versions_of_a_custom_resource(api: API) -> None:
    await api.define(definition(served_version("v1"), served_version("v2", storage=False)))
    async with api.watch(WIDGETS) as one, api.watch(WIDGETS.replace("/v1/", "/v2/")) as two:
        await api.must("POST", WIDGETS, widget())
        versions = [(await watch.event())["object"]["apiVersion"] for watch in (one, two)]
        assert versions == ["example.io/v1", "example.io/v2"]


# -- the old paths ------------------------------------------------------------


async def test_the_path_that_says_watch(api: API) -> None:
    await api.create_configmap("a")
    async with Stream(api.app, api.make_call("GET", "/api/v1/watch/namespaces/default/configmaps")) as watch:
        assert brief(await watch.event()) == ("ADDED", "a")


async def test_the_path_that_says_which(api: API) -> None:
    for name in "ab":
        await api.create_configmap(name)
    path = "/api/v1/watch/namespaces/default/configmaps/b"
    for options in ({}, {"fieldSelector": "metadata.name=b"}):
        async with api.watch(path, **options) as watch:
            assert brief(await watch.event()) == ("ADDED", "b")
            await api.must("PUT", f"{CONFIGMAPS}/a", configmap("a", data={"k": str(options)}))
            await api.must("PUT", f"{CONFIGMAPS}/b", configmap("b", data={"k": str(options)}))
            assert brief(await watch.event()) == ("MODIFIED", "b")
    for selector, why in (
        ("metadata.name=a", "fieldSelector metadata.name doesn't match requested name"),
        ("a", "invalid selector"),
    ):
        answer = await api.get(path, fieldSelector=selector)
        assert answer.status == 400
        assert why in answer.message


# -- formats ------------------------------------------------------------------


async def test_columns_come_with_the_first_table_only(api: API) -> None:
    await api.create_configmap("a", data={"k": "v"})
    async with api.watch(CONFIGMAPS, accept=TABLE) as watch:
        first = (await watch.event())["object"]
        assert first["kind"] == "Table"
        assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
        created = await api.create_configmap("b")
        second = (await watch.event())["object"]
        assert second["columnDefinitions"] is None or second["columnDefinitions"] == []
        assert second["rows"][0]["cells"] == ["b", 0, "0s"]
        assert second["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
        await api.delete(f"{CONFIGMAPS}/b")
        assert (await watch.event())["type"] == "DELETED"
    async with api.watch(CONFIGMAPS, accept=TABLE, includeObject="Object") as watch:
        assert (await watch.event())["object"]["rows"][0]["object"]["kind"] == "ConfigMap"


async def test_metadata_alone(api: API) -> None:
    await api.create_configmap(data={"k": "v"})
    async with api.watch(CONFIGMAPS, accept=PARTIAL, **INITIAL) as watch:
        added, bookmark = await watch.events(2)
        assert added["object"]["kind"] == "PartialObjectMetadata"
        assert "data" not in added["object"]
        assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "PartialObjectMetadata")


async def test_frames_of_protobuf(api: API) -> None:
    created = await api.create_configmap(data={"k": "v"})
    async with api.watch(CONFIGMAPS, accept=f"{PROTOBUF};stream=watch") as watch:
        assert watch.headers["content-type"] == f"{PROTOBUF};stream=watch"
        frame = await watch.chunk()
        assert struct.unpack(">I", frame[:4]) == (len(frame) - 4,)
        assert frame == protobuf.encode_watch_frame("ADDED", created)
        await api.delete(f"{CONFIGMAPS}/a")
        assert b"DELETED" in await watch.chunk()


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"accept": "application/yaml"}, 406),
        ({"accept": "text/html"}, 406),
        ({"resourceVersion": "x"}, 400),
        ({"resourceVersion": "999"}, 504),
        ({"labelSelector": "a=b=c"}, 400),
        ({"timeoutSeconds": "x"}, 400),
        ({"sendInitialEvents": "true"}, 422),
        ({"token": USER}, 403),
    ],
    ids=str,
)
async def test_watches_that_do_not_begin(api: API, options: dict[str, str], status: int) -> None:
    answer = await api.get(CONFIGMAPS, **{"watch": "true", **options})
    assert answer.status == status
    assert codec.loads_yaml(answer.body)["kind"] == "Status"  # JSON is YAML too


async def test_head_cannot_be_watched(api: API) -> None:
    assert (await api.call("HEAD", CONFIGMAPS, watch="true")).status == 405


# -- bookmarks and the end ----------------------------------------------------


@pytest.mark.parametrize("custom", [False, True], ids=["built in", "custom"])
async def test_the_end_of_the_initial_events_is_told(api: API, custom: bool) -> None:
    await api.define(definition())
    path, kind = (WIDGETS, "Widget") if custom else (CONFIGMAPS, "ConfigMap")
    await api.must("POST", path, widget("a") if custom else configmap("a"))
    async with api.watch(path, **INITIAL) as watch:
        added, bookmark = await watch.events(2)
    assert brief(added) == ("ADDED", "a")
    assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", kind)
    metadata = bookmark["object"]["metadata"]
    assert metadata["annotations"] == END
    assert metadata["resourceVersion"] == str(api.store.revision)
    assert ("creationTimestamp" in metadata) is not custom


async def test_without_initial_events(api: API) -> None:
    await api.create_configmap("a")
    options = {**INITIAL, "sendInitialEvents": "false"}
    async with api.watch(CONFIGMAPS, **options) as watch:
        await api.create_configmap("b")
        assert brief(await watch.event()) == ("ADDED", "b")


async def test_a_bookmark_comes_every_minute_to_those_who_want_it(api: API, loop_time: LoopTime) -> None:
    async with (
        api.watch(CONFIGMAPS, allowWatchBookmarks="true", resourceVersion="1") as with_bookmarks,
        api.watch(CONFIGMAPS, resourceVersion="1") as without,
    ):
        await settle()
        for _ in range(2):
            await api.must("POST", "/api/v1/namespaces", {"metadata": {"generateName": "n"}})
            loop_time.advance(61)
            bookmark = await with_bookmarks.event()
            assert bookmark["type"] == "BOOKMARK"
            assert bookmark["object"]["metadata"]["resourceVersion"] == str(api.store.revision)
        await api.create_configmap("a")
        assert brief(await without.event()) == ("ADDED", "a")


async def test_a_bookmark_comes_before_the_time_is_up(api: API, loop_time: LoopTime) -> None:
    async with api.watch(CONFIGMAPS, allowWatchBookmarks="true", resourceVersion="1", timeoutSeconds="10") as watch:
        await settle()
        loop_time.advance(8.5)
        assert (await watch.event())["type"] == "BOOKMARK"
        loop_time.advance(2)
        assert await watch.rest() == []


@pytest.mark.parametrize(("options", "seconds"), [({"timeoutSeconds": "5"}, 5.1), ({}, 3601)], ids=["asked", "default"])
async def test_a_watch_ends_when_its_time_is_up(
    api: API, loop_time: LoopTime, options: dict[str, str], seconds: float
) -> None:
    await api.create_configmap("a")
    async with api.watch(CONFIGMAPS, **options) as watch:
        assert brief(await watch.event()) == ("ADDED", "a")
        await settle()
        loop_time.advance(seconds)
        assert await watch.rest() == []
        await watch.task
        assert watch.sent[-1] == b""


async def test_a_watch_that_may_take_no_time_at_all(api: API) -> None:
    await api.create_configmap("a")
    async with api.watch(CONFIGMAPS, timeoutSeconds="-1") as watch:
        assert [brief(each) for each in await watch.rest()] == [("ADDED", "a")]


async def test_a_server_that_stops_ends_its_watches(api: API) -> None:
    async with api.watch(CONFIGMAPS) as watch:
        await settle()
        api.parts.draining.set()
        assert await watch.rest() == []
        await watch.task
    async with api.watch(CONFIGMAPS) as late:
        assert await late.rest() == []


async def test_a_client_that_hangs_up_leaves_nothing_behind(api: API, opened: list[Any]) -> None:
    async with api.watch(CONFIGMAPS) as watch:
        await settle()
        assert [watcher._closed for watcher in opened] == [False]
    assert watch.task.done()
    assert [watcher._closed for watcher in opened] == [True]
    assert not [task for task in asyncio.all_tasks() if "watches" in str(task.get_coro())]


async def test_a_version_that_is_gone(api: API) -> None:
    for name in "abc":
        await api.create_configmap(name)
    await api.store.compact(api.store.revision)
    async with api.watch(CONFIGMAPS, resourceVersion="1") as watch:
        assert watch.status == 200
        events = await watch.rest()
    assert [each["type"] for each in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


@pytest.mark.parametrize("accept", ["", PROTOBUF])
async def test_a_watcher_that_falls_too_far_behind(api: API, opened: list[Any], accept: str) -> None:
    async with api.watch(CONFIGMAPS, accept=accept, resourceVersion="1") as watch:
        await settle()
        opened[0].fall_behind()
        opened[0]._position = 1
        for name in "abc":
            await api.create_configmap(name)
        await api.store.compact(api.store.revision)
        opened[0]._behind = True
        opened[0]._position = 1
        opened[0]._wake()
        data = b""
        while chunk := await watch.chunk():
            data += chunk
        assert b"ERROR" in data
        assert b"Expired" in data


async def test_a_defect_in_the_middle_of_a_stream_ends_it(
    api: API, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with api.watch(CONFIGMAPS, accept=PARTIAL) as watch:
        await settle()

        def fail(*_: object) -> None:
            raise RuntimeError("a defect")

        monkeypatch.setattr("kcp.endpoints.transforms.partial", fail)
        await api.create_configmap("a")
        with pytest.raises(EOFError):
            await watch.chunk()
    assert "a defect" in caplog.text


# -- sharing ------------------------------------------------------------------


async def test_an_event_is_encoded_once_for_all(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    encode = watches.Framer._encode_event

    def counted(framer: watches.Framer, kind: str, event: Any) -> bytes:  # noqa: ANN401
        nonlocal count
        count += 1
        return encode(framer, kind, event)

    monkeypatch.setattr(watches.Framer, "_encode_event", counted)
    streams: list[Stream] = [api.watch(CONFIGMAPS) for _ in range(5)]
    async with streams[0], streams[1], streams[2], streams[3], streams[4]:
        await settle()
        await api.create_configmap("a")
        await api.delete(f"{CONFIGMAPS}/a")
        for stream in streams:
            assert [brief(each)[0] for each in await stream.events(2)] == ["ADDED", "DELETED"]
    assert count == 2


async def settle() -> None:
    """Let every task run until it waits for something."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def opened(api: API, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The store's watchers, as they are opened."""
    found: list[Any] = []
    watch = api.store.watch

    def remember(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the store's
        found.append(watch(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(api.store, "watch", remember)
    return found


async def test_an_object_that_vanishes_from_the_store_is_deleted(api: API) -> None:
    """Whoever removes it, and however."""
    await api.create_configmap("a")
    async with api.watch(CONFIGMAPS) as watch:
        await watch.event()
        key = ObjectKey(ResourceKey("", "configmaps"), "root", "default", "a")
        record = api.store.get(key)
        assert record is not None
        await api.store.commit([Delete(key, record.revision)])
        assert brief(await watch.event()) == ("DELETED", "a")
