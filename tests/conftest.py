"""What every test run shows first."""

from __future__ import annotations

from tests.store.etcd.etcd_server import EtcdNotFound, find_etcd


def pytest_report_header() -> str:
    try:
        return f"etcd: {find_etcd()}"
    except EtcdNotFound as error:
        return f"etcd: none ({error})"
