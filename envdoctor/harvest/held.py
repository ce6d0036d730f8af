"""Reads which class an attribute holds, and which one a call yields, out of libraries' annotations.

    python -m envdoctor.harvest.held [LIBRARY]...

writes `matrices/releases/held.json`: by library `Owner.attribute`, `Owner.method()` and `function()`, each
with the class's name, between brackets for a list of it. A few releases over the whole record are read;
the newest that tells one counts.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from envdoctor.fact_files import find_folder
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import replace_file
from envdoctor.harvest.interface_reader import Reader
from envdoctor.harvest.interface_sources import LIBRARIES
from envdoctor.harvest.unread import run_writer
from envdoctor.matrix.held import FILE_NAME, load_held
from envdoctor.matrix.interface_records import Record, load_record
from envdoctor.python_source import parse_python

PARTS = 4
"""How many releases of a library are read, evenly over its record; the newest is one."""
_LISTS = frozenset(
    ("list", "List", "Sequence", "Iterable", "Iterator", "Generator", "AsyncGenerator", "AsyncIterator")
)
_PROPERTIES = frozenset(("property", "cached_property"))
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_UNTOLD = ""


def read_held(files: Iterable[bytes | None]) -> dict[str, str]:
    """Return what the files of one release tell, but what two of one name tell differently."""
    found: dict[str, str] = {}
    for body in files:
        try:
            tree = parse_python(body.decode("utf-8", "replace")) if body else None
        except (SyntaxError, ValueError):
            continue
        for name, told in _told_in(tree.body if tree else ()):
            found[name] = told if found.get(name, told) == told else _UNTOLD
    whole = {name: _followed(told, found) for name, told in found.items()}
    return {name: told for name, told in whole.items() if told}


def _followed(told: str, found: Mapping[str, str]) -> str:
    """Return the class behind `Owner.attribute.attribute`."""
    owner, *rest = told.split(".")
    for one in rest:
        owner = found.get(f"{owner}.{one}", _UNTOLD)
    return owner


def _told_in(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from ((f"{node.name}()", told) for told in _answer(node, ""))
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{name}", told) for name, told in _of_class(node))


def _answer(node: _Function, owner: str) -> Iterator[str]:
    """Yield what a function's annotation tells that it returns, a coroutine once it is waited for."""
    if told := class_in(node.returns):
        yield owner if told == "Self" or (owner and told == _called_on(node)) else told


def _called_on(node: _Function) -> str:
    """Return what a method's first argument is annotated to be, or to be the class of: its own, whichever."""
    first = next(iter((*node.args.posonlyargs, *node.args.args)), None)
    match first.annotation if first else None:
        case ast.Subscript(value=ast.Name(id="type" | "Type"), slice=inner):
            return class_in(inner)
        case annotation:
            return class_in(annotation)


def _of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            yield member.target.id, class_in(member.annotation)
        elif isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            plain = any(isinstance(d, ast.Name) and d.id in _PROPERTIES for d in member.decorator_list)
            yield from ((member.name + ("" if plain else "()"), told) for told in _answer(member, node.name))
            if member.name == "__init__":
                yield from _set_on_self(member)


def _set_on_self(made: _Function) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a class is made with: of a class, of an argument, or of what one holds."""
    named = (*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs)
    given = {one.arg: class_in(one.annotation) for one in named}
    for node in ast.walk(made):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        match target:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if isinstance(node, ast.AnnAssign):
                yield name, class_in(node.annotation)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if isinstance(node, ast.Assign):
                yield name, _class_of(node.value, given)


def _class_of(value: ast.expr, given: Mapping[str, str]) -> str:
    match value:
        case ast.Call(func=ast.Name(id=name)) if name[:1].isupper():
            return name
        case ast.Name(id=name):
            return given.get(name, _UNTOLD)
        case ast.Attribute(value=inner, attr=name):
            owner = _class_of(inner, given)
            return f"{owner}.{name}" if owner and owner[:1] != "[" else _UNTOLD
        case _:
            return _UNTOLD


def class_in(annotation: ast.expr | None) -> str:
    """Return the one class that an annotation tells; `[Class]` for a list of it, nothing for what is more."""
    match annotation:
        case ast.Constant(value=str(text)):
            try:
                return class_in(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return _UNTOLD
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return class_in(inner)
        case ast.Subscript(value=ast.Name(id=listed), slice=inner) if listed in _LISTS:
            first = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
            told = class_in(first)
            return f"[{told}]" if told and told[:1] != "[" else _UNTOLD
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Constant(value=None)):
            return class_in(left)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name[:1].isupper():
            return name
        case _:
            return _UNTOLD


def of_record(told: Mapping[str, str], record: Record) -> dict[str, str]:
    """Return what ends, or goes on, at a class of which the record tells something."""
    classes = record.members.keys() | {one.partition(".")[0] for one in record.keywords if "." in one}
    ends = {name: held for name, held in told.items() if held.strip("[]") in classes}
    for _ in range(PARTS):
        owners = {name.partition(".")[0] for name in ends if "." in name}
        ends |= {name: held for name, held in told.items() if held.strip("[]") in owners}
    return ends


def chosen_of(versions: Sequence[str]) -> list[str]:
    """Return the releases that are read, oldest first."""
    return list(dict.fromkeys(versions[(len(versions) - 1) * part // PARTS] for part in range(1, PARTS + 1)))


def main(names: Sequence[str]) -> None:
    """Read the named libraries (all that have a record when none is named); raises Unavailable."""
    from platformdirs import user_cache_path

    from envdoctor.harvest.index_settings import read_index_settings

    settings, folder = read_index_settings(), find_folder()
    found = {name: dict(told) for name, told in load_held(folder).items()}
    with Fetcher(FetchSettings(certificates=settings.certificates, proxy=settings.proxy)) as fetcher:
        reader = Reader(fetcher, settings.url, user_cache_path("envdoctor") / "interfaces")
        for library in LIBRARIES:
            record = load_record(folder, library.name)
            if record is None or library.part or (names and library.name not in names):
                continue
            told: dict[str, str] = {}
            for version in chosen_of(record.versions):
                told |= read_held(reader.files_of(library, version).values())
            found[library.name] = of_record(told, record)
            sys.stderr.write(f"{library.name}: {len(found[library.name])}\n")
    text = json.dumps({name: told for name, told in found.items() if told}, sort_keys=True, indent=0)
    replace_file(Path(folder, "releases", FILE_NAME), text + "\n")


if __name__ == "__main__":
    sys.exit(run_writer(main))
