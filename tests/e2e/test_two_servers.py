"""Two servers on one etcd are one cluster: each sees at once what the other writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.kcp_server import KcpServer
from tests.e2e.kubectl_command import Kubectl
from tests.store.etcd.etcd_server import EtcdNotFound, EtcdServer, find_etcd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KcpServer, KcpServer]]:
    try:
        find_etcd()
    except EtcdNotFound as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("two-servers")
    with EtcdServer(directory) as etcd:
        options = (f"--etcd-servers={etcd.endpoint}",)
        with KcpServer(directory / "one", options) as one, KcpServer(directory / "two", options) as two:
            yield one, two


def test_a_write_to_one_is_read_from_the_other(pair: tuple[KcpServer, KcpServer]) -> None:
    one, two = (server.api() for server in pair)
    for number in range(50):
        writer, reader = (one, two) if number % 2 else (two, one)
        made = writer.post(CONFIGMAPS, {"metadata": {"name": f"cm-{number}"}, "data": {"n": str(number)}}).created()
        read = reader.get(f"{CONFIGMAPS}/cm-{number}")
        assert (read.code, read.body["metadata"]["uid"]) == (200, made["metadata"]["uid"])
        assert f"cm-{number}" in {item["metadata"]["name"] for item in reader.get(CONFIGMAPS).body["items"]}
    one.close()
    two.close()


def test_both_refuse_what_the_other_has_changed(pair: tuple[KcpServer, KcpServer]) -> None:
    one, two = (server.api() for server in pair)
    made = one.post(CONFIGMAPS, {"metadata": {"name": "contended"}}).created()
    assert two.post(CONFIGMAPS, {"metadata": {"name": "contended"}}).body["reason"] == "AlreadyExists"
    two.patch(f"{CONFIGMAPS}/contended", {"data": {"k": "v"}}).created()
    assert one.request("PUT", f"{CONFIGMAPS}/contended", made).body["reason"] == "Conflict"
    one.close()
    two.close()


def test_kubectl_watches_one_and_sees_what_is_made_on_the_other(
    pair: tuple[KcpServer, KcpServer], kubectl_program: str, tmp_path: Path
) -> None:
    one, two = (Kubectl(kubectl_program, server.kubeconfig, tmp_path, "default") for server in pair)
    one("create", "cm", "before")
    with two.running("get", "cm", "-w", "-l", "seen", "--no-headers", "-o", "name") as watching:
        one("label", "cm", "before", "seen=yes")
        assert watching.line() == "configmap/before"
        one(
            "create",
            "-f",
            "-",
            stdin='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"seen":"y"}}}',
        )
        assert watching.line() == "configmap/a"
        one("delete", "cm", "a")
        assert watching.line() == "configmap/a"


def test_a_namespace_deleted_on_one_is_gone_on_both(pair: tuple[KcpServer, KcpServer]) -> None:
    one, two = (server.api() for server in pair)
    one.post("/api/v1/namespaces", {"metadata": {"name": "going"}}).created()
    two.post("/api/v1/namespaces/going/configmaps", {"metadata": {"name": "c"}}).created()
    version = two.get("/api/v1/namespaces").body["metadata"]["resourceVersion"]
    one.delete("/api/v1/namespaces/going").created()
    selector = f"fieldSelector=metadata.name=going&resourceVersion={version}&timeoutSeconds=20"
    with two.watch(f"/api/v1/namespaces?watch=1&{selector}") as watch:
        assert any(event["type"] == "DELETED" for event in watch)
    assert [server.get("/api/v1/namespaces/going").code for server in (one, two)] == [404, 404]
    one.close()
    two.close()
