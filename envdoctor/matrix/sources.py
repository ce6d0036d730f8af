"""The rows as people write them: TOML files, read, checked and complained about by file and line.

A table may hold `rows`: its other keys then stand for each of them, as `[defaults]` does for a whole file.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any

from envdoctor.errors import Unavailable
from envdoctor.facts.codec import FactsFormatError, decode, hints_of
from envdoctor.matrix.forms import Form, Part
from envdoctor.matrix.forms import Path as Place
from envdoctor.matrix.needles import needles_of
from envdoctor.matrix.tables.lexicon import SymptomRow
from envdoctor.matrix.tables.row import Row
from envdoctor.toml_text import parse_toml
from envdoctor.values import dataclass

DEFAULTS = "defaults"
_DEFAULTED = frozenset({"checked_on", "basis"})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A TOML file of the matrix."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row with what its table and its file say for it, and where it stands."""

    kind: str
    data: Mapping[str, Any]
    file: SourceFile
    place: Place

    def problem(self, path: Place, problem: str) -> Unavailable:
        """Return the error that names file, line, row and field."""
        where = f"{self.file.name}:{line_of(self.file, self.place, path)}"
        field = f"{path[0]}: " if path else ""
        return Unavailable(f"{where}: {self.data.get('id', self.kind)}: {field}{problem}")


def line_of(file: SourceFile, place: Place, path: Place = ()) -> int:
    """Return the line of a row's field: its own, that of its table's or file's defaults, else the row's."""
    from envdoctor.matrix.lines import key_lines

    lines = key_lines(file.text)
    for base in (place, place[:2], (DEFAULTS,)):
        for length in range(len(path), 0, -1):
            if line := lines.get((*base, *path[:length])):
                return line
    return lines.get(place, 1)


def parse_sources(files: Mapping[str, bytes]) -> list[SourceRow]:
    """Read and check every row for itself; raises Unavailable naming file and line."""
    rows: list[SourceRow] = []
    seen: dict[str, SourceRow] = {}
    for name, content in files.items():
        for row in parse_file(name, content):
            check_row(row)
            if former := seen.get(row.data["id"]):
                raise row.problem(("id",), f"already used in {former.file.name}")
            seen[row.data["id"]] = row
            rows.append(row)
    return rows


def tables_of(rows: Iterable[SourceRow]) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Return rows as plain tables by kind, what follows from them included, and the newest day of a check."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        tables.setdefault(row.kind, []).append({**row.data, **_derived(row)})
    return tables, max((row["checked_on"] for kind in tables.values() for row in kind), default="")


def _derived(row: SourceRow) -> Mapping[str, Any]:
    """Return what a row need not state: the needles of a signature."""
    if row.kind != SymptomRow.KIND or row.data.get("needle"):
        return {}
    return {"needle": list(needles_of(row.data["pattern"], row.data.get("wrapped", False)))}


def parse_file(name: str, content: bytes) -> Iterator[SourceRow]:
    """Yield the rows of one TOML file, unchecked; raises Unavailable where it is no list of tables."""
    try:
        file = SourceFile(name, content.decode())
        data = parse_toml(file.text)
    except ValueError as error:
        raise Unavailable(f"{name}: {error}") from None
    defaults = data.pop(DEFAULTS, {})
    if not isinstance(defaults, dict) or (unknown := sorted(set(defaults) - _DEFAULTED)):
        shown = unknown[0] if isinstance(defaults, dict) else DEFAULTS
        raise Unavailable(f"{name}:{line_of(file, (DEFAULTS,), (shown,))}: {shown}: no default of a file")
    for kind, tables in data.items():
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise Unavailable(
                f"{name}:{line_of(file, (kind,))}: {kind}: expected tables written as [[{kind}]]"
            )
        for number, table in enumerate(tables):
            yield from _expanded(SourceRow(kind, {**defaults, **table}, file, (kind, number)))


def _expanded(table: SourceRow) -> Iterator[SourceRow]:
    """Yield a table, or the rows in it."""
    rows = table.data.get("rows")
    if rows is None:
        yield table
        return
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise table.problem(("rows",), "expected a list of tables")
    shared = {key: value for key, value in table.data.items() if key != "rows"}
    for number, row in enumerate(rows):
        yield SourceRow(table.kind, {**shared, **row}, table.file, (*table.place, "rows", number))


def check_row(row: SourceRow) -> Row:
    """Return the row as its type; raises Unavailable naming file and line of what is wrong."""
    from envdoctor.matrix.kinds import KINDS

    kind = KINDS.get(row.kind)
    if kind is None:
        raise row.problem((), f"no kind of row is called {row.kind!r}")
    try:
        value = decode(kind, dict(row.data), ())
    except FactsFormatError as error:
        raise row.problem(error.path, error.problem) from None
    for path, form, text in leaves(kind, row.data):
        if problem := form.check(text):
            raise row.problem(path, problem)
    if problem := value.problem():
        raise row.problem((), problem)
    return value


def leaves(kind: Any, data: Any, path: Place = ()) -> Iterator[Part]:
    """Yield every text of a row that has a form, by its path."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        yield from _formed(arguments[1], data, path)
    elif is_dataclass(kind) and isinstance(data, Mapping):
        hints = hints_of(kind)  # type: ignore[arg-type]
        for name in data:
            yield from leaves(hints[name], data[name], (*path, name))
    elif origin is tuple:
        for number, item in enumerate(data):
            yield from leaves(arguments[0], item, (*path, number))
    elif isinstance(data, Mapping) and arguments:
        for key, value in data.items():
            yield from leaves(arguments[0], key, (*path, key))
            yield from leaves(arguments[1], value, (*path, key))
    elif origin in (typing.Union, types.UnionType):
        for one in arguments:
            if (typing.get_origin(one) is tuple) == isinstance(data, list):
                yield from leaves(one, data, path)


def _formed(form: Form, data: Any, path: Place) -> Iterator[Part]:
    for below, part, text in form.parts(data) if form.parts else (((), form, data),):
        if part.parts and part is not form:
            yield from _formed(part, text, (*path, *below))
        else:
            yield (*path, *below), part, text
