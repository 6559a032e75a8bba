"""Which addresses, files and times are accepted, and what is said of those that are not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kcp.store.etcd.client import EtcdClient
from kcp.store.etcd.options import EtcdOptions, parse_endpoints

if TYPE_CHECKING:
    from pathlib import Path

GOOD = EtcdOptions(("http://127.0.0.1:2379",))


@pytest.mark.parametrize(
    ("text", "target", "tls"),
    [
        pytest.param("http://127.0.0.1:2379", "127.0.0.1:2379", False, id="http"),
        pytest.param("https://etcd.example.com:2379/", "etcd.example.com:2379", True, id="https-with-slash"),
        pytest.param("127.0.0.1:2379", "127.0.0.1:2379", False, id="bare"),
        pytest.param("http://[::1]:2379", "[::1]:2379", False, id="ipv6"),
        pytest.param("[::1]:2379", "[::1]:2379", False, id="bare-ipv6"),
    ],
)
def test_endpoint_forms(text: str, target: str, tls: bool) -> None:
    (endpoint,) = parse_endpoints(EtcdOptions((text,)))
    assert (endpoint.target, endpoint.tls, str(endpoint)) == (target, tls, text)


def test_a_bare_address_uses_tls_if_there_is_an_authority() -> None:
    (endpoint,) = parse_endpoints(EtcdOptions(("etcd:2379",), ca_file="ca.pem"))
    assert endpoint.tls


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "no host", id="empty"),
        pytest.param("http://:2379", "no host", id="no-host"),
        pytest.param("etcd", "no port", id="no-port"),
        pytest.param("http://etcd:port", "no port", id="port-is-no-number"),
        pytest.param("http://etcd:99999", "no port", id="port-too-large"),
        pytest.param("unix:///run/etcd.sock", "scheme is 'unix'", id="other-scheme"),
        pytest.param("http://etcd:2379/v3", "more than a host and a port", id="path"),
        pytest.param("http://user:secret@etcd:2379", "more than a host and a port", id="user"),
    ],
)
def test_a_bad_endpoint_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        EtcdOptions((text,))
    assert repr(text) in str(caught.value)
    assert "http://127.0.0.1:2379" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"endpoints": ()}, "non-empty", id="no-endpoints"),
        pytest.param({"endpoints": "http://127.0.0.1:2379"}, "list", id="a-string-for-endpoints"),
        pytest.param({"cert_file": "cert.pem"}, "cert_file and key_file", id="certificate-without-key"),
        pytest.param({"key_file": "key.pem"}, "cert_file and key_file", id="key-without-certificate"),
        pytest.param({"password": "secret"}, "username", id="password-without-username"),
        pytest.param({"request_timeout": 0}, "request_timeout", id="no-time"),
        pytest.param({"backoff_max": -1}, "backoff_max", id="negative-time"),
        pytest.param({"keepalive": 1}, "at least 5", id="pings-too-often"),
    ],
)
def test_options_that_cannot_work_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(GOOD, **changes)


def test_the_password_is_not_printed() -> None:
    assert "secret" not in repr(replace(GOOD, username="root", password="secret"))


async def test_an_unreadable_certificate_is_named_when_the_client_is_made(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(ValueError, match=f"ca_file '{missing}': No such file"):
        EtcdClient(replace(GOOD, ca_file=missing))
    with pytest.raises(ValueError, match=f"(cert|key)_file '{missing}': No such file"):
        EtcdClient(replace(GOOD, cert_file=missing, key_file=missing))


async def test_a_file_that_is_no_certificate_is_named_when_the_client_is_made(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a certificate")
    with pytest.raises(ValueError, match="not a PEM file"):
        EtcdClient(replace(GOOD, ca_file=str(tmp_path / "notes.txt")))
