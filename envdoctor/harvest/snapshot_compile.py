"""Compiling the raw store of package facts (one JSON a package) into the one file that ships."""

from __future__ import annotations

import datetime
import json
import re
import sys
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import chain, groupby, takewhile
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envdoctor.fact_files import SNAPSHOT
from envdoctor.files import replace_file
from envdoctor.harvest.file_verdicts import verdict_lines
from envdoctor.harvest.marker_trees import Tree, marker_tree, named_extras, python_clauses
from envdoctor.harvest.store import PackageStore, Record
from envdoctor.matrix.snapshot import FIELDS, LIMITS, MAGIC, SDIST
from envdoctor.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from envdoctor.values import NamedTuple

EPOCH = datetime.date(1970, 1, 1)
DISABLING = frozenset({"torch", "accelerate", "bitsandbytes"})
"""Without these at their minimum a library keeps little of its use: it is as good as not installed."""

_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)*")
SHARED = ("names", "tags", "together", "sets", "pythons", "markers")
"""The tables that all packages share; `together` are tags of files that came together, `sets` all of them."""
EMPTY = dict.fromkeys(FIELDS, "")
"""What is known of a package of which only others speak."""
SOURCES = (".tar.gz", ".zip", ".tar.bz2", ".tgz", ".tar.xz")


class Table:
    """Numbers texts by first appearance, after those that it opens with."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.values = [*known]
        self._numbers = {text: number for number, text in reversed([*enumerate(self.values)])}

    def number(self, text: str) -> int:
        """Return the number of a text."""
        if text not in self._numbers:
            self._numbers[text] = len(self.values)
            self.values.append(text)
        return self._numbers[text]


class _Tables(NamedTuple):
    """What one package's releases ask for, numbered; `known` are the rows of what was read already."""

    requirements: Table
    lists: Table
    rows: Table
    known: dict[tuple[str, ...], int]


class Compiler:
    """Compiles packages that know one another; `add` all of them, then ask for `bytes`."""

    def __init__(self) -> None:
        self.tables = {name: Table() for name in SHARED}
        self.specs: dict[str, Table] = {}
        self.packages: dict[str, dict[str, str]] = {}
        self.problems: list[str] = []
        self.newest = "1970-01-01"
        """The day of the newest record."""
        self._read: dict[str, list[tuple[str, str]] | None] = {}

    def compiled(self, records: Iterable[Record]) -> Iterator[Record]:
        """Compile records, each as it is passed on."""
        for record in records:
            self.newest = max(self.newest, str(record["fetched"])[:10])
            self.add(record)
            yield record

    def add(self, raw: Mapping[str, Any]) -> None:
        """Compile one package of the store; what cannot be read is noted in `problems`."""
        name = canonicalize_name(raw["name"])
        versions = sorted(self._versions(name, raw["releases"]), key=lambda pair: pair[0])
        tables, sets = _Tables(Table(), Table(), Table(), {}), self.tables["sets"]
        day = [_first_day(release) for _, release in versions]
        rows = [self._row(name, release, tables) for _, release in versions]
        files = (self._files(release, first) for (_, release), first in zip(versions, day, strict=True))
        runs = ((number, len(list(run))) for number, run in groupby(map(sets.number, files)))
        self.packages[name] = {
            "v": ";".join(str(release["version"]) for _, release in versions),
            "d": _joined(day),
            "s": _joined(chain.from_iterable(runs)),
            "y": _joined(
                i for i, (_, release) in enumerate(versions) if all(f["yanked"] for f in release["files"])
            ),
            "p": _joined(i for i, (version, _) in enumerate(versions) if version.is_prerelease),
            "r": _joined(rows),
            "u": _joined(place for place, row in enumerate(rows) if row == -1),
            "R": ";".join(tables.rows.values),
            "E": ";".join(tables.lists.values),
            "Q": ";".join(tables.requirements.values),
        }

    def _versions(self, name: str, releases: Mapping[str, Any]) -> Iterable[tuple[Version, dict[str, Any]]]:
        for text, release in releases.items():
            try:
                yield Version(text), {**release, "version": text.strip()}
            except InvalidVersion:
                self.problems.append(f"{name} {text}: not a PEP 440 version")

    def _files(self, release: Mapping[str, Any], first: int) -> str:
        usable = [f for f in release["files"] if not f["yanked"]] or release["files"]
        groups: dict[tuple[int, int], set[int]] = {}
        for file in usable:
            tag = self._tag(file["filename"])
            if tag is None:
                continue
            late = max(0, _day(file["uploaded"]) - first) if file.get("uploaded") else 0
            groups.setdefault((late, self._python(file.get("requires_python"))), set()).add(tag)
        return " ".join(
            f"{python}:{self.tables['together'].number(_joined(sorted(tags)))}{f':{late}' if late else ''}"
            for (late, python), tags in sorted(groups.items())
        )

    def _tag(self, filename: str) -> int | None:
        if filename.endswith(".whl"):
            return self.tables["tags"].number("-".join(filename[:-4].split("-")[-3:]).lower())
        return SDIST if filename.endswith(SOURCES) else None

    def _python(self, text: str | None) -> int:
        if not text:
            return -1
        clauses = python_clauses(text)
        return -1 if clauses is None else self.tables["pythons"].number(_dumped([text, clauses]))

    def _row(self, name: str, release: Mapping[str, Any], tables: _Tables) -> int:
        if release.get("requires") is None:
            return -1
        asked = (*release["requires"], LIMITS, *own_minimums(release))
        if asked not in tables.known:
            row = self._read_row(name, release, tables)
            if row is None:
                return -1
            tables.known[asked] = row
        return tables.known[asked]

    def _read_row(self, name: str, release: Mapping[str, Any], tables: _Tables) -> int | None:
        requirements, lists = tables.requirements, tables.lists
        wanted: dict[str, dict[int, None]] = {"": {}}
        for text in release["requires"]:
            if text not in self._read:
                self._read[text] = self._shares(text)
            shares = self._read[text]
            if shares is None:
                self.problems.append(f"{name} {release['version']}: requirement {text[:80]!r} cannot be read")
                return None
            for extra, value in shares:
                wanted.setdefault(extra, {})[requirements.number(value)] = None
        base = wanted.pop("")
        for text in own_minimums(release):
            number = requirements.number(self._requirement(Requirement(text), True))
            wanted.setdefault(LIMITS, {})[number] = None
        always = lists.number(_joined(base))
        extras = {
            extra: lists.number(_joined(number for number in numbers if number not in base))
            for extra, numbers in sorted(wanted.items())
        }
        numbers = {"": always, **extras}
        return tables.rows.number(" ".join(f"{extra}={number}" for extra, number in numbers.items()))

    def _shares(self, text: str) -> list[tuple[str, str]] | None:
        """Return for which extras ("" for always) a Requires-Dist asks for what."""
        requirement = parse_requirement(text)
        if requirement is None:
            return None
        if requirement.marker is None:
            return [("", self._requirement(requirement, True))]
        marker = str(requirement.marker)
        trees = {extra: marker_tree(marker, extra) for extra in ("", *sorted(named_extras(marker)))}
        return [(e, self._requirement(requirement, tree)) for e, tree in trees.items() if tree is not False]

    def _requirement(self, requirement: Requirement, tree: Tree) -> str:
        name = canonicalize_name(requirement.name)
        spec = ",".join(sorted(str(requirement.specifier).split(","))) if requirement.specifier else ""
        marker = -1 if tree is True else self.tables["markers"].number(_dumped(tree))
        extras = sorted(canonicalize_name(extra) for extra in requirement.extras)
        numbers = self.tables["names"].number(name), self.specs_of(name).number(spec), marker
        return _joined((*numbers, *extras))

    def specs_of(self, name: str) -> Table:
        """Return the numbered specifiers of a package."""
        return self.specs.setdefault(name, Table())

    def bytes(self, date: str) -> bytes:
        """Return the snapshot file's bytes; the same packages and date give the same bytes."""
        for name in set(self.specs) - set(self.packages):
            self.packages[name] = {**EMPTY}
        for name, package in self.packages.items():
            package["S"] = ";".join(spec_ranges(self.specs.get(name, Table()).values, package["v"]))
        return joined(self, {name: packed(package) for name, package in self.packages.items()}, date)


def _joined(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def packed(package: Mapping[str, str]) -> bytes:
    """Return one package as the file holds it: unpacked, as an answer reads hundreds."""
    return "\n".join(package[name] for name in FIELDS).encode()


def joined(compiler: Compiler, blobs: Mapping[str, bytes], date: str) -> bytes:
    """Return the file of packed packages, with the tables that they refer to."""
    names = sorted(blobs)
    told = {name: table.values for name, table in compiler.tables.items()}
    told |= {"packages": names, "lengths": [str(len(blobs[name])) for name in names]}
    told["verdicts"] = verdict_lines(told)
    tables = {name: zlib.compress("\n".join(told[name]).encode(), 9) for name in sorted(told)}
    first = _dumped([date, {name: len(table) for name, table in tables.items()}])
    return b"".join((MAGIC, first.encode(), b"\n", *tables.values(), *(blobs[name] for name in names)))


def spec_ranges(specs: Iterable[str], versions: str) -> list[str]:
    """Return each specifier after the edges of the runs of versions (as facts hold them) that it admits."""
    parsed = [Version(version) for version in filter(None, versions.split(";"))]
    masks: dict[str, frozenset[int]] = {}
    return [f"{_joined(_edges(spec, parsed, masks))} {spec}" for spec in specs]


def _edges(spec: str, versions: list[Version], known: dict[str, frozenset[int]]) -> list[int]:
    admitted = set(range(len(versions)))
    for clause in filter(None, spec.split(",")):
        if clause not in known:
            known[clause] = _admitted(Specifier(clause), versions)
        admitted &= known[clause]
    return [place for place in range(len(versions) + 1) if (place in admitted) != (place - 1 in admitted)]


def _admitted(clause: Specifier, versions: list[Version]) -> frozenset[int]:
    """Return the places of the sorted versions that a clause admits: of one with a plain bound, a run."""
    contains = partial(clause.contains, prereleases=True)
    operator = clause.operator if _PLAIN.fullmatch(clause.version) else ""
    if operator in (">=", ">"):
        return frozenset(range(bisect_left(versions, True, key=contains), len(versions)))
    if operator in ("<=", "<"):
        return frozenset(range(bisect_left(versions, True, key=lambda version: not contains(version))))
    if operator == "==":
        first = bisect_left(versions, Version(clause.version))
        alike = takewhile(lambda place: contains(versions[place]), range(first, len(versions)))
        return frozenset(alike)
    return frozenset(i for i, version in enumerate(versions) if contains(version))


def parse_requirement(text: str) -> Requirement | None:
    """Read a Requires-Dist value, forgiving `>=1.0.*`; None when it is no requirement."""
    for attempt in (text, text.replace(".*", "") if ">" in text or "<" in text else text):
        try:
            requirement = Requirement(attempt.strip())
            SpecifierSet(str(requirement.specifier))
        except (InvalidRequirement, InvalidSpecifier):
            continue
        return requirement
    return None


def own_minimums(release: Mapping[str, Any]) -> list[str]:
    """Return what a release's own run-time checks demand of others when those are installed.

    Checks that only switch an optional feature off bind nobody but for those in `DISABLING`.
    """
    deep = release.get("deep") or {}
    kinds = deep.get("kind") or {}
    return [
        f"{name}{spec}"
        for name, spec in sorted((deep.get("requires") or {}).items())
        if name != "python" and spec and (kinds.get(name) != "disabled" or name in DISABLING)
    ]


def _first_day(release: Mapping[str, Any]) -> int:
    return min((_day(f["uploaded"]) for f in release["files"] if f.get("uploaded")), default=0)


def _day(stamp: str) -> int:
    return _day_of(stamp[:10])


@lru_cache(65536)
def _day_of(date: str) -> int:
    return (datetime.date.fromisoformat(date) - EPOCH).days


def _dumped(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def compile_store(store: Path) -> tuple[bytes, list[str]]:
    """Return the snapshot of a folder of package JSONs, and what in it could not be read."""
    compiler = Compiler()
    for _ in compiler.compiled(PackageStore(store).records()):
        pass
    return compiler.bytes(compiler.newest), compiler.problems


def main() -> None:
    """`python -m envdoctor.harvest.snapshot_compile STORE FOLDER`: write FOLDER/snapshot.bin."""
    store, folder = Path(sys.argv[1]), Path(sys.argv[2])
    data, problems = compile_store(store)
    replace_file(folder / SNAPSHOT, data)
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))


if __name__ == "__main__":
    main()
