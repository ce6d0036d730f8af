"""Turns breaks that have a plain replacement into edits, and edits into a diff; the rest of a line stays."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from envdoctor.python_source import parse_python
from envdoctor.upgrading.breaks import Break
from envdoctor.upgrading.uses import Kind, Place
from envdoctor.values import dataclass

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NAME_BACKWARDS = re.compile(r"\w+\.\w*[A-Za-z_]")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of one line, in bytes, and what stands there instead."""

    place: Place
    text: str


def patched(text: str, breaks: Sequence[Break], written: Mapping[str, Sequence[Place]]) -> str:
    """Return the text with what can be renamed renamed; the text itself where nothing can.

    What does not parse afterwards is given back unchanged.
    """
    edits = [edit for one in breaks for edit in _edits(one, text, written)]
    moved = [one for one in breaks if one.use.kind is Kind.IMPORT and _PATH.fullmatch(one.replacement)]
    changed = _moved(_applied(text, edits), moved)
    try:
        parse_python(changed)
    except SyntaxError:
        return text
    return changed


def _edits(one: Break, text: str, written: Mapping[str, Sequence[Place]]) -> Iterable[Edit]:
    use, new = one.use, one.replacement
    if use.kind in (Kind.KEYWORD, Kind.KEY, Kind.SETTING, Kind.MEMBER) and _WORD.fullmatch(new):
        yield Edit(use.place, new)
    elif use.kind is Kind.PATH and _PATH.fullmatch(new):
        if new.rpartition(".")[0] == one.name.rpartition(".")[0]:
            yield Edit(use.place, new.rpartition(".")[2])
    elif use.kind is Kind.PATH and _WORD.fullmatch(new):
        if start := _start(text, use.place):
            yield Edit(Place(use.place.line, start - 1, use.place.end), new)
    elif use.kind is Kind.IMPORT and _PATH.fullmatch(new):
        last = new.rpartition(".")[2]
        if last != use.name:
            yield from (Edit(place, last) for place in written.get(f"{use.path}.{use.name}", ()))


def _start(text: str, place: Place) -> int:
    """Return where the dotted name that ends at a place begins (from 1); 0 where it is no plain one."""
    line = text.split("\n")[place.line - 1].encode()[: place.end].decode("utf-8", "replace")
    match = _NAME_BACKWARDS.match(line[::-1])
    return len(line[: -match.end()].encode()) + 1 if match else 0


def _applied(text: str, edits: Iterable[Edit]) -> str:
    lines = [line.encode() for line in text.split("\n")]
    for edit in sorted(set(edits), key=lambda e: e.place, reverse=True):
        place = edit.place
        line = lines[place.line - 1]
        lines[place.line - 1] = line[: place.start] + edit.text.encode() + line[place.end :]
    return b"\n".join(lines).decode()


def _moved(text: str, moved: Sequence[Break]) -> str:
    """Rewrite the import statements some of whose names moved; each new home gets a statement of its own."""
    lines = text.split("\n")
    statements: dict[tuple[int, int], list[Break]] = {}
    for one in moved:
        if one.use.statement is not None:
            statements.setdefault((one.use.statement.line, one.use.statement.end), []).append(one)
    for (first, last), some in sorted(statements.items(), reverse=True):
        statement = "\n".join(lines[first - 1 : last])
        lines[first - 1 : last] = _rewritten(statement, some).split("\n")
    return "\n".join(lines)


def _rewritten(statement: str, moved: Sequence[Break]) -> str:
    indent = statement[: len(statement) - len(statement.lstrip())]
    try:
        (node,) = parse_python(statement.strip()).body
    except (SyntaxError, ValueError):
        return statement
    if not isinstance(node, ast.ImportFrom) or "#" in statement:
        return statement
    new = {one.use.name: one.replacement for one in moved}
    homes: dict[str, list[str]] = {}
    for alias in node.names:
        module, _, name = new.get(alias.name, f"{node.module}.{alias.name}").rpartition(".")
        homes.setdefault(module, []).append(f"{name} as {alias.asname}" if alias.asname else name)
    return "\n".join(f"{indent}from {module} import {', '.join(names)}" for module, names in homes.items())


def diff_of(file: str, old: str, new: str) -> str:
    """Return a unified diff, empty where nothing changes."""
    name = file.removeprefix("./").lstrip("/")
    told = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in told
    )
