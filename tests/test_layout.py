"""The shape of the house: sizes, doors, wire names and the import contract."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "kcp").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

MAX_FILE_LINES = 500
MAX_TEST_FILE_LINES = 800
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 7

# Wiring tables that may be longer, each with its reason.
LONGER_FILES: dict[str, str] = {}

FORBIDDEN_NAMES = {"util", "utils", "common", "helpers", "base", "misc"}

# Each third-party library has one door: the only modules that may import it.
DOORS: dict[str, set[str]] = {
    "aiohttp": {"admission/webhook_client.py"},
    "cel_expr_python": {"schema/cel/engine.py"},
    "click": {"cli/*"},
    "cryptography": {"auth/x509.py"},
    "google": {"store/etcd/messages.py", "schema/cel/descriptors.py"},
    "httptools": {"endpoints/http.py"},
    "jwt": {"auth/signing.py"},
    "lmdb": {"store/environment.py"},
    "orjson": {"meta/codec.py"},
    "re2": {"schema/structural/regexps.py", "schema/cel/regex.py"},
    "uvicorn": {"endpoints/http.py"},
    "uvloop": {"server/loop.py"},
    "yaml": {"meta/codec.py"},
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "src" / "kcp").as_posix()


def functions_of(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def imports_of(path: Path) -> set[str]:
    """The top-level packages that a file imports at run time or for its types."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_files_and_functions_stay_small(path: Path) -> None:
    if name_of(path) not in LONGER_FILES:
        assert len(path.read_text().splitlines()) <= MAX_FILE_LINES
    for function in functions_of(path):
        assert function.end_lineno is not None
        assert function.end_lineno - function.lineno < MAX_FUNCTION_LINES, function.name
        arguments = function.args
        count = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
        assert count <= MAX_PARAMETERS + 1, f"{function.name} takes {count} parameters: make a value object of them"


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_TEST_FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_each_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "a module begins with its purpose"
    assert FORBIDDEN_NAMES.isdisjoint(Path(name_of(path)).with_suffix("").parts)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_third_party_libraries_come_in_by_their_door(path: Path) -> None:
    foreign = imports_of(path) - set(sys.stdlib_module_names) - {"kcp"}
    for library in foreign:
        doors = DOORS.get(library)
        assert doors, f"{library} has no door yet: add one to DOORS"
        assert any(Path(name_of(path)).match(door) for door in doors), f"{library} comes in by {doors} only"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_wire_names_live_in_wellknown_only(path: Path) -> None:
    if name_of(path) == "meta/wellknown.py":
        return
    tree = ast.parse(path.read_text())
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            assert not re.search(r"\bkcp\.(io|dev)/", node.value), f"line {node.lineno}: {node.value}"


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_rooms_import_one_way() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


def test_the_import_contract_names_every_room() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = {path.parent.name for path in (ROOT / "src" / "kcp").glob("*/__init__.py")}
    assert rooms == {layer.removeprefix("kcp.") for layer in layers if not layer.startswith("(")}
