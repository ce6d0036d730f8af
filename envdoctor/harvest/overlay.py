"""A snapshot with further packages in it: the same numbers for what it knows, new ones after them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from envdoctor.harvest.seed import package_record
from envdoctor.harvest.snapshot_compile import EMPTY, SHARED, Compiler, Table, joined, packed, spec_ranges
from envdoctor.harvest.store import Record
from envdoctor.matrix.snapshot import Package, Snapshot


def extended(snapshot: Snapshot, records: Iterable[Record]) -> Snapshot:
    """Return the snapshot with the packages of `records`; what in them cannot be read counts as unread."""
    compiler = _Extension(snapshot)
    for record in records:
        compiler.add(record)
    tables = {**snapshot.tables, **{name: table.values for name, table in compiler.tables.items()}}
    loaded: dict[str, Package | None] = {
        name: Package(name, raw, tables) for name, raw in compiler.raw_packages().items()
    }
    return replace(snapshot, tables=tables, _loaded={**snapshot._loaded, **loaded})


def completed(snapshot: Snapshot, record: Record) -> Record:
    """Return a record with what the snapshot knows of releases that the record has not read."""
    package = snapshot.package(record["name"])
    if package is None or not package.crawled:
        return record
    known = package_record(snapshot, package)["releases"]
    releases = {
        version: known[version] if release["requires"] is None and version in known else release
        for version, release in record["releases"].items()
    }
    return {**record, "releases": releases}


def extended_bytes(snapshot: Snapshot, records: Iterable[Record]) -> bytes:
    """Return the snapshot's bytes with the packages of `records` in it or renewed; the rest stays packed.

    It keeps its date, since most of it is of that day.
    """
    compiler = _Extension(snapshot)
    for record in records:
        compiler.add(record)
    new = {name: packed(raw) for name, raw in compiler.raw_packages().items()}
    kept = {name: snapshot.body[slice(*place)] for name, place in snapshot.places.items() if name not in new}
    return joined(compiler, {**kept, **new}, snapshot.date)


class _Extension(Compiler):
    """A compiler whose tables begin with those of a snapshot."""

    def __init__(self, base: Snapshot) -> None:
        super().__init__()
        self.base = base
        self.tables = {name: Table(base.tables[name]) for name in SHARED}

    def specs_of(self, name: str) -> Table:
        """Return the specifiers of a package: first those that the snapshot numbers."""
        if name not in self.specs:
            package = self.base.package(name)
            known = package.specs if package else ()
            self.specs[name] = Table(text.partition(" ")[2] for text in known)
        return self.specs[name]

    def raw_packages(self) -> dict[str, dict[str, str]]:
        """Return the new packages, and the known ones of which new specifiers speak."""
        found = dict(self.packages)
        for name in self.specs.keys() | self.packages.keys():
            package = self.base.package(name)
            raw = found.get(name) or (package.raw if package else EMPTY)
            found[name] = {**raw, "S": self._ranges(name, raw)}
        return found

    def _ranges(self, name: str, raw: dict[str, str]) -> str:
        texts, package = self.specs_of(name).values, self.base.package(name)
        known = package.specs if package is not None and name not in self.packages else []
        return ";".join([*known, *spec_ranges(texts[len(known) :], raw["v"])])
