"""watch: a stream of events, each encoded once however many clients follow it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kcp import store
from kcp.endpoints import negotiation, transforms
from kcp.endpoints.options import list_options
from kcp.endpoints.reads import ALL_CLUSTERS, add_cluster, media_for
from kcp.endpoints.respond import warning_headers
from kcp.meta import codec, errors, fields
from kcp.registry.errors import translate
from kcp.registry.watching import ADDED, DELETED, MODIFIED, start_watch
from kcp.store.value import body_of, stamp, unstamp

if TYPE_CHECKING:
    from kcp.endpoints.negotiation import MediaType
    from kcp.endpoints.request import Request, Send
    from kcp.meta.codec import Object
    from kcp.registry.listing import ListOptions
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource
    from kcp.registry.watching import Watch
    from kcp.store import Batch, Event

BOOKMARK_SECONDS = 60.0
MIN_TIMEOUT_SECONDS = 1800.0  # a watch without a limit of its own ends after 30 to 60 minutes
WRITE_BYTES = 64 * 1024  # frames of a burst are sent together up to this size
_KINDS = (ADDED, MODIFIED, DELETED)
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Framer:
    """Events as the frames of one representation. `key` names it: clients with the same one share encoded frames."""

    def __init__(
        self, registry: Registry, resource: Resource, media: MediaType, *, include: str, wildcard: bool
    ) -> None:
        self._clock = registry.clock
        self.resource = resource
        self._media = media
        self._include = include
        self._wildcard = wildcard
        self._columns_sent = False
        # Texts, because they remember their hash: each event is looked up once for every watcher.
        maker = resource.serial if resource.from_storage else 0
        self._names = {kind: f"{media} {include} {wildcard} {resource.gvr} {maker} {kind}" for kind in _KINDS}
        self._encoders = {kind: partial(self._encode_event, kind) for kind in _KINDS}
        self._plain = media == negotiation.PLAIN_JSON and not wildcard and resource.from_storage is None
        self._shared = media.transform != "Table"  # ages, and columns in the first event only

    def frame(self, kind: str, event: Event) -> bytes:
        if not self._shared:
            return self._encode_event(kind, event)
        return event.frame(self._names[kind], self._encoders[kind])

    def _encode_event(self, kind: str, event: Event) -> bytes:
        if kind == DELETED:
            # The last state, at the version of its deletion: whoever resumes from it misses nothing.
            assert event.old_stored is not None
            stored = stamp(unstamp(event.old_stored), event.revision)
        else:
            assert event.new_stored is not None
            stored = event.new_stored
        return self.body_frame(kind, body_of(stored), event.key.cluster)

    def body_frame(self, kind: str, body: bytes, cluster: str) -> bytes:
        if self._plain:
            return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)
        obj = codec.loads(body)
        if self.resource.from_storage is not None:
            obj = self.resource.from_storage(obj)
        if self._wildcard:
            add_cluster(obj, cluster)
        return self.object_frame(kind, obj)

    def object_frame(self, kind: str, obj: Object) -> bytes:
        if kind != "ERROR":
            obj = self._transform(obj)
        if self._media.name == negotiation.PROTOBUF:
            from kcp.endpoints import protobuf

            return protobuf.encode_watch_frame(kind, obj)
        return codec.dumps({"type": kind, "object": obj}) + b"\n"

    def _transform(self, obj: Object) -> Object:
        if self._media.transform == "Table":
            shown = transforms.table(
                self.resource,
                [obj],
                {"resourceVersion": obj["metadata"].get("resourceVersion", "")},
                media=self._media,
                include=self._include,
                now=self._clock.now(),
                with_columns=not self._columns_sent,
            )
            self._columns_sent = True
            return shown
        if self._media.transform:
            return transforms.partial(obj, self._media.transform_version)
        return obj

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        if not self.resource.custom:
            metadata["creationTimestamp"] = None
        body: Object = {"kind": self.resource.gvk.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        return self.object_frame("BOOKMARK", body)

    def error(self, error: errors.StatusError) -> bytes:
        return self.object_frame("ERROR", error.to_status())


async def watch_objects(
    registry: Registry,
    resource: Resource,
    request: Request,
    send: Send,
    *,
    draining: asyncio.Event,
    sent: list[float],
) -> None:
    """Answer with a stream until its time is up, the client goes, or the server stops. `sent` counts the events."""
    media = media_for(request, resource, collection=True)
    if media.name == negotiation.YAML:
        raise negotiation.not_acceptable()
    include = "Metadata"
    if media.transform == "Table":
        include = transforms.include_policy(request.parameter("includeObject"))
    options = _select_name(list_options(request), request.info.name)
    cluster = None if request.cluster == ALL_CLUSTERS else request.cluster
    namespace = request.info.namespace or None if resource.namespaced else ""
    framer = Framer(registry, resource, media, include=include, wildcard=cluster is None)
    try:
        watch = await start_watch(registry, resource, cluster, namespace, options)
    except errors.Expired as error:
        await _start(request, send, media)
        await send({"type": "http.response.body", "body": framer.error(error)})
        return
    timeout = float(options.timeout_seconds or 0) or MIN_TIMEOUT_SECONDS * (1 + random.random())
    stream = _Stream(framer, watch, send, bookmarks=options.allow_bookmarks, sent=sent)
    with watch.watcher:
        await _start(request, send, media)
        await _until_gone(stream.run(timeout, initial_end=watch.initial_end), request, draining, watch)
    await send({"type": "http.response.body", "body": b""})


def _select_name(options: ListOptions, name: str) -> ListOptions:
    """A watch of one object, by the old path that names it, is one of the collection with a selector."""
    if not name:
        return options
    if not options.field_selector:
        return replace(options, field_selector=f"metadata.name={name}")
    try:
        selected = fields.parse(options.field_selector).requires_exact_match("metadata.name")
    except ValueError as error:
        raise errors.BadRequest(str(error)) from error
    if selected != name:
        raise errors.BadRequest("fieldSelector metadata.name doesn't match requested name")
    return options


async def _start(request: Request, send: Send, media: MediaType) -> None:
    content_type = media.name + (";stream=watch" if media.name == negotiation.PROTOBUF else "")
    headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-cache, private")]
    headers += warning_headers(request.warnings)
    request.streaming = True
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _until_gone(streaming: Any, request: Request, draining: asyncio.Event, watch: Watch) -> None:  # noqa: ANN401
    """Run the stream; when the client hangs up or the server drains, close the watcher, which ends it."""

    async def hang_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    async def drain() -> None:
        await draining.wait()

    ends = [asyncio.ensure_future(hang_up()), asyncio.ensure_future(drain())]
    for end in ends:
        end.add_done_callback(lambda _: watch.watcher.close())
    try:
        await streaming
    finally:
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


class _Stream:
    def __init__(self, framer: Framer, watch: Watch, send: Send, *, bookmarks: bool, sent: list[float]) -> None:
        self._sent = sent
        self._framer = framer
        self._watch = watch
        self._send = send
        self._bookmarks = bookmarks

    async def run(self, timeout: float, *, initial_end: bool) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        bookmark_at = loop.time() + min(BOOKMARK_SECONDS, max(timeout - 2.0, 0.1))
        try:
            await self._send_initial(initial_end=initial_end)
            while (now := loop.time()) < deadline:
                until = min(deadline, bookmark_at) if self._bookmarks else deadline
                batch = await self._watch.watcher.next(max(until - now, 0.001))
                if batch.events:
                    await self._send_batch(batch)
                if self._bookmarks and loop.time() >= bookmark_at:
                    bookmark_at = loop.time() + BOOKMARK_SECONDS
                    await self._write(self._framer.bookmark(self._watch.watcher.revision))
        except store.Closed:
            return
        except store.StoreError as error:
            await self._write(self._framer.error(translate(error, self._framer.resource.group_resource, "")))

    async def _send_initial(self, *, initial_end: bool) -> None:
        framer = self._framer
        self._sent[0] += len(self._watch.initial)
        frames: list[bytes] = []
        size = 0
        for record in self._watch.initial:
            frames.append(framer.body_frame("ADDED", record.body, record.key.cluster))
            size += len(frames[-1])
            if size >= WRITE_BYTES:
                await self._write(b"".join(frames))
                frames, size = [], 0
        if initial_end:
            frames.append(framer.bookmark(self._watch.revision, initial_end=True))
        if frames:
            await self._write(b"".join(frames))

    async def _send_batch(self, batch: Batch) -> None:
        frame, classify = self._framer.frame, self._watch.classify
        events = batch.events
        self._sent[0] += len(events)
        if len(events) == 1:
            await self._write(frame(classify(events[0]), events[0]))
            return
        frames: list[bytes] = []
        size = 0
        for event in events:
            frames.append(frame(classify(event), event))
            size += len(frames[-1])
            if size >= WRITE_BYTES:
                await self._write(b"".join(frames))
                frames, size = [], 0
        if frames:
            await self._write(b"".join(frames))

    async def _write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
