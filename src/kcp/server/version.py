"""What /version says: the Kubernetes release whose API this is, and our own version."""

from __future__ import annotations

import platform
from typing import Final

import kcp

KUBERNETES: Final = "1.35.0"
_MAJOR, _MINOR, _ = KUBERNETES.split(".")

VERSION: Final = {
    "major": _MAJOR,
    "minor": _MINOR,
    "emulationMajor": _MAJOR,
    "emulationMinor": _MINOR,
    "minCompatibilityMajor": _MAJOR,
    "minCompatibilityMinor": str(int(_MINOR) - 1),
    "gitVersion": f"v{KUBERNETES}+kcp-v{kcp.__version__}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": f"python{platform.python_version()}",
    "compiler": platform.python_implementation().lower(),
    "platform": f"{platform.system().lower()}/{platform.machine()}",
}
