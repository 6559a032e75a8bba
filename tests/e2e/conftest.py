"""One real server for all end-to-end tests, and a namespace for each of them."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kcp_server import KcpServer
from tests.e2e.kubectl_command import Kubectl, KubectlNotFound, find_kubectl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.kcp_server import Api


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KcpServer]:
    """The server of the whole run. Do not kill it: tests that do have their own."""
    with KcpServer(tmp_path_factory.mktemp("kcp") / "root") as running:
        yield running


@pytest.fixture
def api(server: KcpServer) -> Iterator[Api]:
    """As kcp-admin, in the cluster root."""
    as_admin = server.api()
    yield as_admin
    as_admin.close()


@pytest.fixture
def shard_admin(server: KcpServer) -> Iterator[Api]:
    """As shard-admin, who is in system:masters, in the cluster root."""
    as_master = server.api("shard-admin")
    yield as_master
    as_master.close()


@pytest.fixture
def namespace(api: Api) -> str:
    """A namespace that no other test uses."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    api.post("/api/v1/namespaces", {"metadata": {"name": name}}).created()
    return name


@pytest.fixture(scope="session")
def kubectl_program() -> str:
    try:
        return find_kubectl()
    except KubectlNotFound as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kubectl_at_home(kubectl_program: str, server: KcpServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """One home for all, as one person has: what kubectl remembers of a server must stay right."""
    return Kubectl(kubectl_program, server.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture
def kubectl(kubectl_at_home: Kubectl, namespace: str) -> Kubectl:
    return kubectl_at_home.within(namespace)
