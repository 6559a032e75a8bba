"""A server that is killed loses nothing that it acknowledged, and one that is told to stop finishes what it does."""

from __future__ import annotations

import http.client
import itertools
import json
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kcp_server import KcpServer
from tests.e2e.raw_connection import answers, connected, head, read_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.kcp_server import Api

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 8
ACKNOWLEDGED = 400  # writes in each round before the kill


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[KcpServer]:
    with KcpServer(tmp_path / "root") as running:
        yield running


class Writer(threading.Thread):
    """Creates, changes and deletes objects of its own until the server is gone, and remembers what was acknowledged."""

    def __init__(self, api: Api, name: str, enough: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self._api = api
        self._name = name
        self._enough = enough
        self.present: dict[str, str] = {}
        """Name and version of each object that was there for certain when the server died."""
        self.deleted: set[str] = set()
        self.uncertain: str = ""
        """The object of the request that was not answered: it may have been done or not."""

    def run(self) -> None:
        try:
            for number in itertools.count():
                self.uncertain = f"{self._name}-{number}"
                self.write(self.uncertain, number)
                self._enough.release()
        except (OSError, http.client.HTTPException):
            return
        finally:
            self._api.close()

    def write(self, name: str, number: int) -> None:
        made = self._api.post(CONFIGMAPS, {"metadata": {"name": name}, "data": {"round": "0"}}).created()
        if number % 3 == 1:
            made = self._api.patch(f"{CONFIGMAPS}/{name}", {"data": {"round": "1"}}).created()
        if number % 3 == 2:
            self._api.delete(f"{CONFIGMAPS}/{name}").created()
            self.deleted.add(name)
        else:
            self.present[name] = made["metadata"]["resourceVersion"]


def write_until_killed(server: KcpServer, round_number: int) -> list[Writer]:
    enough = threading.Semaphore(0)
    writers = [Writer(server.api(), f"round-{round_number}-writer-{number}", enough) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in range(ACKNOWLEDGED):
        assert enough.acquire(timeout=30)
    server.signal(signal.SIGKILL)
    for writer in writers:
        writer.join()
    server.wait()
    return writers


def test_nothing_acknowledged_is_lost_by_a_kill(own_server: KcpServer) -> None:
    for round_number in range(3):
        writers = write_until_killed(own_server, round_number)
        api = own_server.start().api()
        found = {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in api.get(CONFIGMAPS).body["items"]
        }
        api.close()
        uncertain = {writer.uncertain for writer in writers}
        for writer in writers:
            assert {name: found.get(name) for name in writer.present} == writer.present
            assert not (writer.deleted - uncertain) & found.keys()


def test_a_watch_resumes_after_a_kill_without_gap_or_repeat(own_server: KcpServer) -> None:
    api = own_server.api("shard-admin")
    version = api.get(CONFIGMAPS).body["metadata"]["resourceVersion"]
    seen: list[str] = []
    with api.watch(f"{CONFIGMAPS}?watch=1&resourceVersion={version}") as watch:
        for number in range(10):
            api.post(CONFIGMAPS, {"metadata": {"name": f"n-{number}"}}).created()
        for event in itertools.islice(watch, 5):
            seen.append(event["object"]["metadata"]["name"])
            version = event["object"]["metadata"]["resourceVersion"]
        own_server.kill()
        api.close()
    api = own_server.start().api("shard-admin")
    for number in range(10, 15):
        api.post(CONFIGMAPS, {"metadata": {"name": f"n-{number}"}}).created()
    with api.watch(f"{CONFIGMAPS}?watch=1&resourceVersion={version}") as watch:
        seen += [event["object"]["metadata"]["name"] for event in itertools.islice(watch, 10)]
    assert seen == [f"n-{number}" for number in range(15)]
    api.close()


def test_the_admin_tokens_that_are_kept_work_after_a_kill(own_server: KcpServer) -> None:
    token = own_server.token("shard-admin")
    own_server.kill()
    api = own_server.start().api().bearing(token)
    assert api.get(CONFIGMAPS).code == 200
    api.close()


def test_a_server_that_is_told_to_stop_ends_watches_cleanly(own_server: KcpServer) -> None:
    api = own_server.api()
    with api.watch(f"{CONFIGMAPS}?watch=1") as watch, api.watch("/api/v1/namespaces?watch=1") as idle:
        api.post(CONFIGMAPS, {"metadata": {"name": "last"}}).created()
        own_server.signal(signal.SIGTERM)
        # An end without the last chunk would raise IncompleteRead here.
        events = [event["object"]["metadata"]["name"] for event in watch]
        idle.read()
    assert events[-1] == "last"
    # A connection on which nobody asks anything keeps it from nothing.
    assert own_server.wait(10) == 0
    api.close()


def test_a_server_that_is_told_to_stop_finishes_a_request(own_server: KcpServer) -> None:
    api = own_server.api()
    body = json.dumps({"metadata": {"name": "in-flight"}}).encode()
    kind = "Content-Type: application/json"
    with connected(own_server.endpoint) as connection, api.watch(f"{CONFIGMAPS}?watch=1") as watch:
        connection.sendall(head(api, "POST", CONFIGMAPS, kind, f"Content-Length: {len(body)}") + body[:10])
        # A request that comes after it and is answered: by then the server has the half of the first.
        assert api.get(CONFIGMAPS).code == 200
        own_server.signal(signal.SIGTERM)
        # The watch ends when draining begins.
        watch.read()
        connection.sendall(body[10:])
        [answer] = answers(read_all(connection))
    assert answer.code == 201
    api.close()
    assert own_server.wait(10) == 0
    api = own_server.start().api()
    assert api.get(f"{CONFIGMAPS}/in-flight").code == 200
    api.close()


def test_nothing_acknowledged_is_lost_by_stopping_under_load(own_server: KcpServer) -> None:
    enough = threading.Semaphore(0)
    writers = [Writer(own_server.api(), f"writer-{number}", enough) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in range(ACKNOWLEDGED):
        assert enough.acquire(timeout=30)
    own_server.signal(signal.SIGTERM)
    assert own_server.wait() == 0
    for writer in writers:
        writer.join()
    api = own_server.start().api()
    found = {item["metadata"]["name"] for item in api.get(CONFIGMAPS).body["items"]}
    assert {name for writer in writers for name in writer.present} <= found
    api.close()
