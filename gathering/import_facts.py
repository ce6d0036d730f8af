"""Which releases of one library import what some releases of another no longer, or not yet, have.

    python gathering/import_facts.py

writes `matrices/releases/imports.json` from the recorded interfaces and the snapshot. A record tells what
any file of a library imports, not whether that file matters, and an interface may be read too narrowly; so
each pair is put to the test of its day: had the newest release of that day lacked the name, everybody would
have failed. A pair that any release so refutes, or none confirms, is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from envdoctor.fact_files import find_folder
from envdoctor.files import replace_file
from envdoctor.matrix.interface_records import Record, Spans, load_record, recorded_libraries
from envdoctor.matrix.snapshot import Package, Snapshot, load_snapshot

SCHEMA = "envdoctor.imports/2"


@dataclass(frozen=True, slots=True)
class _Side:
    """A library's record with the days of its releases."""

    record: Record
    package: Package

    def day(self, place: int) -> int | None:
        """Return the day of a recorded release, None where the snapshot lacks it."""
        position = self.package.position.get(self.record.versions[place])
        return None if position is None else self.package.days[position]

    def last_like(self, place: int) -> str:
        """Return the newest final release before the next recorded one."""
        known = self.record.versions
        after = Version(known[place + 1]) if place + 1 < len(known) else None
        every = ((Version(text), text) for text in self.package.versions)
        between = [(v, t) for v, t in every if not v.is_prerelease and v >= Version(known[place])]
        return max(
            (pair for pair in between if after is None or pair[0] < after), default=(None, known[place])
        )[1]

    def newest_on(self, day: int) -> int | None:
        """Return the place of the newest recorded release that was out on a day."""
        days = ((place, self.day(place)) for place in range(len(self.record.versions)))
        return max((place for place, out in days if out is not None and out <= day), default=None)


def import_facts(folder: Path, snapshot: Snapshot) -> dict[str, str]:
    """Return by importer, a line each: the provider, `first:last`…, what, `first:last`… that lack it."""
    sides = {}
    for library in recorded_libraries(folder):
        record, package = load_record(folder, library), snapshot.package(library)
        if record is not None and package is not None and package.crawled:
            sides[library] = _Side(record, package)
    roots = {side.record.root: side for side in sides.values()}
    told = {name: sorted(_asked_by(sides[name], roots), key=_by_release) for name in sorted(sides)}
    return {name: "\n".join(map("\t".join, lines)) for name, lines in told.items() if lines}


def _by_release(fact: tuple[str, ...]) -> tuple[str, ...]:
    provider, spans, *rest = fact
    return spans, provider, *rest


def _asked_by(side: _Side, roots: dict[str, _Side]) -> Iterator[tuple[str, ...]]:
    for module, names in side.record.imports.items():
        provider = roots.get(module.partition(".")[0])
        if provider is None or provider is side:
            continue
        for name, spans in names.items():
            has = _having(provider.record, module, name)
            lacking = provider.record.others(has)
            if lacking and _stands(side, spans, provider, lacking):
                what = f"{name} from {module}" if name else module
                lacking_told = _open_told(provider.record, lacking)
                yield provider.record.library, _told(side, spans), what, lacking_told


def _having(record: Record, module: str, name: str) -> Spans:
    """Return the releases that have a name or module; empty where all have it, or none that was read.

    A name may be a module of its own in releases whose package does not bind it.
    """
    if not name:
        return record.modules.get(module, ())
    own = f"{module}.{name}"
    always = [[0, len(record.versions) - 1]] if own in record.names else ()
    return [*record.names.get(module, {}).get(name, ()), *record.modules.get(own, always)]


def _stands(side: _Side, spans: Spans, provider: _Side, lacking: Spans) -> bool:
    """True when no importing release came out while the newest provider lacked the name."""
    seen = [
        any(first <= newest <= last for first, last in lacking)
        for start, end in spans
        for place in range(start, end + 1)
        if (day := side.day(place)) is not None and (newest := provider.newest_on(day)) is not None
    ]
    return bool(seen) and not any(seen)


def _told(side: _Side, spans: Spans) -> str:
    """Return spans as versions; the releases up to the next recorded one go on as the last recorded did."""
    return " ".join(f"{side.record.versions[first]}:{side.last_like(last)}" for first, last in spans)


def _open_told(record: Record, spans: Spans) -> str:
    """Return spans as versions; one that reaches an end of the record goes on beyond it."""
    known, last_place = record.versions, len(record.versions) - 1
    return " ".join(
        f"{known[first] if first else ''}:{known[last] if last < last_place else ''}" for first, last in spans
    )


def main() -> None:
    """Write the file."""
    folder = Path(find_folder())
    facts = import_facts(folder, load_snapshot(folder))
    document = {"schema": SCHEMA, "made_by": "python gathering/import_facts.py", "facts": facts}
    replace_file(folder / "releases" / "imports.json", json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
