"""The differential suite: answers that were recorded from kube-apiserver, against this server's.

`known_failures.txt` lists the cases that may still fail, and only ever gets shorter: a case on it that passes fails the
test too, until its line is taken out. A case that does not always fail has the word "sometimes" after it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.kcp_server import KcpServer

ROOT = Path(__file__).parents[2]
KNOWN_FAILURES = Path(__file__).with_name("known_failures.txt")
JOBS = 8  # most of a case's time is waiting; more would make cases wait for one another
# The recording knows its user by this name.
USERS = 'conformance,admin,admin,"system:masters"\n'


def find_suite() -> Path | None:
    """$KCP_CONFORMANCE, else the directory `shared/conformance` beside the project, if there is one."""
    named = os.environ.get("KCP_CONFORMANCE")
    suite = Path(named) if named else ROOT.parent / "shared" / "conformance"
    return suite if (suite / "runner.py").exists() else None


def known_failures() -> dict[str, bool]:
    """The cases that may fail, and whether each always does."""
    lines = (line.partition("#")[0].split() for line in KNOWN_FAILURES.read_text().splitlines())
    return {line[0]: "sometimes" not in line[1:] for line in lines if line}


@pytest.fixture(scope="session")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    """The differences of each case from the recording."""
    suite = find_suite()
    if suite is None:
        pytest.skip("no conformance suite: set KCP_CONFORMANCE to its directory (the one with runner.py)")
    result = tmp_path_factory.mktemp("conformance") / "result.json"
    users = result.with_name("users.csv")
    users.write_text(USERS)
    with KcpServer(result.parent / "root", (f"--token-auth-file={users}",)) as server:
        command = [sys.executable, str(suite / "runner.py"), "--server", server.url, "--insecure"]
        command += ["--token", "conformance", "--prefix", "/clusters/root", "--jobs", str(JOBS)]
        command += ["check", "--golden", str(suite / "golden.json"), "--json", str(result)]
        printed = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.exists(), printed.stderr
    return {case["case"]: case["differences"] for case in json.loads(result.read_text())["cases"]}


@pytest.mark.timeout(600)
def test_no_case_answers_otherwise_than_kubernetes(outcome: dict[str, list[dict[str, object]]]) -> None:
    failing = {case: found[:3] for case, found in outcome.items() if found and case not in known_failures()}
    assert not failing, json.dumps(failing, indent=1)


@pytest.mark.timeout(600)
def test_the_list_of_known_failures_only_shrinks(outcome: dict[str, list[dict[str, object]]]) -> None:
    passing = {case for case, always in known_failures().items() if always and outcome.get(case) == []}
    assert not passing, f"these pass now: take them out of {KNOWN_FAILURES.name}"
    assert known_failures().keys() <= outcome.keys(), "there are no such cases"
