"""Every pattern of the project, found in its rows and in the syntax of its modules, so that none escapes."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import envdoctor
from envdoctor.bundling.labels import read_vocabulary
from envdoctor.bundling.secret_formats import load_formats
from envdoctor.matrix.forms import REGEX
from envdoctor.matrix.kinds import KINDS
from envdoctor.matrix.load import load_matrix
from envdoctor.matrix.sources import leaves

ROOT = Path(envdoctor.__file__).parent
METHODS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
_CALLED = re.compile(rf"\bre\s*\.\s*(?:{'|'.join(METHODS)})\b")


@dataclass(frozen=True)
class Collected:
    """A pattern, where it stands, its flags, and whether it is tried at the start of a text only."""

    place: str
    pattern: str | bytes
    flags: int
    anchored: bool

    def compiled(self) -> re.Pattern:
        return re.compile(self.pattern, self.flags)


@dataclass(frozen=True)
class Unread:
    """A call whose pattern is put together as it runs."""

    place: str
    source: str


def patterns_of_modules() -> Iterator[Collected | Unread]:
    """Yield the pattern of every call of `re` in the modules of the project."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if _CALLED.search(text):
            yield from _of_module(path.relative_to(ROOT.parent), list(ast.walk(ast.parse(text))))


def patterns_of_rows() -> Iterator[Collected]:
    """Yield the patterns of the rows, and those that are put together of tables as the tool runs."""
    matrix = load_matrix()
    for kind, rows in matrix.tables.items():
        for row in rows:
            for path, form, text in leaves(KINDS[kind], row):
                if form is REGEX:
                    name = row["id"] if kind == "symptom" else f"{row['id']}.{path[0]}"
                    yield Collected(name, text, re.IGNORECASE, kind == "attribute")
    for entry in load_formats():
        yield Collected(f"format {entry.kind}", entry.pattern, 0, not entry.lead)
    vocabulary = read_vocabulary()
    for name, values in vocabulary.values.items():
        yield from (Collected(f"value of {name}", value.pattern, 0, True) for value in values)
    yield Collected("words beside secrets", vocabulary.label.pattern, 0, True)
    yield Collected("gap before a secret", vocabulary.gap.pattern, vocabulary.gap.flags, True)
    yield Collected("PackageNames.mentions", load_matrix().package_names.mentions.pattern, 0, False)


def _of_module(path: Path, nodes: list[ast.AST]) -> Iterator[Collected | Unread]:
    module = importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    used = _methods_by_name(nodes)
    names = {id(node.value): target.id for node, target in _assigned(nodes)}
    for call in nodes:
        if isinstance(call, ast.Call) and (method := _method(call)):
            methods = used.get(names.get(id(call), ""), {"finditer"}) if method == "compile" else {method}
            anchored = methods <= {"match", "fullmatch"}
            place = f"{path.as_posix()}:{names.get(id(call)) or ast.unparse(call.args[0])}"
            try:
                pattern = _evaluate(call.args[0], module)
            except NameError:
                yield Unread(path.as_posix(), ast.unparse(call.args[0]))
                continue
            yield Collected(place, pattern, _flags(call, method, module), anchored)


def _method(call: ast.Call) -> str | None:
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr if function.value.id == "re" and function.attr in METHODS else None
    return None


def _assigned(nodes: list[ast.AST]) -> Iterator[tuple[ast.Assign, ast.Name]]:
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node, node.targets[0]


def _methods_by_name(nodes: list[ast.AST]) -> dict[str, set[str]]:
    """Return what is called on each name; a name that is handed on may meet anything."""
    used: dict[str, set[str]] = {}
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr in METHODS}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
            used.setdefault(node.value.id, set()).add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inner:
            used.setdefault(node.id, set()).add("finditer")
    return used


def _evaluate(node: ast.expr, module: ModuleType) -> str | bytes:
    return eval(compile(ast.Expression(node), "pattern", "eval"), vars(module))


def _flags(call: ast.Call, method: str, module: ModuleType) -> int:
    position = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(method, 2)
    given = [k.value for k in call.keywords if k.arg == "flags"] + call.args[position : position + 1]
    return int(_evaluate(given[0], module)) if given else 0
