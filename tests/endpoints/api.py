"""The whole application without a socket: requests go in as ASGI messages, answers come out as values."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from kcp.auth.tokens import digest_of
from kcp.auth.user import UserInfo
from kcp.endpoints.http import PEER_CERTIFICATE
from kcp.meta import codec, wellknown
from kcp.server.assemble import Assembled, Parts, build
from kcp.server.bootstrap import ensure_cluster
from kcp.server.certificates import Authority
from kcp.server.options import ServerOptions
from kcp.store import ResourceKey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from kcp.meta.codec import Object
    from kcp.meta.fake_clock import FakeClock
    from kcp.store import Store

ADMIN, OPERATOR, USER = "admin-token", "operator-token", "user-token"
USERS = {
    digest_of(ADMIN): UserInfo("admin", groups=(wellknown.GROUP_MASTERS,)),
    digest_of(OPERATOR): UserInfo("operator", groups=(wellknown.GROUP_KCP_ADMIN,)),
    digest_of(USER): UserInfo("jane", groups=("devs",)),
}
URL = "https://127.0.0.1:6443"
CLUSTER = "root"
CORE = "/api/v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.io/v1/namespaces/default/widgets"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@dataclass
class Answer:
    """What was sent back, complete."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:  # noqa: ANN401 - any JSON document
        body = self.body
        if self.header("content-encoding") == "gzip":
            body = zlib.decompress(body, 31)
        return codec.loads(body)

    @property
    def message(self) -> str:
        message: str = self.json()["message"]
        return message

    @property
    def media(self) -> str | None:
        return self.header("content-type")


@dataclass
class Call:
    """One request."""

    method: str
    path: str
    body: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    query: bytes = b""
    certificate: bytes | None = None

    @property
    def scope(self) -> dict[str, Any]:
        return {
            "type": "http",
            "method": self.method,
            "path": self.path,
            "query_string": self.query,
            "headers": self.headers,
            "extensions": {} if self.certificate is None else {PEER_CERTIFICATE: self.certificate},
        }


class Stream:
    """A watch that is being read. Leaving the block hangs up and waits until the server noticed."""

    def __init__(self, app: Any, call: Call) -> None:  # noqa: ANN401 - an ASGI application
        self._app = app
        self._call = call
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._gone = asyncio.Event()
        self._buffer = b""
        self._is_over = False
        self._has_sent = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.sent: list[bytes] = []
        self.task: asyncio.Task[None]

    async def __aenter__(self) -> Stream:
        self.task = asyncio.create_task(self._app(self._call.scope, self._receive, self._messages.put))
        start = await self._next()
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.hang_up()
        await self.task

    def hang_up(self) -> None:
        self._gone.set()

    async def _receive(self) -> dict[str, Any]:
        if not self._has_sent:
            self._has_sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _next(self) -> dict[str, Any]:
        getting = asyncio.ensure_future(self._messages.get())
        await asyncio.wait({getting, self.task}, return_when=asyncio.FIRST_COMPLETED)
        if not getting.done():
            getting.cancel()
            self.task.result()  # what went wrong, if something did
            raise EOFError("the application returned")
        return getting.result()

    async def chunk(self) -> bytes:
        """The next piece as it was sent; empty at the end."""
        if self._is_over:
            return b""
        message = await self._next()
        body: bytes = message["body"]
        self._is_over = not message.get("more_body", False)
        self.sent.append(body)
        return body

    async def event(self) -> Object:
        """The next event of a JSON stream. Raises EOFError at the end."""
        while b"\n" not in self._buffer:
            chunk = await self.chunk()
            if not chunk:
                raise EOFError("the stream ended")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        event: Object = codec.loads(line)
        return event

    async def events(self, count: int) -> list[Object]:
        return [await self.event() for _ in range(count)]

    async def rest(self) -> list[Object]:
        """All events up to the end of the stream."""
        found = []
        try:
            while True:
                found.append(await self.event())
        except EOFError:
            return found


class API:
    """What a test uses as kubectl would be used. Paths are relative to a logical cluster; None is the server itself."""

    def __init__(self, assembled: Assembled, parts: Parts) -> None:
        self.assembled = assembled
        self.parts = parts
        self.app: Any = assembled.app
        self.registry = assembled.registry
        self.store: Store = parts.store

    def make_call(
        self,
        method: str,
        path: str,
        body: Any = b"",  # noqa: ANN401 - bytes as they are, anything else as JSON
        *,
        accept: str = "",
        headers: Mapping[str, str] | None = None,
        token: str = ADMIN,
        cluster: str | None = CLUSTER,
        **query: str,
    ) -> Call:
        data = body if isinstance(body, bytes) else codec.dumps(body)
        pairs = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        if accept:
            pairs.append((b"accept", accept.encode()))
        if token:
            pairs.append((b"authorization", f"Bearer {token}".encode()))
        prefix = "" if cluster is None else f"/clusters/{cluster}"
        return Call(method, prefix + path, data, pairs, urlencode(query).encode())

    async def send(self, call: Call, *chunks: bytes) -> Answer:
        """Send a request, its body in these pieces or as one."""
        pieces = list(chunks) or [call.body]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not pieces:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(call.scope, receive, send)
        assert [message["type"] for message in sent[:1]] == ["http.response.start"]
        assert all(message["type"] == "http.response.body" for message in sent[1:])
        headers = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        return Answer(sent[0]["status"], headers, b"".join(message["body"] for message in sent[1:]))

    async def call(self, method: str, path: str, body: Any = b"", **options: Any) -> Answer:  # noqa: ANN401
        return await self.send(self.make_call(method, path, body, **options))

    async def get(self, path: str, **options: Any) -> Answer:  # noqa: ANN401 - make_call's
        return await self.call("GET", path, **options)

    async def post(self, path: str, body: Any, **options: Any) -> Answer:  # noqa: ANN401 - make_call's
        return await self.call("POST", path, body, **options)

    async def put(self, path: str, body: Any, **options: Any) -> Answer:  # noqa: ANN401 - make_call's
        return await self.call("PUT", path, body, **options)

    async def patch(self, path: str, body: Any, content_type: str, **options: Any) -> Answer:  # noqa: ANN401
        headers = {"content-type": content_type, **options.pop("headers", {})}
        return await self.call("PATCH", path, body, headers=headers, **options)

    async def delete(self, path: str, body: Any = b"", **options: Any) -> Answer:  # noqa: ANN401
        return await self.call("DELETE", path, body, **options)

    def watch(self, path: str, **options: Any) -> Stream:  # noqa: ANN401 - make_call's
        return Stream(self.app, self.make_call("GET", path, **{"watch": "true", **options}))

    async def must(self, method: str, path: str, body: Any = b"", **options: Any) -> Any:  # noqa: ANN401
        """The answer's document, of a request that has to succeed."""
        answer = await self.call(method, path, body, **options)
        assert answer.status in (200, 201), answer.text
        return answer.json()

    # -- objects that many tests need -------------------------------------------

    async def create_configmap(self, name: str = "a", cluster: str = CLUSTER, **fields: Any) -> Object:  # noqa: ANN401
        created: Object = await self.must("POST", CONFIGMAPS, configmap(name, **fields), cluster=cluster)
        return created

    async def create_cluster(self, name: str) -> None:
        await ensure_cluster(self.registry, name)
        await self.must("POST", f"{CORE}/namespaces", {"metadata": {"name": "default"}}, cluster=name)

    async def define(self, definition: Object, cluster: str = CLUSTER) -> Object:
        """Create a CustomResourceDefinition and say, as its controller would, that it is served."""
        created: Object = await self.must("POST", CRDS, definition, cluster=cluster)
        created["status"] = {
            "acceptedNames": created["spec"]["names"],
            "storedVersions": [each["name"] for each in created["spec"]["versions"] if each["storage"]],
            "conditions": [
                {"type": name, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": None}
                for name in ("NamesAccepted", "Established")
            ],
        }
        name = created["metadata"]["name"]
        established: Object = await self.must("PUT", f"{CRDS}/{name}/status", created, cluster=cluster)
        return established

    async def grant(self, verbs: list[str], resources: list[str], *, namespace: str = "", user: str = "jane") -> None:
        """Let a user do these things in the logical cluster, or in one of its namespaces."""
        group = "rbac.authorization.k8s.io"
        base = f"/apis/{group}/v1" + (f"/namespaces/{namespace}" if namespace else "")
        kind = "Role" if namespace else "ClusterRole"
        name = f"{user}-{self.store.revision}"
        rules = [{"apiGroups": ["*"], "resources": resources, "verbs": verbs}]
        role, binding = f"{base}/{kind.lower()}s", f"{base}/{kind.lower()}bindings"
        await self.must("POST", role, {"metadata": {"name": name}, "rules": rules})
        subjects = [{"kind": "User", "name": user, "apiGroup": group}]
        reference = {"kind": kind, "name": name, "apiGroup": group}
        await self.must("POST", binding, {"metadata": {"name": name}, "subjects": subjects, "roleRef": reference})
        self.assembled.on_change(CLUSTER, ResourceKey(group, "roles"))


def configmap(name: str = "a", **fields: Any) -> Object:  # noqa: ANN401 - of a ConfigMap
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, **fields}


def widget(name: str = "w", version: str = "v1", **fields: Any) -> Object:  # noqa: ANN401 - of a Widget
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"kind": "Widget", "apiVersion": f"example.io/{version}", "metadata": metadata, **fields}


def definition(*versions: Object, scope: str = "Namespaced", **names: Any) -> Object:  # noqa: ANN401 - spec.names
    """Widgets, in these versions."""
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io",
            "scope": scope,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", **names},
            "versions": list(versions) or [served_version()],
        },
    }


def served_version(name: str = "v1", *, storage: bool = True, **fields: Any) -> Object:  # noqa: ANN401
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"spec": fields.pop("spec", spec), "status": spec}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **fields}


async def open_api(
    root: Path, store: Store, clock: FakeClock, signing_key: bytes, options: ServerOptions | None = None
) -> API:
    parts = Parts(
        options=options or ServerOptions(root),
        store=store,
        clock=clock,
        url=URL,
        admins=USERS,
        client_authority=Authority(b"", b""),
        signing_key=signing_key,
        verification_keys=(signing_key,),
        stopping=asyncio.Event(),
        draining=asyncio.Event(),
    )
    api = API(build(parts), parts)
    await api.create_cluster(CLUSTER)
    return api
