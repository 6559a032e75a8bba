"""All controllers together."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcp.reconcilers.all import new_all
from tests.reconcilers.control_plane import (
    CONFIGMAPS,
    CRDS,
    EVENTS,
    NAMESPACES,
    QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    WIDGETS,
    ControlPlane,
    crd,
    owned_by,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def whole(plane: ControlPlane) -> ControlPlane:
    plane.start(*new_all(plane.registry, sign_token=lambda *names: "token", root_ca=b"CA"))
    await plane.settle()
    return plane


async def test_a_busy_namespace_comes_and_goes(whole: ControlPlane) -> None:
    await whole.create(CRDS, "widgets.example.io", **crd())
    await whole.create_namespace("team")
    await whole.settle()
    widget = await whole.create(WIDGETS, "w", "team")
    await whole.create(CONFIGMAPS, "c", "team", metadata=owned_by(widget, block=True))
    await whole.create(QUOTAS, "q", "team", spec={"hard": {"configmaps": "5"}})
    annotations = {"kubernetes.io/service-account.name": "default"}
    secret_type = "kubernetes.io/service-account-token"
    await whole.create(SECRETS, "token", "team", type=secret_type, metadata={"annotations": annotations})
    regarding = {"namespace": "team", "name": "w", "kind": "Widget"}
    await whole.create(EVENTS, "e", "team", involvedObject=regarding)
    await whole.settle()
    assert whole.names(SERVICE_ACCOUNTS, "team") == ["default"]
    await whole.delete(WIDGETS, "w", "team", "Foreground")
    await whole.settle()
    assert whole.names(CONFIGMAPS, "team") == []
    quota = whole.get(QUOTAS, "q", "team")
    assert quota is not None
    assert quota["status"]["used"] == {"configmaps": "0"}
    await whole.delete(NAMESPACES, "team")
    await whole.settle()
    await whole.pass_time(30)
    for gvr in (WIDGETS, CONFIGMAPS, QUOTAS, SECRETS, EVENTS, SERVICE_ACCOUNTS):
        assert whole.names(gvr, "team") == []
    assert whole.names(NAMESPACES) == ["default"]


async def test_an_idle_server_writes_nothing(whole: ControlPlane) -> None:
    await whole.create(CONFIGMAPS, "c", "default")
    await whole.pass_time(60)
    before = whole.store.revision
    await whole.pass_time(3600)
    assert whole.store.revision == before


async def test_every_controller_is_documented_and_has_a_name_of_its_own(plane: ControlPlane) -> None:
    controllers = new_all(plane.registry, sign_token=lambda *names: "", root_ca=b"")
    names = [controller.name for controller in controllers]
    assert len(set(names)) == len(names)
    page = (ROOT / "docs" / "controllers.md").read_text()
    assert [name for name in names if f"`{name}`" not in page] == []
