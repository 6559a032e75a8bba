"""Stores, and real etcd servers, as fixtures.

Where there is no etcd, CI fails and a developer's run skips, both with the reason.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import pytest

from kcp.store import EmbeddedStore
from kcp.store.etcd.options import EtcdOptions
from kcp.store.etcd.store import EtcdStore
from tests.store.etcd.certificates import find_openssl, make_certificates
from tests.store.etcd.etcd_server import EtcdCluster, EtcdNotFound, EtcdServer, find_etcd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from kcp.store import Store
    from tests.store.etcd.certificates import TlsFiles


@pytest.fixture(scope="session")
def etcd_binary() -> str:
    """The path of an etcd to test with."""
    try:
        return find_etcd().path
    except EtcdNotFound as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def etcd(etcd_binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """One server for the whole run. Keep to `etcd_prefix`, and do not compact, kill or fill it."""
    with EtcdServer(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture
def etcd_prefix() -> bytes:
    """A place in the shared server that no other test uses."""
    return f"/test/{uuid.uuid4().hex}/".encode()


@pytest.fixture
def own_etcd(etcd_binary: str, tmp_path: Path) -> Iterator[EtcdServer]:
    """A server for one test, to be treated as badly as it likes."""
    with EtcdServer(tmp_path) as server:
        yield server


@pytest.fixture
def etcd_cluster(etcd_binary: str, tmp_path: Path) -> Iterator[EtcdCluster]:
    """Three members for one test."""
    with EtcdCluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def etcd_certificates(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """An authority, and certificates by it for a server on 127.0.0.1 and for a client."""
    if not find_openssl():
        pytest.skip("no openssl command to make certificates with")
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def store_etcd(etcd_binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """The server behind `store`, which may be compacted."""
    with EtcdServer(tmp_path_factory.mktemp("store-etcd")) as server:
        yield server


@pytest.fixture(params=["embedded", "etcd"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each kind of store, empty."""
    if request.param == "embedded":
        async with await EmbeddedStore.open(tmp_path / "store") as embedded:
            yield embedded
    else:
        server: EtcdServer = request.getfixturevalue("store_etcd")
        options = EtcdOptions((server.endpoint,))
        async with await EtcdStore.open(tmp_path / "store", options, prefix=f"/{uuid.uuid4().hex}") as shared:
            yield shared
