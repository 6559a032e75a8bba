"""The filters that every request goes through."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from kcp import store as stores
from kcp.auth import x509
from kcp.endpoints.flow import FlowOptions
from kcp.meta import wellknown
from kcp.server.options import AuthenticationOptions, ServerOptions, ServingOptions
from kcp.server.version import VERSION
from tests.endpoints.api import ADMIN, API, CONFIGMAPS, OPERATOR, USER, Call, configmap, definition, open_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from kcp.meta.fake_clock import FakeClock
    from kcp.store import EmbeddedStore, Operation, Revision
    from tests.endpoints.conftest import LoopTime

LOGICAL_CLUSTERS = f"/apis/{wellknown.GROUP_CORE}/v1alpha1/logicalclusters"


@pytest.fixture
async def make_api(
    tmp_path: Path, store: EmbeddedStore, clock: FakeClock, signing_key: bytes
) -> AsyncIterator[Callable[..., Awaitable[API]]]:
    """The application with other options."""
    opened: list[API] = []

    async def make(flow: FlowOptions | None = None, **authentication: Any) -> API:  # noqa: ANN401
        options = ServerOptions(
            tmp_path,
            serving=ServingOptions(flow=flow or FlowOptions()),
            authentication=AuthenticationOptions(**authentication),
        )
        opened.append(await open_api(tmp_path, store, clock, signing_key, options))
        return opened[-1]

    yield make
    for api in opened:
        await api.assembled.webhooks.aclose()


class Pending:
    """A request whose body does not come until it is told to."""

    def __init__(self, api: API, call: Call) -> None:
        self.sent: list[dict[str, Any]] = []
        self.body: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(api.app(call.scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        return await self.body

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        status: int = self.sent[0]["status"]
        return status


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


# -- logical clusters ---------------------------------------------------------


@pytest.mark.parametrize("path", [CONFIGMAPS, f"{CONFIGMAPS}/a", "/api", "/apis/example.io/v1", "/openapi/v2"])
async def test_a_cluster_that_does_not_exist_is_not_made_by_asking(api: API, path: str) -> None:
    before = api.store.revision
    for method in ("GET", "POST", "PUT", "DELETE"):
        answer = await api.call(method, path, configmap(), cluster="root:missing")
        assert (answer.status, answer.message) == (404, 'workspaces.tenancy.kcp.io "root:missing" not found')
        refused = await api.call(method, path, configmap(), cluster="root:missing", token=USER)
        assert refused.status == (403 if "/v1/" in path else refused.status)
        assert refused.status in (403, 404)
    assert api.store.revision == before


@pytest.mark.parametrize(
    ("cluster", "status"),
    [("ROOT", 400), ("root:", 400), (":root", 400), ("a_b", 400), ("**", 400), ("x" * 3000, 400), ("root..", 400)],
)
async def test_names_that_no_cluster_can_have(api: API, cluster: str, status: int) -> None:
    answer = await api.get(CONFIGMAPS, cluster=cluster)
    assert answer.status == status
    assert answer.message == f'invalid cluster: "{cluster}" does not match the regex'


@pytest.mark.parametrize(
    "path",
    [
        "/clusters",
        "/clusters/",
        "//clusters/root/api/v1/configmaps",
        "/clusters/root/../other/api/v1/configmaps",
        "/clusters/root/clusters/root/api/v1/configmaps",
        "/api/v1/configmaps",
        "/api/v1/namespaces/default/configmaps/a",
        "/clusters/root/api/v1/../../api/v1/configmaps",
        "/clusters/root/API/v1/configmaps",
        "/clusters/root/%61pi/v1/configmaps",
    ],
)
async def test_paths_that_lead_nowhere(api: API, path: str) -> None:
    await api.create_configmap()
    answer = await api.get(path, cluster=None)
    assert answer.status in (400, 404)
    assert b'"items"' not in answer.body


async def test_a_cluster_comes_into_being_by_its_own_object(api: API) -> None:
    body = {"kind": "LogicalCluster", "apiVersion": f"{wellknown.GROUP_CORE}/v1alpha1", "metadata": {"name": "cluster"}}
    assert (await api.post(LOGICAL_CLUSTERS, body, cluster="fresh", token=USER)).status == 403
    assert (await api.post(LOGICAL_CLUSTERS, body, cluster="fresh")).status == 201
    assert (await api.get(CONFIGMAPS, cluster="fresh")).status == 200


async def test_a_cluster_that_does_not_exist_takes_no_other_object(api: API) -> None:
    body = {"kind": "LogicalCluster", "apiVersion": f"{wellknown.GROUP_CORE}/v1alpha1", "metadata": {"name": "other"}}
    before = api.store.revision
    assert (await api.post(LOGICAL_CLUSTERS, body, cluster="fresh")).status == 403
    assert api.store.revision == before


# -- what is wrong ------------------------------------------------------------


async def test_a_defect_becomes_an_answer_and_a_log_entry(
    api: API, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret details")

    monkeypatch.setattr(api.registry.catalogue, "find", fail)
    answer = await api.get(CONFIGMAPS)
    assert (answer.status, answer.json()["reason"]) == (500, "InternalError")
    assert "secret details" not in answer.text
    assert "secret details" in caplog.text
    assert f"request failed method=GET path=/clusters/root{CONFIGMAPS}" in caplog.text


async def test_a_store_that_is_in_trouble(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise stores.Unavailable("no quorum")

    monkeypatch.setattr(api.store, "get", fail)
    answer = await api.get(CONFIGMAPS)
    assert (answer.status, answer.json()["reason"]) == (503, "ServiceUnavailable")
    assert "no quorum" in answer.message


async def test_nobody_answers_a_client_that_is_gone(api: API) -> None:
    pending = Pending(api, api.make_call("POST", CONFIGMAPS))
    pending.body.set_result({"type": "http.disconnect"})
    await pending.task
    assert pending.sent == []


async def test_a_cancelled_request_is_over(api: API) -> None:
    pending = Pending(api, api.make_call("POST", CONFIGMAPS))
    await settle()
    pending.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending.task
    assert pending.sent == []


async def test_other_protocols_are_left_alone(api: API) -> None:
    await api.app({"type": "lifespan"}, None, None)


# -- who is asking ------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (f"Bearer {USER}", "jane"),
        (f"bearer   {USER} ", "jane"),
        ("", "system:anonymous"),
        ("Basic YWJj", "system:anonymous"),
        (f"Token {ADMIN}", "system:anonymous"),
    ],
    ids=["token", "loosely", "none", "password", "other scheme"],
)
async def test_the_token_says_who_is_asking(api: API, header: str, name: str) -> None:
    answer = await api.get("/api/v1/namespaces", token="", headers={"authorization": header} if header else {})
    assert (answer.status, f'User "{name}" cannot list' in answer.message) == (403, True)


@pytest.mark.parametrize("token", ["wrong", "ä", "a.b.c"])
async def test_a_token_that_nobody_has(api: API, token: str) -> None:
    answer = await api.get("/api/v1/namespaces", token=token)
    assert (answer.status, answer.json()["reason"], answer.message) == (401, "Unauthorized", "Unauthorized")


async def test_a_certificate_says_who_is_asking(api: API, clock: FakeClock) -> None:
    ca_key, key = x509.make_key(), x509.make_key()
    ca = x509.make_ca("ca", ca_key, 10, clock.now())
    pem = x509.sign_certificate(
        ca, ca_key, key, common_name="john", organizations=["devs"], days=1, now=clock.now(), server=False, client=True
    )
    call = api.make_call("GET", "/api/v1/namespaces", token="")
    call.certificate = x509.certificate_to_der(pem)
    answer = await api.send(call)
    assert (answer.status, 'User "john" cannot list' in answer.message) == (403, True)


async def test_anonymous_requests_can_be_refused(make_api: Callable[..., Awaitable[API]]) -> None:
    api = await make_api(anonymous_auth=False)
    assert (await api.get("/version", token="")).status == 401
    assert (await api.get("/livez", token="")).status == 200


async def test_the_users_of_a_token_file(make_api: Callable[..., Awaitable[API]], tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('file-token,carol,1,"system:masters,other"\n')
    api = await make_api(token_auth_file=path)
    assert (await api.get("/version", token="file-token")).status == 200


# -- acting as somebody else --------------------------------------------------


async def test_an_admin_may_be_anybody(api: API) -> None:
    answer = await api.get("/api/v1/namespaces", headers={"impersonate-user": "jane", "impersonate-group": "x"})
    assert (answer.status, 'User "jane" cannot list' in answer.message) == (403, True)
    await api.grant(["list"], ["namespaces"])
    assert (await api.get("/api/v1/namespaces", headers={"impersonate-user": "jane"})).status == 200


async def test_not_everybody_may(api: API) -> None:
    answer = await api.get("/api/v1/namespaces", token=USER, headers={"impersonate-user": "admin"})
    assert (answer.status, 'User "jane" cannot impersonate resource "users"' in answer.message) == (403, True)


async def test_a_group_needs_a_user(api: API) -> None:
    answer = await api.get("/api/v1/namespaces", headers={"impersonate-group": "x"})
    assert (answer.status, "without impersonating a user" in answer.message) == (400, True)
    assert (await api.get("/api/v1/namespaces", headers={"impersonate-other": "x"})).status == 200


# -- may they -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "query"),
    [("list", {}), ("watch", {"watch": "true"}), ("list", {"watch": "false"})],
    ids=["list", "watch", "no watch"],
)
async def test_lists_and_watches_are_different_questions(api: API, verb: str, query: dict[str, str]) -> None:
    answer = await api.get(CONFIGMAPS, token=USER, **query)
    assert (answer.status, f'cannot {verb} resource "configmaps"' in answer.message) == (403, True)


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ("metadata.name=mine", True),
        ("metadata.name=mine,metadata.namespace=default", True),
        ("metadata.name=other", False),
        ("metadata.name!=mine", False),
        ("metadata.name=..", False),
        ("a=b=c", False),
        ("", False),
    ],
)
async def test_a_list_of_one_name_is_asked_for_by_that_name(api: API, selector: str, allowed: bool) -> None:
    group = "rbac.authorization.k8s.io"
    base = f"/apis/{group}/v1/namespaces/default"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"], "resourceNames": ["mine"]}
    await api.must("POST", f"{base}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    reference = {"kind": "Role", "name": "r", "apiGroup": group}
    subjects = [{"kind": "User", "name": "jane", "apiGroup": group}]
    await api.must(
        "POST", f"{base}/rolebindings", {"metadata": {"name": "r"}, "roleRef": reference, "subjects": subjects}
    )
    answer = await api.get(CONFIGMAPS, token=USER, fieldSelector=selector)
    assert answer.status == (200 if allowed else 403)


async def test_a_service_account_that_names_no_cluster_is_at_home(api: API) -> None:
    await api.must("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "bot"}})
    asked = await api.must("POST", "/api/v1/namespaces/default/serviceaccounts/bot/token", {"spec": {}})
    token = asked["status"]["token"]
    answer = await api.get(CONFIGMAPS, token=token, cluster=None)
    assert (answer.status, "system:serviceaccount:default:bot" in answer.message) == (403, True)
    assert (await api.get("/apis", token=token, cluster=None)).status == 200
    assert (await api.get(CONFIGMAPS, token=token[:-4] + "AAAA", cluster=None)).status == 401
    assert (await api.get(CONFIGMAPS, cluster=None)).status == 404, "others say where they want to go"


async def test_paths_are_authorized_too(api: API) -> None:
    answer = await api.get("/metrics", token=USER, cluster=None)
    assert (answer.status, answer.message) == (403, 'forbidden: User "jane" cannot get path "/metrics"')


async def test_what_a_cluster_defines_is_for_those_who_live_in_it(api: API) -> None:
    await api.create_cluster("team")
    await api.define(definition(), cluster="team")
    for path in ("/apis", "/apis/example.io/v1", "/openapi/v2", "/openapi/v3/apis/example.io/v1"):
        assert (await api.get(path, token=USER, cluster="team")).status == 403
        assert (await api.get(path, cluster="team")).status == 200
    assert (await api.get("/apis", token=USER)).status == 200  # the root is open to all who are known


# -- not too much at once -----------------------------------------------------


async def test_too_many_watches(make_api: Callable[..., Awaitable[API]]) -> None:
    api = await make_api(FlowOptions(max_watches_per_cluster=1))
    await api.grant(["*"], ["*"])
    async with api.watch(CONFIGMAPS, token=USER):
        answer = await api.get(CONFIGMAPS, token=USER, watch="true")
        assert (answer.status, answer.header("retry-after")) == (429, "1")
        assert answer.json()["reason"] == "TooManyRequests"
        assert answer.message == "Too many requests, please try again later."
        assert (await api.get("/api/v1/watch/configmaps", token=USER)).status == 429
        assert (await api.get(CONFIGMAPS, token=USER)).status == 200
    async with api.watch(CONFIGMAPS, token=USER) as watch:
        assert watch.status == 200


async def test_too_many_writes(
    make_api: Callable[..., Awaitable[API]], loop_time: LoopTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await make_api(FlowOptions(max_mutating=1, max_queued=1))
    await api.grant(["*"], ["*"])
    opened = hold_commits(api, monkeypatch)
    running, waiting = (start_write(api) for _ in range(2))
    await settle()
    assert (await api.post(CONFIGMAPS, configmap("c"), token=USER)).status == 429
    assert (await api.post(CONFIGMAPS, configmap("d"), dryRun="All")).status == 201  # system:masters need not queue
    assert (await api.get(CONFIGMAPS, token=USER)).status == 200
    opened.set()
    for pending in (running, waiting):
        await pending.task
        assert pending.status == 201


async def test_a_body_that_does_not_come_takes_no_seat(make_api: Callable[..., Awaitable[API]]) -> None:
    api = await make_api(FlowOptions(max_mutating=1, max_queued=1))
    await api.grant(["*"], ["*"])
    slow = [Pending(api, api.make_call("POST", CONFIGMAPS, token=USER)) for _ in range(5)]
    await settle()
    assert (await api.post(CONFIGMAPS, configmap("c"), token=USER)).status == 201
    for pending in slow:
        pending.body.set_result({"type": "http.disconnect"})
        await pending.task


def hold_commits(api: API, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Writes get as far as the store, and stay there until the event is set."""
    opened = asyncio.Event()
    commit = api.store.commit

    async def held(operations: Sequence[Operation]) -> Revision:
        await opened.wait()
        return await commit(operations)

    monkeypatch.setattr(api.store, "commit", held)
    return opened


def start_write(api: API) -> Pending:
    pending = Pending(api, api.make_call("POST", CONFIGMAPS, token=USER))
    pending.body.set_result({"type": "http.request", "body": b'{"metadata":{"generateName":"a"}}'})
    return pending


async def test_who_waits_too_long_is_sent_away(
    make_api: Callable[..., Awaitable[API]], loop_time: LoopTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await make_api(FlowOptions(max_mutating=1))
    await api.grant(["*"], ["*"])
    opened = hold_commits(api, monkeypatch)
    running, waiting = (start_write(api) for _ in range(2))
    await settle()
    loop_time.advance(16)
    await waiting.task
    assert waiting.status == 429
    opened.set()
    await running.task
    assert running.status == 201


@pytest.mark.parametrize(("asked", "seconds"), [("", 61), ("3s", 3.1), ("1h", 61)], ids=["default", "less", "more"])
async def test_a_request_has_its_time(api: API, loop_time: LoopTime, asked: str, seconds: float) -> None:
    call = api.make_call("POST", CONFIGMAPS)
    call.query = f"timeout={asked}".encode() if asked else b""
    pending = Pending(api, call)
    await settle()
    assert not pending.task.done()
    loop_time.advance(seconds)
    await pending.task
    assert pending.status == 504
    assert b"request did not complete within the allotted timeout" in pending.sent[1]["body"]


async def test_a_time_that_is_no_time(api: API) -> None:
    answer = await api.post(CONFIGMAPS, configmap(), timeout="soon")
    assert answer.status == 400
    assert answer.message.startswith("invalid timeout specified in the request URL - time: invalid duration")


# -- paths of the server ------------------------------------------------------


@pytest.mark.parametrize("cluster", [None, "root"])
async def test_the_version(api: API, cluster: str | None) -> None:
    assert await api.must("GET", "/version", cluster=cluster) == VERSION


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health_is_for_everyone(api: API, path: str) -> None:
    for cluster in (None, "root"):
        answer = await api.get(path, token="", cluster=cluster)
        assert (answer.status, answer.body, answer.media) == (200, b"ok", "text/plain; charset=utf-8")
    assert (await api.call("HEAD", path, token="")).body == b""
    assert "[+]" in (await api.get(path, token="", verbose="")).text
    assert (await api.get(f"{path}/nonsense", token="")).status == 404
    assert (await api.post(path, b"")).status == 404


async def test_a_server_that_stops_is_not_ready(api: API) -> None:
    api.parts.stopping.set()
    assert (await api.get("/readyz", token="")).status == 500
    assert (await api.get("/livez", token="")).status == 200


def series(text: str) -> set[str]:
    return set(re.findall(r"^apiserver_request_total\{.*\}", text, re.MULTILINE))


async def test_figures_do_not_grow_with_clusters_nor_with_what_clients_invent(api: API) -> None:
    async def look() -> set[str]:
        answer = await api.get("/metrics", cluster=None)
        assert answer.media == "text/plain; version=0.0.4; charset=utf-8"
        return series(answer.text)

    async def ask(cluster: str, invented: str) -> None:
        await api.get(CONFIGMAPS, cluster=cluster)
        await api.get(f"/api/v1/{invented}", cluster=cluster)
        await api.get(f"/apis/{invented}.io/v1/{invented}", cluster=cluster)
        await api.get(f"/apis/{invented}.io/v1/{invented}", cluster=cluster, token=USER)
        await api.get(f"/{invented}", cluster=cluster)
        await api.call(invented.upper(), CONFIGMAPS, cluster=cluster)
        await api.get(CONFIGMAPS, cluster=f"{cluster}:missing")

    await api.create_cluster("one")
    await ask("one", "first")
    await look()
    before = await look()
    for number in range(20):
        await api.create_cluster(f"c{number}")
        await ask(f"c{number}", f"thing{number}")
    assert await look() == before
    assert not any("first" in each or '"one"' in each for each in before)


async def test_what_is_counted(api: API) -> None:
    await api.define(definition())
    await api.create_configmap("a")
    await api.get(f"{CONFIGMAPS}/a")
    await api.get(f"{CONFIGMAPS}/missing")
    await api.get("/api/v1/configmaps")
    async with api.watch(CONFIGMAPS):
        pass
    await api.get("/version")
    text = (await api.get("/metrics", cluster=None)).text

    def line(verb: str, scope: str, code: int) -> str:
        where = f'group="",version="v1",resource="configmaps",subresource="",scope="{scope}"'
        return f'apiserver_request_total{{verb="{verb}",dry_run="",{where},component="apiserver",code="{code}"}} 1'

    for expected in (
        line("CREATE", "namespace", 201),
        line("GET", "resource", 200),
        line("GET", "resource", 404),
        line("LIST", "cluster", 200),
        line("WATCH", "namespace", 200),
    ):
        assert expected in text


async def test_watches_and_their_events_are_counted(api: API) -> None:
    await api.create_configmap("before")
    labels = 'group="",version="v1",resource="configmaps"'
    where = 'subresource="",scope="namespace",component="apiserver"'
    running = f'apiserver_longrunning_requests{{verb="WATCH",{labels},{where}}}'
    async with api.watch(CONFIGMAPS) as watch:
        await watch.event()
        await api.create_configmap("after")
        await watch.event()
        text = (await api.get("/metrics", cluster=None)).text
        assert f"{running} 1\n" in text
        assert f"apiserver_watch_events_total{{{labels}}} 2\n" in text
    assert f"{running} 0\n" in (await api.get("/metrics", cluster=None)).text


async def test_figures_are_the_server_s_own(api: API) -> None:
    answer = await api.get("/metrics", cluster="root")
    assert (answer.status, answer.json()["reason"]) == (501, "NotImplemented")
    assert (await api.get("/metrics", cluster=None, token=OPERATOR)).status == 200
