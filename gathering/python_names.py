"""Reads which names Python's own library has in some versions or on some systems alone, from typeshed.

    python gathering/python_names.py

writes `matrices/releases/python-names.json`: `pythons`, the minors in order, and `names`, for each name that
not every Python has the positions of the first and the last minor that has it and the systems that lack it
(`w` Windows, `l` Linux, `m` macOS). A name is a module, `module.name`, `module.Class.member` or
`module.function(key)`. mypy carries typeshed; an old release of it tells of Pythons that a new one forgot.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from release_sources import best_file, read_sources

from envdoctor.errors import Unavailable
from envdoctor.fact_files import find_folder
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import replace_file
from envdoctor.harvest.index_pages import read_project_page

PACKAGE = "mypy"
OLD, NEW = "0.991", "2.4.1"
OLD_MINORS, NEW_MINORS = range(7, 12), range(10, 16)
STDLIB = "mypy/typeshed/stdlib/"
SYSTEMS = {"w": "win32", "l": "linux", "m": "darwin"}
LEFT_OUT = frozenset(
    {"distutils", "lib2to3", "msilib", "tkinter", "turtle", "idlelib", "curses", "pydoc_data"}
)
"""Modules whose own names nobody misses; that they come and go is told all the same."""


@dataclass(frozen=True)
class Stubs:
    """The stubs of one release of typeshed."""

    read: Callable[[str], str | None]
    trees: dict[str, ast.Module | None] = field(default_factory=dict)

    def tree(self, module: str) -> tuple[ast.Module | None, bool]:
        """Return a module's stub, None without one, and whether it is a package."""
        path = STDLIB + module.replace(".", "/")
        for file in (f"{path}.pyi", f"{path}/__init__.pyi"):
            if file not in self.trees:
                text = self.read(file)
                self.trees[file] = ast.parse(text) if text is not None else None
            if (tree := self.trees[file]) is not None:
                return tree, file.endswith("__init__.pyi")
        return None, False


@dataclass(frozen=True)
class Python:
    """One Python on one system, as a stub's conditions see it."""

    minor: int
    system: str

    def holds(self, node: ast.expr) -> bool:
        """Return what a condition comes to; what is not of the version or the system holds."""
        if isinstance(node, ast.BoolOp):
            parts = map(self.holds, node.values)
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.holds(node.operand)
        if not isinstance(node, ast.Compare):
            return True
        left, right = ast.unparse(node.left), ast.literal_eval(node.comparators[0])
        if left == "sys.platform":
            same = self.system == right
            return same if isinstance(node.ops[0], ast.Eq) else not same
        own = (3, self.minor)[: len(right)]
        return bool(own >= right[:2] if isinstance(node.ops[0], ast.GtE) else own < right[:2])

    def statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        """Yield the statements that this Python runs."""
        for node in body:
            if isinstance(node, ast.If):
                yield from self.statements(node.body if self.holds(node.test) else node.orelse)
            else:
                yield node


def names_of(stubs: Stubs, python: Python, module: str, seen: tuple[str, ...] = ()) -> set[str]:
    """Return the public names of a module, its classes' members and its functions' keywords."""
    tree, package = stubs.tree(module)
    statements = list(python.statements(tree.body if tree else []))
    listed = {name for node in statements for name in _listed(node)}
    found: set[str] = set()
    for node in statements:
        if isinstance(node, ast.ImportFrom):
            found |= _imported(stubs, python, module, package, node, seen, listed)
        elif isinstance(node, ast.ClassDef):
            found |= {node.name, *_members(python, node)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= {node.name, *(f"{node.name}({key})" for key in _keywords(node))}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return {name for name in found if not name.startswith("_")}


def _listed(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement puts into `__all__`."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if isinstance(target, ast.Name) and target.id == "__all__":
        value = node.value  # type: ignore[attr-defined]
        yield from ast.literal_eval(value) if isinstance(value, ast.List | ast.Tuple) else ()


def _imported(
    stubs: Stubs,
    python: Python,
    module: str,
    package: bool,
    node: ast.ImportFrom,
    seen: tuple[str, ...],
    listed: set[str],
) -> set[str]:
    base = module.split(".")
    base = base[: len(base) - node.level + package] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    if node.names[0].name != "*":
        return {
            one.asname or one.name
            for one in node.names
            if one.asname == one.name or one.name in listed or one.asname in listed
        }
    return names_of(stubs, python, source, (*seen, module)) if source not in seen else set()


def _members(python: Python, node: ast.ClassDef) -> set[str]:
    """Return a class's public members, and the keywords of its constructor under its own name."""
    found = set()
    for one in python.statements(node.body):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= {f"{node.name}.{one.name}"} if not one.name.startswith("_") else set()
            if one.name in ("__init__", "__new__"):
                found |= {f"{node.name}({key})" for key in _keywords(one)}
        elif isinstance(one, ast.Assign):
            found |= {f"{node.name}.{target.id}" for target in one.targets if isinstance(target, ast.Name)}
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found.add(f"{node.name}.{one.target.id}")
    return {name for name in found if "._" not in name}


def _keywords(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for argument in [*node.args.args, *node.args.kwonlyargs]:
        if not argument.arg.startswith("_") and argument.arg not in ("self", "cls"):
            yield argument.arg


def spans_of_modules(text: str) -> dict[str, tuple[int, int]]:
    """Return the minors that have each module, as the file VERSIONS lists them; 99 is no end."""
    spans = {}
    for line in text.splitlines():
        name, _, span = line.partition("#")[0].partition(":")
        if span.strip():
            first, _, last = span.strip().partition("-")
            spans[name] = (int(first.split(".")[1]), int(last.split(".")[1]) if last else 99)
    return spans


def read_all(
    stubs: Stubs, spans: Mapping[str, tuple[int, int]], minors: range
) -> dict[tuple[int, str], set[str]]:
    """Return all names of each Python on each system: modules, and theirs."""
    found: dict[tuple[int, str], set[str]] = {}
    for minor in minors:
        for letter, system in SYSTEMS.items():
            python, names = Python(minor, system), set()
            for module, (first, last) in spans.items():
                if module.startswith("_") or not first <= minor <= last:
                    continue
                own = names_of(stubs, python, module)
                elsewhere = (names_of(stubs, Python(minor, other), module) for other in SYSTEMS.values())
                names |= {module} if own or not any(elsewhere) else set()
                names |= (
                    set() if module.partition(".")[0] in LEFT_OUT else {f"{module}.{name}" for name in own}
                )
            found[minor, letter] = names
    return found


def encode(
    old: Mapping[tuple[int, str], set[str]], new: Mapping[tuple[int, str], set[str]]
) -> dict[str, object]:
    """Return the first and last minor of each name that not all have, and the systems that lack it.

    A name that the older stubs do not have in a Python of which both tell was not written down yet.
    """
    minors = sorted({minor for minor, _ in (*old, *new)})
    shared = min(minor for minor, _ in new)
    unwritten = {name for letter in SYSTEMS for name in new[shared, letter]} - {
        name for letter in SYSTEMS for name in old[shared, letter]
    }
    having: dict[str, set[int]] = {}
    for told, chosen in ((old, range(minors[0], shared)), (new, range(shared, minors[-1] + 1))):
        for (minor, _), names in told.items():
            for name in names if minor in chosen else ():
                having.setdefault(name, set()).add(minors.index(minor))
    latest = {letter: new[minors[-1], letter] for letter in SYSTEMS}
    found = {}
    for name, places in sorted(having.items()):
        first = 0 if name in unwritten else min(places)
        lacking = "".join(letter for letter, names in latest.items() if name not in names)
        systems = lacking if len(lacking) < len(SYSTEMS) else _last_systems(name, old, new)
        apart = (first, max(places)) != (0, len(minors) - 1) or systems
        if apart and not _is_told_by_its_owner(name, having, minors, places):
            found[name] = [first, max(places), systems] if systems else [first, max(places)]
    return {"pythons": [f"3.{minor}" for minor in minors], "names": found}


def _last_systems(
    name: str, old: Mapping[tuple[int, str], set[str]], new: Mapping[tuple[int, str], set[str]]
) -> str:
    """Return the systems that lack a name in the last Python that has it anywhere."""
    told = {**old, **new}
    minors = [minor for minor, letter in told if name in told[minor, letter]]
    return "".join(letter for letter in SYSTEMS if name not in told[max(minors), letter])


def _is_told_by_its_owner(
    name: str, having: Mapping[str, set[int]], minors: list[int], places: set[int]
) -> bool:
    """True for what comes and goes with the module or class that it is of."""
    owner = name.partition("(")[0] if "(" in name else name.rpartition(".")[0]
    return having.get(owner) == places != set(range(len(minors)))


def _text(body: Callable[[str], bytes], path: str) -> str | None:
    try:
        return body(path).decode()
    except KeyError:
        return None


def main() -> None:
    """Read both releases and write the file."""
    from envdoctor.harvest.index_settings import read_index_settings

    settings = read_index_settings()
    patience = FetchSettings(certificates=settings.certificates, proxy=settings.proxy)
    told = []
    with Fetcher(patience) as fetcher:
        page = read_project_page(fetcher, settings.url, PACKAGE)
        releases = page.releases() if page else {}
        for release, minors in ((OLD, OLD_MINORS), (NEW, NEW_MINORS)):
            file = best_file(releases[release])
            if file is None:
                raise Unavailable(f"{PACKAGE} {release}: no file was found")
            body = read_sources(fetcher, file, whole=True).body
            stubs = Stubs(lambda path, body=body: _text(body, path))  # type: ignore[misc]
            told.append(
                (
                    file.filename,
                    read_all(stubs, spans_of_modules(stubs.read(f"{STDLIB}VERSIONS") or ""), minors),
                )
            )
    (old_file, old), (new_file, new) = told
    head = {
        "made_by": "python gathering/python_names.py",
        "source": [f"wheel:{old_file}", f"wheel:{new_file}"],
    }
    text = json.dumps({**head, **encode(old, new)}, separators=(",", ":"), sort_keys=True) + "\n"
    replace_file(Path(find_folder(), "releases", "python-names.json"), text)


if __name__ == "__main__":
    main()
