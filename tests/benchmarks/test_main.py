"""The command as a user runs it, in its smoke form, against a server that it starts itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from benchmarks.api import suite
from benchmarks.api.__main__ import main

ROOT = Path(__file__).parent.parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.api", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)


def test_help_shows_examples() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.output


def test_a_smoke_run_measures_everything(tmp_path: Path) -> None:
    found = run("--quick", "--clients", "2", "--directory", str(tmp_path), "--json", str(tmp_path / "found.json"))
    assert found.returncode == 0, found.stderr
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert all(row["value"] > 0 for row in rows.values())
    for name in suite.BENCHMARKS:
        assert f"**{name}**" in found.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.json"]


def test_a_server_that_is_not_there_is_one_line() -> None:
    found = run("--quick", "--server", "https://127.0.0.1:1", "--token", "t", "--insecure")
    assert found.returncode == 1
    assert found.stderr.startswith("... ")
    assert found.stderr.splitlines()[-1].startswith("Error: ")
