"""Finding and reading the matrix: TOML for people, the same rows compiled for speed."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from envdoctor.fact_files import (
    Bytes,
    Folder,
    find_folder,
    map_file,
    read_file,
    read_files,
    sizes_of,
    user_releases_folder,
)
from envdoctor.facts.codec import trusting
from envdoctor.matrix import tables
from envdoctor.matrix.card_names import CardNames
from envdoctor.matrix.lexicon import Frameworks, Lexicon, PackageNames
from envdoctor.matrix.tables.row import Row
from envdoctor.patterns import glob_matches
from envdoctor.values import NamedTuple, cached_property

COMPILED = "rows.jsonl"
Plain = list[dict[str, Any]]
R = TypeVar("R", bound=Row)


CONDITIONS, HEADS = "row", "heads"
"""The kind of the rows that have heads, and how the compiled rows call the line of these."""


class Head(NamedTuple):
    """A row's id, and the symptoms (or globs) without one of which it is silent; None: it needs none.

    `binds`: who chooses versions must heed it.
    """

    id: str
    needs: Sequence[str] | None
    binds: bool

    @property
    def stands(self) -> bool:
        """True for a row that binds by facts alone, whatever symptoms were seen."""
        return self.needs is None and self.binds


def heads_of(rows: Sequence[dict[str, Any]]) -> Iterator[Head]:
    """Yield the heads of condition rows that are given as plain tables."""
    make: Any = trusting(tables.ConditionRow)
    for row in map(make, rows):
        binds = bool(row.needed) or (row.solve and row.severity == "error")
        yield Head(row.id, row.symptoms if row.needs_symptom else None, binds)


class Tables(Mapping[str, Plain]):
    """Rows as plain tables by kind, each kind read from its line of JSON when first asked.

    Condition rows have a line each, and heads: most of them have nothing to say of most machines.
    """

    def __init__(
        self,
        data: Bytes,
        start: int,
        kinds: Mapping[str, int],
        conditions: Sequence[int],
        standing: Sequence[int],
    ) -> None:
        """Take the lines from `start` on, of these lengths: the heads, each kind's, each condition's.

        `standing`: the places of the conditions that bind by facts alone.
        """
        places = [*pairwise(accumulate((*kinds.values(), *conditions), initial=start))]
        if places[-1][1] != len(data):
            raise ValueError("the lines are not those of the head")
        self._data, self._lines, self._conditions = (
            data,
            dict(zip(kinds, places, strict=False)),
            places[len(kinds) :],
        )
        self._standing = standing
        self._read: dict[str, Any] = {}

    def __getitem__(self, kind: str) -> Plain:
        if kind not in self._read:
            places = self._conditions if kind == CONDITIONS else [self._lines[kind]]
            rows = self._told(places)
            self._read[kind] = rows if kind == CONDITIONS else rows[0]
        return self._read[kind]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter((*(kind for kind in self._lines if kind != HEADS), CONDITIONS))

    def __len__(self) -> int:
        return len(self._lines)

    @cached_property
    def heads(self) -> list[Head]:
        """The heads of the condition rows, in the same order."""
        (told,) = self._told([self._lines[HEADS]])
        return [*map(Head._make, told)]

    @property
    def standing(self) -> Plain:
        """The condition rows that bind by facts alone."""
        return self._told([self._conditions[place] for place in self._standing])

    def conditions(self, named: Collection[str]) -> Plain:
        """Return the condition rows of these ids."""
        told = zip(self.heads, self._conditions, strict=True)
        return self._told([place for head, place in told if head.id in named])

    def _told(self, places: Iterable[tuple[int, int]]) -> list[Any]:
        lines = b",".join(self._data[start:end] for start, end in places)
        rows: list[Any] = json.loads(b"[%s]" % lines)
        return rows


class Matrix:
    """All rows, typed (`rows`) and as plain tables (`tables`); `folder` is where the generated facts lie."""

    def __init__(self, tables: Mapping[str, Plain], version: str, date: str, folder: Folder) -> None:
        self.tables, self.version, self.date, self.folder = tables, version, date, os.fspath(folder)
        self._rows: dict[type[Row], tuple[Any, ...]] = {}
        self._told: dict[str, Any] = {}

    def rows(self, kind: type[R]) -> tuple[R, ...]:
        """Return the rows of that kind, in file order; empty when there are none."""
        found = self._rows.get(kind)
        if found is None:
            make: Any = trusting(kind)  # type: ignore[arg-type]
            found = self._rows[kind] = tuple(make(table) for table in self.tables.get(kind.KIND, ()))
        return found

    def row(self, kind: type[R], identity: str) -> R | None:
        """Return the row of that kind and id, or None."""
        if kind.KIND == CONDITIONS:
            told: Any = self.conditions_of({identity}).get(identity)
            return told  # type: ignore[no-any-return]
        return next((row for row in self.rows(kind) if row.id == identity), None)

    @property
    def conditions(self) -> tuple[tables.ConditionRow, ...]:
        """The rows that decide something by themselves."""
        return self.rows(tables.ConditionRow)

    @cached_property
    def heads(self) -> Sequence[Head]:
        """The heads of these rows, in the same order."""
        return (
            self.tables.heads
            if isinstance(self.tables, Tables)
            else [*heads_of(self.tables.get(CONDITIONS, ()))]
        )

    @cached_property
    def _needing(self) -> Mapping[str, Sequence[str]]:
        """The ids of these rows by the symptoms (or globs) that they need."""
        by_need: dict[str, list[str]] = {}
        for head in self.heads:
            for need in head.needs or ():
                by_need.setdefault(need, []).append(head.id)
        return by_need

    def speaking(self, symptoms: Set[str]) -> set[str]:
        """Return the ids of the rows that need no symptom, or one of these."""
        able = {head.id for head in self.heads if head.needs is None}
        for need, ids in self._needing.items() if symptoms else ():
            if need in symptoms or ("*" in need and any(glob_matches(one, need) for one in symptoms)):
                able.update(ids)
        return able

    def conditions_of(self, named: Set[str]) -> Mapping[str, tables.ConditionRow]:
        """Return the condition rows of these ids; others may stay unread."""
        if tables.ConditionRow in self._rows or not isinstance(self.tables, Tables):
            return {row.id: row for row in self.conditions if row.id in named}
        if missing := named - self._told.keys():
            make: Any = trusting(tables.ConditionRow)
            self._told.update((row.id, row) for row in map(make, self.tables.conditions(missing)))
        return self._told

    @cached_property
    def standing(self) -> tuple[tables.ConditionRow, ...]:
        """The rows that bind who chooses versions by facts alone, whatever symptoms were seen."""
        if tables.ConditionRow in self._rows or not isinstance(self.tables, Tables):
            return tuple(row for row, head in zip(self.conditions, self.heads, strict=True) if head.stands)
        make: Any = trusting(tables.ConditionRow)
        rows: tuple[tables.ConditionRow, ...] = tuple(map(make, self.tables.standing))
        self._told.update((row.id, row) for row in rows)
        return rows

    @cached_property
    def cards(self) -> CardNames:
        """The names of the GPUs."""
        return CardNames(lambda: self.rows(tables.GpuRow))

    @cached_property
    def package_names(self) -> PackageNames:
        """The names of the packages that running text may tell of."""
        return PackageNames(self.rows(tables.PackageNameRow))

    @cached_property
    def frameworks(self) -> Frameworks:
        """What trains and serves."""
        return Frameworks(lambda: self.rows(tables.FrameworkRow))

    @property
    def lexicon(self) -> Lexicon:
        """What texts are searched for."""
        return Lexicon(
            self.rows(tables.SymptomRow),
            self.rows(tables.KeyRow),
            self.cards,
            self.package_names,
            self.frameworks,
            lambda: self.rows(tables.TellingRow),
        )

    @cached_property
    def by_id(self) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
        """Every row's kind and plain table by its id."""
        return {row["id"]: (kind, row) for kind, rows in self.tables.items() for row in rows}

    def generated(self, name: str) -> Mapping[str, Any]:
        """Return the generated facts of that name, the user's where they are newer; empty without any."""
        shipped = _read_generated(os.path.join(self.folder, "releases", f"{name}.json"))
        updated = _read_generated(os.path.join(user_releases_folder(), f"{name}.json"))
        return updated if updated.get("generated", "") > shipped.get("generated", "") else shipped


@cache
def _read_generated(path: str) -> Mapping[str, Any]:
    try:
        data = json.loads(read_file(path))
    except (OSError, ValueError):  # also for a name that no file can have
        return {}
    return data if isinstance(data, dict) else {}


@cache
def load_matrix(folder: Folder | None = None) -> Matrix:
    """Return the matrix; raises Unavailable naming file and line of what is malformed."""
    folder = folder or find_folder()
    return read_compiled(folder) or _read_sources(folder)


def read_compiled(folder: Folder) -> Matrix | None:
    """Return the matrix of the compiled rows; None when they are missing or of other files."""
    path = os.path.join(folder, "releases", COMPILED)
    try:
        data = map_file(path)
        start = data.find(b"\n") + 1
        told = json.loads(data[:start])
        if not _is_of(told, folder, os.stat(path).st_mtime_ns):
            return None
        tables = Tables(data, start, told["kinds"], told["conditions"], told["standing"])
        return Matrix(tables, f"{told['date']}+{told['digest']}", told["date"], folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_of(head: Mapping[str, Any], folder: Folder, written: int) -> bool:
    """True when rows are of a folder's files: all older and of the same sizes, or of the same checksum."""
    sizes, last = sizes_of(folder)
    untouched = last < written and sizes == head.get("sizes")
    return untouched or digest_of(read_files(folder)) == head["digest"]


def _read_sources(folder: Folder) -> Matrix:
    from envdoctor.matrix.sources import parse_sources, tables_of

    files = read_files(folder)
    tables, date = tables_of(parse_sources(files))
    return Matrix(tables, f"{date}+{digest_of(files)}", date, folder)


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return a checksum of names and contents; it tells that a file was changed, not by whom."""
    checksum = 0
    for name, content in files.items():
        checksum = zlib.crc32(f"{name}\0{len(content)}\0".encode() + content, checksum)
    return f"{checksum:08x}"
