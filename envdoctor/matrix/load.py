"""Finding and reading the matrix: TOML for people, one compiled JSON of the same rows for speed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from envdoctor.errors import Unavailable
from envdoctor.matrix.rows import ConditionRow, RowError, check_provenance, parse_condition_row

COMPILED = "rows.json"
UNSOURCED_KINDS = frozenset({"meta"})


@dataclass(frozen=True)
class Matrix:
    """All rows, by kind (`row`, `gpu`, `symptom`, …); kinds other than `row` are plain tables.

    `folder` is where the generated release facts lie.
    """

    tables: Mapping[str, tuple[Mapping[str, Any], ...]]
    version: str
    date: str
    folder: Path

    def rows(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Return the tables of that kind, in file order; empty when there are none."""
        return self.tables.get(kind, ())

    @cached_property
    def conditions(self) -> tuple[ConditionRow, ...]:
        """The rows that decide something by themselves."""
        return tuple(parse_condition_row(row, "matrices") for row in self.rows("row"))

    @cached_property
    def by_id(self) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
        """Every row's kind and table by its id."""
        return {row["id"]: (kind, row) for kind, rows in self.tables.items() for row in rows if "id" in row}

    def generated(self, name: str) -> Mapping[str, Any]:
        """Return the generated facts of that name, the user's where they are newer; empty without any."""
        from envdoctor.matrix.user_data import user_releases_folder

        shipped = _read_generated(self.folder / "releases" / f"{name}.json")
        updated = _read_generated(user_releases_folder() / f"{name}.json")
        return updated if updated.get("generated", "") > shipped.get("generated", "") else shipped


@cache
def _read_generated(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):  # also for a name that no file can have
        return {}
    return data if isinstance(data, dict) else {}


def find_folder() -> Path:
    """Return the folder of the matrix: $ENVDOCTOR_MATRICES, the wheel's copy, or the checkout's.

    Raises Unavailable when there is none.
    """
    if override := os.environ.get("ENVDOCTOR_MATRICES"):
        return Path(override)
    package = Path(__file__).parent.parent
    for folder in (package / "matrices", package.parent / "matrices"):
        if folder.is_dir():
            return folder
    raise Unavailable("the compatibility matrix is missing from this installation")


@cache
def load_matrix(folder: Path | None = None) -> Matrix:
    """Return the matrix; raises Unavailable naming the file and row that is malformed."""
    folder = folder or find_folder()
    sources = read_sources(folder)
    digest = digest_of(sources)
    try:
        compiled = json.loads((folder / "releases" / COMPILED).read_bytes())
        tables = compiled["tables"] if compiled["digest"] == digest else None
    except (OSError, ValueError, KeyError, TypeError):
        tables = None
    if tables is None:
        tables = parse_sources(sources)
    date = max(
        (str(row["checked_on"]) for rows in tables.values() for row in rows if "checked_on" in row),
        default="",
    )
    return Matrix({k: tuple(v) for k, v in tables.items()}, f"{date}+{digest[:8]}", date, folder)


def read_sources(folder: Path) -> dict[str, bytes]:
    """Return the TOML files of a matrix folder by name; raises Unavailable."""
    try:
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.toml"))}
    except OSError as error:
        raise Unavailable(f"{folder}: the matrix cannot be read: {error.strerror}") from None


def digest_of(sources: Mapping[str, bytes]) -> str:
    """Return a digest of names and contents."""
    digest = hashlib.sha256()
    for name, content in sources.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def parse_sources(sources: Mapping[str, bytes]) -> dict[str, list[dict[str, Any]]]:
    """Read and check every row; raises Unavailable naming file and row."""
    tables: dict[str, list[dict[str, Any]]] = {}
    seen: dict[str, str] = {}
    for name, content in sources.items():
        for kind, rows in _parse_toml(name, content).items():
            for row in rows:
                _check_row(kind, row, name, seen)
                tables.setdefault(kind, []).append(row)
    return tables


def _parse_toml(name: str, content: bytes) -> dict[str, list[dict[str, Any]]]:
    try:
        import tomllib
    except ModuleNotFoundError:
        import tomli as tomllib  # type: ignore[no-redef]
    try:
        data = tomllib.loads(content.decode())
    except ValueError as error:
        raise Unavailable(f"{name}: {error}") from None
    for kind, rows in data.items():
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise Unavailable(f"{name}: {kind}: expected tables written as [[{kind}]]")
    return data


def _check_row(kind: str, row: dict[str, Any], name: str, seen: dict[str, str]) -> None:
    if kind in UNSOURCED_KINDS:
        return
    try:
        check_provenance(row, name)
        if kind == "row":
            parse_condition_row(row, name)
    except RowError as error:
        raise Unavailable(str(error)) from None
    if row["id"] in seen:
        raise Unavailable(f"{name}: row id {row['id']} is already used in {seen[row['id']]}")
    seen[row["id"]] = name
