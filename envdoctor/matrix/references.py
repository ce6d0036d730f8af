"""What rows name: packages, symptoms, settings, captures and capabilities that are known to exist."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from envdoctor.errors import Unavailable
from envdoctor.fact_files import SNAPSHOT
from envdoctor.facts import APART
from envdoctor.matrix.kinds import KINDS
from envdoctor.matrix.snapshot import parse_snapshot
from envdoctor.matrix.sources import SourceRow, leaves

Known = Mapping[str, Collection[str]]


def known_names(rows: Iterable[SourceRow], folder: Path) -> Known:
    """Return what may be named, by what names it; raises Unavailable without the package facts."""
    by_kind: dict[str, list[SourceRow]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    patterns = [row.data["pattern"] for row in by_kind.get("symptom", ())]
    return {
        "package": {*_shipped_packages(folder), *_told(by_kind, "package", "name")},
        "symptom": set(_told(by_kind, "symptom", "id")),
        "setting": set(_told(by_kind, "setting", "name")),
        "capture": {*APART, *(group for pattern in patterns for group in re.compile(pattern).groupindex)},
        "capability": {c for found in _told(by_kind, "architecture", "capabilities") for c in found},
        "key": {*_framework_keys(folder), *_native_keys(by_kind)},
    }


def _shipped_packages(folder: Path) -> Iterable[str]:
    """The packages of the facts beside the rows, whatever newer facts a user has."""
    path = folder / "releases" / SNAPSHOT
    try:
        return parse_snapshot(path.read_bytes(), str(path)).names()
    except OSError as error:
        raise Unavailable(f"{path}: the package facts cannot be read: {error.strerror}") from None


def _told(by_kind: Mapping[str, list[SourceRow]], kind: str, field: str) -> Iterable[Any]:
    return (row.data[field] for row in by_kind.get(kind, ()))


def _framework_keys(folder: Path) -> Iterator[str]:
    """Every key that a release of a framework has, and as accelerate's section for FSDP spells it."""
    for path in (folder / "releases" / "fields").glob("*.json"):
        for key in json.loads(path.read_bytes())["fields"]:
            yield from (key, f"fsdp_{key}")


def _native_keys(by_kind: Mapping[str, list[SourceRow]]) -> Iterator[str]:
    for key in (*_told(by_kind, "key", "native"), *_told(by_kind, "setting", "name")):
        yield from key.split(".")


def check_references(rows: Iterable[SourceRow], known: Known) -> None:
    """Raise Unavailable, naming file and line, where a row names what nobody knows."""
    for row in rows:
        for path, form, text in leaves(KINDS[row.kind], row.data):
            if form.refers and not is_known(form.refers, text, known):
                raise row.problem(path, f"{text!r} is no {form.refers} that is known")


def is_known(refers: str, text: str, known: Known) -> bool:
    """True when a text, or one of its globs, names something of that kind."""
    if refers == "setting" and text.startswith("other."):
        parts = [part for part in text.split(".")[1:] if part != "*"]
        return all(is_known("key", part, known) for part in parts)
    names = known[refers]
    return text in names or ("*" in text and any(fnmatch.fnmatchcase(name, text) for name in names))
