"""Certificates for tests of TLS, made with the `openssl` command."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_EXTENSIONS = """
[ca]
basicConstraints=critical,CA:TRUE
keyUsage=critical,keyCertSign
[server]
subjectAltName=IP:127.0.0.1,DNS:localhost
extendedKeyUsage=serverAuth,clientAuth
[client]
extendedKeyUsage=clientAuth
"""


@dataclass(frozen=True)
class TlsFiles:
    """PEM files for a server on 127.0.0.1 that asks its clients for certificates."""

    ca: str
    server_cert: str
    server_key: str
    client_cert: str
    client_key: str


def find_openssl() -> str | None:
    return shutil.which("openssl")


def make_certificates(directory: Path) -> TlsFiles:
    """A new authority and two certificates signed by it, good for a day."""
    (directory / "extensions").write_text(_EXTENSIONS)
    _make_certificate(directory, "ca", signer=None)
    for name in ("server", "client"):
        _make_certificate(directory, name, signer="ca")
    return TlsFiles(
        ca=str(directory / "ca.pem"),
        server_cert=str(directory / "server.pem"),
        server_key=str(directory / "server.key"),
        client_cert=str(directory / "client.pem"),
        client_key=str(directory / "client.key"),
    )


def _make_certificate(directory: Path, name: str, *, signer: str | None) -> None:
    key, request = directory / f"{name}.key", directory / f"{name}.csr"
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    _openssl("req", "-new", "-key", key, "-subj", f"/CN=test-{name}", "-out", request)
    signing: list[str | Path] = ["-signkey", key]
    if signer:
        signing = ["-CA", directory / f"{signer}.pem", "-CAkey", directory / f"{signer}.key", "-CAcreateserial"]
    extensions: list[str | Path] = ["-extfile", directory / "extensions", "-extensions", name]
    _openssl("x509", "-req", "-days", "1", "-in", request, *signing, *extensions, "-out", directory / f"{name}.pem")


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=30)
