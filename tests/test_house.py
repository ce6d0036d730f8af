"""The walls of the house: who may import whom, where each engine lives, what must not be written."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "envdoctor"

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "facts": {"errors"},
    "findings": {"facts"},
    "probes": set(),
    "patterns": set(),
    "processes": {"errors"},
    "files": {"errors"},
    "commands": set(),
    "target": {"errors", "facts", "matrix", "probes"},
    "inputs": {"errors"},
    "inflating": set(),
    "fetch": {"errors", "inflating", "inputs", "probes"},
    "matrix": {"errors", "facts", "files"},
    "harvest": {"errors", "fetch", "files", "matrix", "inflating", "inputs", "probes"},
    "pastes": {"errors", "facts", "bundling", "matrix", "patterns", "inputs"},
    "rules": {"commands", "errors", "facts", "findings", "matrix", "memory", "patterns", "profile"},
    "solve": {
        "target",
        "commands",
        "errors",
        "facts",
        "files",
        "findings",
        "harvest",
        "matrix",
        "report",
        "rules",
        "inputs",
    },
    "upgrading": {
        "target",
        *(
            "errors",
            "facts",
            "findings",
            "inputs",
            "matrix",
            "patterns",
            "profile",
            "report",
            "rules",
            "solve",
        ),
    },
    "memory": {"target", "errors", "facts", "fetch", "matrix", "processes", "report", "inputs"},
    "profile": {"target", "errors", "facts", "findings", "matrix", "memory", "report", "rules", "processes"},
    "smokes": {"errors", "facts", "processes", "report"},
    "report": {"errors", "facts", "findings"},
    "bundling": {"errors", "facts", "files", "findings", "matrix", "report", "inputs"},
    "online": {"errors", "facts", "fetch", "harvest", "matrix", "rules"},
    "diagnosis": {
        "target",
        "errors",
        "facts",
        "findings",
        "matrix",
        "nearby",
        "pastes",
        "plan",
        "probes",
        "rules",
        "smokes",
        *("online", "upgrading"),
    },
    "watch": {
        *("commands", "diagnosis", "errors", "facts", "files", "findings", "matrix", "memory", "pastes"),
        *("probes", "processes", "report", "rules"),
    },
    "nearby": {"facts", "findings"},
    "plan": {"target", "facts", "findings", "matrix", "rules", "solve"},
    "fleet": {
        *(
            "bundling",
            "commands",
            "errors",
            "facts",
            "findings",
            "matrix",
            "diagnosis",
            "solve",
            "report",
            "probes",
            "processes",
        ),
        *("inputs", "rules", "profile", "smokes", "memory", "target"),
    },
}
ENGINES = {
    "httpx": {"fetch.py"},
    "pynvml": {"watch/cards.py"},
    "clingo": {"solve/engine.py"},
    "rich": {"report/terminal.py"},
    "ClusterShell": {"fleet"},
    "ray": {"fleet"},
}


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "__pycache__" not in p.parts)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield every imported module, and whether it is for type checking only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in typing_only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, id(node) in typing_only


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_import_only_what_they_may(path: Path) -> None:
    room = room_of(path)
    if room not in ALLOWED:
        return
    allowed = ALLOWED[room] | {room, "__version__"}
    taken = {name.split(".")[1] for name, _ in imports(path) if name.startswith("envdoctor.")}
    assert taken <= allowed, f"{room} must not import {sorted(taken - allowed)}"


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_lives_in_one_place(engine: str) -> None:
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        for name, typing_only in imports(path)
        if name.split(".")[0] == engine and not typing_only
    }
    assert all(any(user == home or user.startswith(f"{home}/") for home in ENGINES[engine]) for user in users)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_room_is_a_drawer(path: Path) -> None:
    assert path.stem not in {"utils", "util", "common", "helpers", "models", "misc"}
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / line for line in done.stdout.splitlines()]


def test_no_registry_host_and_no_path_of_a_machine_is_written() -> None:
    hosts = re.compile(r"py[p]i\.org|pythonhos[t]ed\.org|npm[j]s\.(org|com)|deb\.debia[n]\.org")
    paths = re.compile(r"(^|[^A-Za-z0-9_.-])/(work|farm)/[a-z]", re.MULTILINE)
    found = []
    for path in tracked():
        if path.is_file() and path.suffix not in {".bin", ".png", ".gz", ".zip"}:
            text = path.read_text(encoding="utf-8", errors="replace")
            if hosts.search(text) or paths.search(text):
                found.append(path.name)
    assert found == []


def test_each_test_file_has_a_name_of_its_own() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
