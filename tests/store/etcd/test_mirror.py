"""Which mirrors are kept, and which are thrown away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kcp.store.engine import Engine
from kcp.store.errors import InUse
from kcp.store.etcd import mirror

if TYPE_CHECKING:
    from pathlib import Path

THIS_BOOT = "a boot id"


@pytest.fixture
def boot_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the system says which life of the machine this is."""
    file = tmp_path / "boot_id"
    file.write_text(f"{THIS_BOOT}\n")
    monkeypatch.setattr(mirror, "_BOOT_ID", file)
    return file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def make_mirror(path: Path, *, clean: bool) -> None:
    with Engine(path, map_bytes=1 << 20) as engine:
        mirror.mark_in_use(path)
        if clean:
            mirror.mark_clean(engine)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
def test_a_mirror_of_this_boot_is_kept(boot_id: Path, path: Path, clean: bool) -> None:
    make_mirror(path, clean=clean)
    mirror.discard_if_torn(path)
    assert (path / "data.mdb").exists()


def test_a_mirror_in_use_at_another_boot_is_discarded(boot_id: Path, path: Path) -> None:
    make_mirror(path, clean=False)
    boot_id.write_text("another")
    mirror.discard_if_torn(path)
    assert not mirror.is_mirror(path)
    assert not (path / "data.mdb").exists()
    make_mirror(path, clean=True)
    boot_id.write_text("yet another")
    mirror.discard_if_torn(path)
    assert (path / "data.mdb").exists()


def test_where_boots_have_no_name_only_a_clean_mirror_is_kept(boot_id: Path, path: Path) -> None:
    boot_id.unlink()
    make_mirror(path, clean=True)
    mirror.discard_if_torn(path)
    assert (path / "data.mdb").exists()
    make_mirror(path, clean=False)
    mirror.discard_if_torn(path)
    assert not (path / "data.mdb").exists()


@pytest.mark.parametrize("marker", [b"", b"\xff", b"another boot", b"in use"], ids=["empty", "nonsense", "old", "none"])
def test_a_mirror_that_is_open_is_never_discarded(boot_id: Path, path: Path, marker: bytes) -> None:
    boot_id.unlink()
    with Engine(path, map_bytes=1 << 20):
        (path / "MIRROR").write_bytes(marker)
        with pytest.raises(InUse):
            mirror.discard_if_torn(path)
        assert (path / "data.mdb").exists()
        assert mirror.is_mirror(path)
    mirror.discard_if_torn(path)
    assert not (path / "data.mdb").exists()


def test_what_is_no_mirror_is_never_discarded(boot_id: Path, path: Path) -> None:
    with Engine(path, map_bytes=1 << 20):
        pass
    mirror.discard_if_torn(path)
    assert (path / "data.mdb").exists()
