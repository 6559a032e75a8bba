"""What /version says."""

from __future__ import annotations

import kcp
from kcp.server.version import KUBERNETES, VERSION


def test_clients_see_the_kubernetes_release_whose_api_this_is() -> None:
    major, minor, _ = KUBERNETES.split(".")
    assert (VERSION["major"], VERSION["minor"]) == (major, minor)
    assert VERSION["gitVersion"] == f"v{KUBERNETES}+kcp-v{kcp.__version__}"
    assert VERSION["minCompatibilityMinor"] == str(int(minor) - 1)
    assert all(isinstance(value, str) for value in VERSION.values())
