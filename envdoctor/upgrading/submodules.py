"""What code needs beside what was asked for: modules that it imports need what no metadata requires."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from envdoctor.matrix import Matrix, tables
from envdoctor.python_source import parse_python
from envdoctor.solve.goal import Goal
from envdoctor.solve.requests import parse_request
from envdoctor.specifiers import SpecifierSet
from envdoctor.upgrading.needing import Wanted
from envdoctor.upgrading.sources import Source, find_files, python_of, read_text


def needed_by_code(
    goal: Goal, pinned: Mapping[str, str], matrix: Matrix, paths: Sequence[str]
) -> list[Wanted]:
    """Return what files import at their top that pinned packages have but do not require what it needs.

    `pinned` are versions by package. Raises InputError for a path that is none.
    """
    asked = {f"{one.name}[{extra}]" for one in goal.requests for extra in one.extras}
    rows = [row for row in matrix.rows(tables.SubmoduleRow) if _is_wanting(row, pinned, asked)]
    met: dict[str, tuple[str, str]] = {}
    for source in _naming(paths, rows):
        imported = list(_imported(source.text))
        for row in rows:
            line = next((line for line, name in imported if f"{name}.".startswith(f"{row.module}.")), 0)
            if line:
                met.setdefault(row.needs, (f"{source.file}, line {line}", row.module))
    here = goal.context.target.marker_environment()
    return [
        Wanted(request, f"{request}: {place} imports {module}, which needs it")
        for needs, (place, module) in met.items()
        if (request := parse_request(needs, place)) and request.holds(here)
    ]


def _naming(paths: Sequence[str], rows: Sequence[tables.SubmoduleRow]) -> Iterator[Source]:
    """Yield the Python of files in which the last name of one of the modules stands."""
    for path in find_files(paths) if rows else ():
        text = read_text(path) if path.suffix in (".py", ".ipynb") else None
        if text and any(row.module.rpartition(".")[2] in text for row in rows):
            yield from python_of(path, text)


def _is_wanting(row: tables.SubmoduleRow, pinned: Mapping[str, str], asked: set[str]) -> bool:
    version = pinned.get(row.distribution)
    needs = row.needs.partition(";")[0].strip()
    if version is None or needs in pinned or needs in asked:
        return False
    return row.releases == "*" or SpecifierSet(row.releases).contains(version, prereleases=True)


def _imported(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and path of each module or name that a text imports at its top."""
    try:
        body = parse_python(text).body
    except SyntaxError:
        return
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
