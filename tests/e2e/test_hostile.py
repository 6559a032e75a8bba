"""Bad input of every sort: each gets a proper error, and others are served all the while."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.raw_connection import answers, connected, head, read_all, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.kcp_server import Answer, Api, KcpServer

PATIENCE = 1.0  # seconds that another client may have to wait for its answer
HALF_OPEN = 1000


class Probe(threading.Thread):
    """Another client, which asks for the same thing again and again and notes the longest time that it took."""

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self._api = api
        self._stopping = threading.Event()
        self.longest = 0.0
        self.count = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopping.wait(0.01):
                began = time.monotonic()
                assert self._api.get("/api/v1/namespaces/default").code == 200
                self.longest = max(self.longest, time.monotonic() - began)
                self.count += 1
        except BaseException as error:
            self.failure = error
        finally:
            self._api.close()

    def stop(self) -> None:
        self._stopping.set()
        self.join()


@pytest.fixture(autouse=True)
def others_are_served(server: KcpServer) -> Iterator[None]:
    """Whatever a test here does, someone else's requests are answered, and soon."""
    probe = Probe(server.api())
    probe.start()
    yield
    probe.stop()
    assert probe.failure is None
    assert probe.longest < PATIENCE
    assert server.process is not None
    assert server.process.poll() is None


@pytest.fixture
def configmaps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def check_status(answer: Answer, code: int, reason: str | None) -> str:
    """It is a Status with this code and reason; returns the message."""
    assert answer.code == code, answer.content[:500]
    body = answer.body
    assert (body["kind"], body["apiVersion"], body["status"]) == ("Status", "v1", "Failure")
    assert body["code"] == code
    assert body.get("reason") == reason
    return str(body["message"])


def nested(depth: int) -> bytes:
    return b'{"metadata":{"name":"deep"},"data":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"metadata":}',
        b"nonsense",
        b"[]",
        b"null",
        b'"text"',
        b"1",
        b'{"metadata":{"name":"x"}} {"metadata":{"name":"y"}}',
        b'{"metadata":{"name":"\xff\xfe"}}',
        b'{"metadata":{"name":"x"},"data":{"\xc3\x28":"v"}}',
        b'{"metadata":{"name":"x"},"data":{"k":"\\ud800"}',
        b"\xef\xbb\xbf\xff",
        b"\x00" * 100,
        nested(10_000),
        b"[" * 10_000,
        b'{"metadata":{"name":"x"},"data":' + b"[" * 100_000,
        b'{"metadata":{"name":1}}',
        b'{"metadata":[]}',
        b'{"metadata":"text"}',
        b'{"metadata":{"name":"x","labels":["a"]}}',
        b'{"metadata":{"name":"x"},"data":{"k":1}}',
        b'{"metadata":{"name":"x"},"data":"text"}',
        b'{"metadata":{"name":"x"},"immutable":"yes"}',
        b'{"metadata":{"name":"x"},"binaryData":{"k":"not base64!"}}',
        b'{"metadata":{"name":"x","generation":1e400}}',
        b'{"metadata":{"name":"x","creationTimestamp":"yesterday"}}',
        b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}',
        b'{"kind":"ConfigMap","apiVersion":"v9","metadata":{"name":"x"}}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_body_that_is_no_config_map_is_a_bad_request(api: Api, configmaps: str, body: bytes) -> None:
    check_status(api.request("POST", configmaps, body), 400, "BadRequest")
    assert api.get(f"{configmaps}/x").code == 404


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("json-patch", b"{"),
        ("json-patch", b'{"op":"add"}'),
        ("json-patch", b"[" * 20_000 + b"]" * 20_000),
        ("merge-patch", b"["),
        ("merge-patch", nested(10_000)),
        ("merge-patch", b"\xff"),
        ("strategic-merge-patch", b"nonsense"),
        ("strategic-merge-patch", nested(10_000)),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value[:16]),
)
def test_a_patch_that_is_none_is_a_bad_request(api: Api, configmaps: str, kind: str, body: bytes) -> None:
    api.post(configmaps, {"metadata": {"name": "x"}}).created()
    check_status(api.patch(f"{configmaps}/x", body, kind), 400, "BadRequest")


def test_an_applied_configuration_that_is_none_is_a_bad_request(api: Api, configmaps: str) -> None:
    applied = {"Content-Type": "application/apply-patch+yaml"}
    for body in (b"a: [", b"\xff\xfe", b"- a", b"a: &a [*a]", nested(10_000), b"a: " + b"[" * 20_000):
        check_status(api.request("PATCH", f"{configmaps}/x?fieldManager=m", body, applied), 400, "BadRequest")


def test_yaml_that_swells_is_refused(api: Api, configmaps: str) -> None:
    """Nine levels of nine references each: half a kilobyte that stands for a billion strings."""
    levels = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    levels += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    answer = api.request("POST", configmaps, "\n".join(levels).encode(), {"Content-Type": "application/yaml"})
    check_status(answer, 400, "BadRequest")


def test_a_body_that_is_too_large_is_refused(api: Api, configmaps: str) -> None:
    body = b'{"metadata":{"name":"big"},"data":{"k":"' + b"v" * (4 << 20) + b'"}}'
    answer = api.request("POST", configmaps, body)
    assert "limit is 3145728" in check_status(answer, 413, "RequestEntityTooLarge")


def test_a_hundred_megabytes_are_not_taken_in(api: Api, configmaps: str, server: KcpServer) -> None:
    assert server.process is not None
    before = resident_bytes(server.process.pid)
    size = 100 << 20
    kind = ("Content-Type: application/json", "Connection: close")
    start = head(api, "POST", configmaps, f"Content-Length: {size}", *kind)
    [answer] = send(api, start, *[b" " * (1 << 20)] * 100)
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
    chunked = head(api, "POST", configmaps, "Transfer-Encoding: chunked", *kind)
    [answer] = send(api, chunked, *[b"100000\r\n" + b" " * (1 << 20) + b"\r\n"] * 100)
    assert answer.code == 413
    assert resident_bytes(server.process.pid) < before + (32 << 20)


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/clusters", 404),
        ("/clusters/", 400),
        ("/clusters//api", 400),
        ("/clusters/../api/v1/namespaces", 400),
        ("/clusters/./api/v1/namespaces", 400),
        ("/clusters/%2e%2e/api/v1/namespaces", 400),
        ("/clusters/ROOT/api/v1/namespaces", 400),
        ("/clusters/root%00/api/v1/namespaces", 400),
        ("/clusters/root:/api/v1/namespaces", 400),
        ("/clusters/:root/api/v1/namespaces", 400),
        ("/clusters/root/clusters/other/api/v1/namespaces", 404),
        ("/clusters/nobody/clusters/root/api/v1/namespaces", 404),
        ("/clusters/nobody%2Froot/api/v1/namespaces", 404),
        ("/clusters/root/api//v1/namespaces", 404),
        ("/clusters/root/api/v1/namespaces/default/configmaps/a%2Fb", 404),
        ("/clusters/root/api/v1/namespaces/default/configmaps/%ff", 404),
        ("/clusters/root/api/v2/namespaces", 404),
        ("/clusters/root/apis/rbac.authorization.k8s.io/v7/roles", 404),
        ("/clusters/root/apis/nobody.example.com/v1/things", 404),
        ("/clusters/root/api/v1/pods", 404),
        ("/clusters/root/api/v1/namespaces/default/configmaps/a/b/c/d", 404),
        ("/clusters/root/" + "a/" * 4000, 404),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else None,
)
def test_odd_paths_lead_nowhere(shard_admin: Api, path: str, code: int) -> None:
    [answer] = send(shard_admin, head(shard_admin, "GET", path, "Connection: close", prefix=""))
    assert answer.code == code, answer
    if b"application/json" in answer.head.lower():
        assert answer.body["kind"] == "Status"


def test_an_escape_that_is_none_leads_nowhere(api: Api, configmaps: str) -> None:
    assert api.get(f"{configmaps}/%zz").code in (400, 404)


def test_no_trick_of_the_path_gets_past_authorization(api: Api, namespace: str, configmaps: str) -> None:
    """What is asked and what is allowed are read from one and the same path."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.post(accounts, {"metadata": {"name": "robot"}}).created()
    token = api.post(f"{accounts}/robot/token", {"spec": {}}).created()["status"]["token"]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    api.post(f"{rbac}/roles", {"metadata": {"name": "all"}, "rules": rules}).created()
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}
    api.post(f"{rbac}/rolebindings", {"metadata": {"name": "all"}, "subjects": [subject], "roleRef": role}).created()
    robot = api.bearing(token)
    assert robot.get(configmaps).code == 200
    for trick in (
        "/../../default/configmaps",
        "%2F..%2F..%2Fdefault/configmaps",
        "/configmaps/../../default/secrets",
        "/configmaps/../secrets",
        "//configmaps",
        "%2Fsecrets",
        "/secrets/",
        "/SECRETS",
        "/configmaps%2F..%2F..%2F..%2Fsecrets",
        "/%63onfigmaps/../../kube-system/configmaps",
    ):
        answer = robot.get(f"/api/v1/namespaces/{namespace}{trick}")
        assert answer.code in (400, 403, 404), (trick, answer)
        assert answer.body["kind"] == "Status"
    for path in (
        "//api/v1/secrets",
        "/%61pi/v1/secrets",
        "/api/v1/namespaces//configmaps",
        "/readyz/../api/v1/secrets",
    ):
        assert robot.get(path).code in (400, 403, 404), path


@pytest.mark.parametrize(
    "query", ["limit=x", "limit=99999999999999999999", "continue=x", "resourceVersion=x", "labelSelector=!!"]
)
def test_a_query_that_makes_no_sense_is_a_bad_request(api: Api, configmaps: str, query: str) -> None:
    check_status(api.get(f"{configmaps}?{query}"), 400, "BadRequest")


def test_names_must_agree_with_the_path(api: Api, namespace: str, configmaps: str) -> None:
    api.post(configmaps, {"metadata": {"name": "x"}}).created()
    elsewhere = api.post(configmaps, {"metadata": {"name": "y", "namespace": "default"}})
    message = check_status(elsewhere, 400, "BadRequest")
    assert message == "the namespace of the provided object does not match the namespace sent on the request"
    renamed = api.request("PUT", f"{configmaps}/x", {"metadata": {"name": "y"}})
    assert "the name of the object (y) does not match the name on the URL (x)" in check_status(
        renamed, 400, "BadRequest"
    )
    moved = api.request("PUT", f"{configmaps}/x", {"metadata": {"name": "x", "namespace": "default"}})
    check_status(moved, 400, "BadRequest")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS"])
def test_a_method_that_does_not_fit_is_not_allowed(api: Api, configmaps: str, method: str) -> None:
    path = f"{configmaps}/x" if method == "POST" else configmaps
    if method == "DELETE":
        path = "/api/v1"
    answer = api.request(method, path, {"metadata": {"name": "x"}} if method in ("POST", "PUT", "PATCH") else None)
    assert answer.code in (404, 405), answer
    assert answer.body["kind"] == "Status"


def test_a_method_that_nobody_knows_is_refused(api: Api, configmaps: str) -> None:
    assert api.request("FOO", configmaps).code in (400, 405, 501)


def test_a_content_type_that_is_not_known_is_refused(api: Api, configmaps: str) -> None:
    body = {"metadata": {"name": "x"}}
    answer = api.request("POST", configmaps, body, {"Content-Type": "text/html"})
    check_status(answer, 415, "UnsupportedMediaType")
    patched = api.request("PATCH", f"{configmaps}/x", body, {"Content-Type": "application/json"})
    check_status(patched, 415, "UnsupportedMediaType")
    check_status(api.get(configmaps, Accept="image/png"), 406, "NotAcceptable")


def test_protobuf_that_is_none_is_a_bad_request(api: Api, configmaps: str) -> None:
    protobuf = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    for body in (b"", b"k8s\x00", b"k8s\x00" + b"\xff" * 50, b"nonsense", b"k8s\x00\x0a\xff\xff\xff\xff\x0f"):
        check_status(api.request("POST", configmaps, body, protobuf), 400, "BadRequest")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloworld\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: nonsense\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=lambda sent: repr(sent[:70]),
)
def test_what_is_not_http_ends_the_connection(api: Api, sent: bytes) -> None:
    """Refused, or closed without a word: never taken for a request, and never left open."""
    received = send(api, sent)
    assert all(400 <= answer.code < 600 for answer in received), received


def test_headers_without_end_are_refused(api: Api) -> None:
    [*received] = send(api, b"GET /clusters/root/api HTTP/1.1\r\nHost: a\r\n", *[b"X: " + b"a" * 8000 + b"\r\n"] * 1000)
    assert all(answer.code in (400, 431) for answer in received), received
    many = b"".join(b"X-%d: y\r\n" % number for number in range(200_000))
    assert all(answer.code in (400, 431) for answer in send(api, b"GET /api HTTP/1.1\r\nHost: a\r\n" + many + b"\r\n"))


def test_requests_sent_at_once_are_answered_in_their_order(api: Api, configmaps: str) -> None:
    body = [json.dumps({"metadata": {"name": f"pipelined-{number}"}}).encode() for number in range(20)]
    kind = "Content-Type: application/json"
    sent = b"".join(head(api, "POST", configmaps, kind, f"Content-Length: {len(each)}") + each for each in body)
    received = send(api, sent + head(api, "GET", f"{configmaps}/pipelined-19", "Connection: close"))
    assert [answer.code for answer in received] == [201] * 20 + [200]
    assert [answer.body["metadata"]["name"] for answer in received[:20]] == [f"pipelined-{n}" for n in range(20)]


def test_a_body_that_comes_slowly_is_waited_for(api: Api, configmaps: str) -> None:
    body = json.dumps({"metadata": {"name": "slow"}}).encode()
    start = head(
        api, "POST", configmaps, f"Content-Length: {len(body)}", "Content-Type: application/json", "Connection: close"
    )
    with connected(api.endpoint) as connection:
        connection.sendall(start)
        for position in range(len(body)):
            connection.sendall(body[position : position + 1])
        [answer] = answers(read_all(connection))
    assert answer.code == 201


def test_a_thousand_half_open_connections_keep_nobody_out(api: Api, configmaps: str) -> None:
    """A third of them silent before the handshake, a third in a head, a third in a body."""
    host, port, tls = api.endpoint
    started = head(api, "POST", configmaps, "Content-Length: 100")
    with contextlib.ExitStack() as stack:
        for number in range(HALF_OPEN):
            plain = socket.create_connection((host, port), 10)
            if number % 3 == 0:
                stack.enter_context(plain)
                continue
            connection = stack.enter_context(tls.wrap_socket(plain, server_hostname=host))
            connection.sendall(started if number % 3 == 1 else started[:40])
        for number in range(20):
            api.post(configmaps, {"metadata": {"name": f"meanwhile-{number}"}}).created()
        fresh = api.bearing(api.token)
        assert len(fresh.get(configmaps).body["items"]) == 20


def test_clients_that_vanish_leave_nothing_behind(api: Api, configmaps: str) -> None:
    for _ in range(50):
        with connected(api.endpoint) as connection:
            connection.sendall(head(api, "GET", f"{configmaps}?watch=1"))
    assert api.get(configmaps).code == 200


def test_a_watcher_that_reads_nothing_holds_up_nobody(api: Api, configmaps: str) -> None:
    with connected(api.endpoint) as connection:
        connection.sendall(head(api, "GET", f"{configmaps}?watch=1"))
        for number in range(60):
            api.post(configmaps, {"metadata": {"name": f"much-{number}"}, "data": {"k": "v" * 100_000}}).created()
    assert len(api.get(configmaps).body["items"]) == 60
