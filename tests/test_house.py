"""The walls of the house: who may import whom, where each engine lives, what must not be written."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "envdoctor"

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "facts": set(),
    "findings": {"facts"},
    "probes": set(),
    "patterns": set(),
    "values": set(),
    "lazy_re": set(),
    "toml_text": set(),
    "late": set(),
    "specifiers": set(),
    "processes": {"errors"},
    "python_source": set(),
    "files": {"errors"},
    "fact_files": {"errors"},
    "commands": set(),
    "target": {"errors", "facts", "matrix", "probes"},
    "inputs": {"errors"},
    "inflating": set(),
    "fetch": {"errors", "inflating", "inputs", "probes"},
    "matrix": {"errors", "fact_files", "facts", "files", "patterns"},
    "harvest": {
        *("errors", "fact_files", "fetch", "files", "inflating", "inputs", "matrix", "probes"),
        *("python_source", "target"),
    },
    "locks": {"errors", "facts", "inputs"},
    "images": {"errors", "facts", "inputs", "matrix", "probes"},
    "pastes": {
        *("bundling", "errors", "facts", "images", "inputs", "locks", "matrix", "patterns", "python_source"),
    },
    "rules": {"commands", "errors", "facts", "findings", "matrix", "memory", "patterns", "profile"},
    "solve": {
        *("commands", "errors", "fact_files", "facts", "files", "harvest", "images", "inputs", "locks"),
        *("matrix", "probes", "python_source", "report", "target"),
    },
    "upgrading": {
        *("commands", "errors", "facts", "findings", "harvest", "inputs", "matrix", "patterns", "profile"),
        *("python_source", "report", "rules", "solve", "target"),
    },
    "memory": {"errors", "facts", "fetch", "inputs", "matrix", "processes", "report", "target"},
    "profile": {"errors", "facts", "matrix", "memory", "processes", "report", "target"},
    "smokes": {"errors", "facts", "inputs", "matrix", "patterns", "processes", "report"},
    "report": {"commands", "facts", "findings"},
    "bundling": {"errors", "facts", "files", "findings", "inputs", "matrix", "report"},
    "online": {
        *("errors", "facts", "fetch", "findings", "harvest", "matrix", "plan", "rules", "solve", "target"),
    },
    "diagnosis": {
        *("errors", "facts", "findings", "images", "matrix", "nearby", "online", "pastes", "plan", "probes"),
        *("rules", "smokes", "target", "upgrading"),
    },
    "several": {"diagnosis", "errors", "facts", "findings", "matrix"},
    "watch": {
        *("diagnosis", "errors", "facts", "files", "findings", "inputs", "matrix", "memory", "pastes"),
        *("probes", "processes", "profile", "report", "rules", "target"),
    },
    "nearby": {"facts", "findings"},
    "plan": {"commands", "facts", "findings", "matrix", "rules", "solve", "target"},
    "fixing": {
        *("commands", "diagnosis", "errors", "facts", "files", "findings", "harvest", "inputs", "matrix"),
        *("online", "pastes", "plan", "processes", "report", "solve", "target"),
    },
    "fleet": {
        *("bundling", "commands", "diagnosis", "errors", "facts", "findings", "inputs", "matrix"),
        *("memory", "probes", "processes", "profile", "report", "smokes", "solve", "target"),
    },
}
EVERYWHERE = {"values", "lazy_re", "toml_text", "late", "specifiers"}
"""Ways of writing what the standard library has: cheaper to load, or there on every Python."""
DOORS = {"__init__", "__main__", "api", "cli", "door", "notebook", "serving"}
"""What nothing else may import: the doors for programs, people, notebooks and assistants."""
ENGINES = {
    "httpx": {"fetch.py"},
    "pynvml": {"watch/cards.py"},
    "clingo": {"solve/clasp.py"},
    "rich": {"report/terminal.py"},
    "ClusterShell": {"fleet"},
    "ray": {"fleet"},
    "mcp": {"serving/server.py"},
    "mcp_types": {"serving/server.py"},
}

CALLED_BY_OTHERS = {
    *("load_ipython_extension", "_repr_html_"),  # IPython
    *(
        "create_module",
        "exec_module",
        "readinto",
        "find_class",
    ),  # the standard library's loaders, streams, pickles
    *("handle_starttag", "handle_endtag", "do_GET", "log_message"),  # its parsers and servers
    *("ev_read", "ev_hup"),  # ClusterShell
    "parameters_b",  # what a row says for people, and tests hold the shape against
}
_DOCSTRING = re.compile(r'"""(?s:.*?)"""')
_DEFINED_NAME = re.compile(
    r"^(?<!\)\n)(?: {4})?(?:async )?def (?!__)(\w+)|^class (\w+)"
    r"|^(?: {4})?([A-Za-z_]\w*): [^\n]+$|^([A-Za-z_]\w*) = ",
    re.MULTILINE,
)
"""Not what a decorator with arguments hands on."""
_READ_NAME = re.compile(
    r'\b(?:def|class) \w+|^ *\w+(?=: | = )|"\w+"(?=:)|\b\w+=(?!=)|([A-Za-z_]\w*)', re.MULTILINE
)
"""A name but where it is defined, set, or the key of a table."""


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "__pycache__" not in p.parts)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path, modules: Iterable[str] = ()) -> Iterator[tuple[str, bool]]:
    """Yield every imported module (`modules` by name, too), and whether it is for type checking only."""
    for base, name, typing_only in imported_names(path):
        full = f"{base}.{name}"
        yield full if name and full in modules else base, typing_only


@cache
def imported_names(path: Path) -> tuple[tuple[str, str, bool], ...]:
    """Return what a file imports: the module, the name out of it, and whether for type checking only."""
    return tuple(_imported_names(path))


def _imported_names(path: Path) -> Iterator[tuple[str, str, bool]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = (*path.relative_to(ROOT).parent.parts,)
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", id(node) in typing_only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield from ((base, alias.name, id(node) in typing_only) for alias in node.names)


def rooms_taken(path: Path) -> set[str]:
    return {name.split(".")[1] for name, _ in imports(path) if name.startswith("envdoctor.")}


def test_rooms_import_only_what_they_may() -> None:
    inside = [path for path in modules() if room_of(path) not in DOORS]
    taken = {path: rooms_taken(path) - {room_of(path)} - EVERYWHERE for path in inside}
    beyond = {path: sorted(rooms - ALLOWED[room_of(path)]) for path, rooms in taken.items()}
    assert {str(path.relative_to(ROOT)): rooms for path, rooms in beyond.items() if rooms} == {}


def test_no_permission_is_unused() -> None:
    used: dict[str, set[str]] = {room: set() for room in ALLOWED}
    for path in modules():
        used.get(room_of(path), set()).update(rooms_taken(path))
    assert {room: sorted(may - used[room]) for room, may in ALLOWED.items() if may - used[room]} == {}


def test_neither_rooms_nor_modules_form_a_circle() -> None:
    """Imports inside functions and for types alone count; those of the package itself, its door, do not."""
    names = {module_name(path): path for path in modules()}
    wanted = {
        module: {_module_of(taken, names) for taken, _ in imports(path, names)} - {module, "envdoctor", ""}
        for module, path in names.items()
        if module != "envdoctor"
    }
    assert _circles(wanted) == []
    rooms: dict[str, set[str]] = {}
    for module, taken in wanted.items():
        room = module.split(".")[1]
        rooms.setdefault(room, set()).update({one.split(".")[1] for one in taken} - {room})
    assert _circles(rooms) == []


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _module_of(name: str, known: Mapping[str, Path]) -> str:
    """Return the module that an imported name is or is in."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def _circles(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the nodes from which imports lead back."""
    left = {node: taken & graph.keys() for node, taken in graph.items()}
    while ends := {n for n, taken in left.items() if not taken} | left.keys() - set().union(*left.values()):
        left = {node: taken - ends for node, taken in left.items() if node not in ends}
    return sorted(left)


def test_the_page_of_the_house_names_each_room_and_nothing_else() -> None:
    told = {
        name
        for line in (ROOT / "docs" / "house.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([a-z_/]+/|[a-z_/]+\.py)`", line)
    }
    rooms = {f"{room_of(path)}{'/' if path.parent != PACKAGE else '.py'}" for path in modules()}
    assert rooms - told == {"__init__.py", "__main__.py"}
    assert [name for name in told if not (PACKAGE / name).exists()] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/house.md"])
def test_every_file_that_a_page_about_the_house_names_is_there(page: str) -> None:
    named = re.findall(
        r"(?<![\w/])((?:envdoctor|tests|docs|benchmarks|gathering|matrices)/[\w./]*\w)",
        (ROOT / page).read_text(),
    )
    missing = {name for name in named if "NAME" not in name and not list(ROOT.glob(f"{name}*"))}
    assert missing == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_lives_in_one_place(engine: str) -> None:
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        for name, typing_only in imports(path)
        if name.split(".")[0] == engine and not typing_only
    }
    assert all(any(user == home or user.startswith(f"{home}/") for home in ENGINES[engine]) for user in users)


def test_no_room_is_a_drawer() -> None:
    for path in modules():
        assert path.stem not in {"utils", "util", "common", "helpers", "models", "misc"}, path
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path


def test_nothing_is_defined_that_nothing_reads() -> None:
    """By names: a function, class, field or constant counts as read where anything of its name is."""
    texts = {path: _DOCSTRING.sub("", path.read_text(encoding="utf-8")) for path in modules()}
    read = CALLED_BY_OTHERS.union(*(_READ_NAME.findall(text) for text in texts.values()))
    defined = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path, text in texts.items()
        for found in _DEFINED_NAME.findall(text)
        for name in set(found) - {"", f"parse_{path.stem}"}
    }
    assert {(path, name) for path, name in defined if name not in read} == set()


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
