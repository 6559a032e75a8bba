"""Fetch the kubectl 1.32 of Debian's archive into the virtual environment, for the end-to-end tests.

Run: python scripts/get_kubectl.py [DIRECTORY]; it prints the path. The file is checked against a digest written here.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import platform
import sys
import tarfile
import urllib.request
from pathlib import Path

ARCHIVE = "http://deb.debian.org/debian/pool/main/k/kubernetes"
VERSION = "1.32.3+ds-2"

# machine as Python names it: (as Debian names it, SHA-256 of the package)
PACKAGES = {
    "x86_64": ("amd64", "9825aaf4c14913027aae04af8688e580459f781c829bd5de00cc4dc2cc5a867f"),
    "aarch64": ("arm64", "b85800b5e2d2ecc958e2b9dfa7d4ce13b14e1175242de1f71acb4fa4b0b63212"),
}


class KubectlUnavailable(Exception):
    """There is no kubectl to fetch; the message says why."""


def get_kubectl(directory: Path) -> Path:
    """The path of a kubectl in `directory`, which is fetched if it is not there yet."""
    target = directory / f"kubectl-{VERSION}"
    if target.exists():
        return target
    if sys.platform != "linux" or platform.machine() not in PACKAGES:
        raise KubectlUnavailable(f"Debian has no kubectl for {sys.platform} on {platform.machine()}")
    architecture, digest = PACKAGES[platform.machine()]
    url = f"{ARCHIVE}/kubectl_{VERSION}_{architecture}.deb"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            package = answer.read()
    except OSError as error:
        raise KubectlUnavailable(f"cannot fetch {url}: {error}") from error
    if hashlib.sha256(package).hexdigest() != digest:
        raise KubectlUnavailable(f"{url} is not the package that is expected here")
    directory.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed, so that a second process never sees half a program.
    partial = target.with_suffix(".partial")
    partial.write_bytes(extract(package))
    partial.chmod(0o755)
    partial.rename(target)
    return target


def extract(package: bytes) -> bytes:
    """kubectl out of a Debian package: an ar archive whose member data.tar.xz holds the files."""
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(member(package, "data.tar.xz")))) as files:
        program = files.extractfile("./usr/bin/kubectl")
        if program is None:
            raise KubectlUnavailable("the package has no usr/bin/kubectl")
        return program.read()


def member(package: bytes, name: str) -> bytes:
    """One member of an ar archive: a head of 60 bytes, with the name first and the size from the 48th on, then data."""
    position = len(b"!<arch>\n")
    while position < len(package):
        head = package[position : position + 60]
        size = int(head[48:58])
        if head[:16].decode().strip().rstrip("/") == name:
            return package[position + 60 : position + 60 + size]
        position += 60 + size + size % 2
    raise KubectlUnavailable(f"the package has no {name}")


if __name__ == "__main__":
    try:
        print(get_kubectl(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(sys.prefix) / "kubectl"))
    except KubectlUnavailable as error:
        sys.exit(str(error))
