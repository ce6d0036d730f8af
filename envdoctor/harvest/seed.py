"""A package's record as a snapshot tells it, so that a first update reads only what is newer."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from envdoctor.harvest.store import SCHEMA, PackageStore, Record
from envdoctor.matrix.snapshot import LIMITS

if TYPE_CHECKING:
    from envdoctor.matrix.snapshot import File, Package, Requirement, Snapshot

SOURCE = "snapshot"
_FIRST_DAY = datetime.date(1970, 1, 1)


def seed_store(store: PackageStore, snapshot: Snapshot, names: Iterable[str]) -> None:
    """Give packages of the snapshot a record, and older records the releases they lack.

    Raises Unavailable when the store cannot be written or another update holds it.
    """
    with store.locked():
        for name in names:
            former = store.read(name)
            record = seeded(snapshot, name, former)
            if record is not None and record is not former:
                store.write(name, record)


def seeded(snapshot: Snapshot, name: str, former: Record | None) -> Record | None:
    """Return what is known of a package: its record, with what a newer snapshot tells beyond it."""
    package = snapshot.package(name)
    older = former is None or str(former["fetched"]) < snapshot.date
    if not older or package is None or not package.crawled:
        return former
    return _merged(package_record(snapshot, package), former)


def _merged(seed: Record, former: Record | None) -> Record:
    if former is None:
        return seed
    return {**former, "etag": None, "releases": {**seed["releases"], **former["releases"]}}


def package_record(snapshot: Snapshot, package: Package) -> Record:
    """Return the record of one package; its file names carry the tags, and hashes and sizes are unknown.

    What the snapshot does not know a release to require was looked for when it was made, and is not again.
    """
    files = _files(snapshot, package)
    rows = [*map(package.row_of, range(len(package.versions)))]
    known = {row: _requirements(snapshot, package, row) for row in set(rows) if row >= 0}
    releases = {}
    for place, version in enumerate(package.versions):
        row = rows[place]
        told = known[row] if row >= 0 else {"requires": None}
        releases[version] = {"files": files[place], **told, "requires_source": SOURCE}
    return {
        "schema": SCHEMA,
        "name": package.name,
        "fetched": snapshot.date,
        "etag": None,
        "releases": releases,
    }


def _files(snapshot: Snapshot, package: Package) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for mask, kinds in package.file_groups():
        files = list(kinds)
        for place in range(len(package.versions)):
            if mask >> place & 1:
                found[place] = [_file(snapshot, package, place, file) for file in files]
    return found


def _file(snapshot: Snapshot, package: Package, place: int, file: File) -> Record:
    stem = f"{package.name.replace('-', '_')}-{package.versions[place]}"
    day = _FIRST_DAY + datetime.timedelta(days=package.days[place] + file.late)
    return {
        "filename": f"{stem}-{snapshot.tags[file.tag]}.whl" if file.tag >= 0 else f"{stem}.tar.gz",
        "requires_python": snapshot.python(file.python)[0] if file.python >= 0 else None,
        "yanked": bool(package.yanked >> place & 1),
        "uploaded": f"{day.isoformat()}T00:00:00Z",
        "size": None,
        "sha256": None,
    }


def _requirements(snapshot: Snapshot, package: Package, row: int) -> Record:
    found: Record = {"requires": list(_lines(snapshot, package, row))}
    limits = {need.name: _specifier(snapshot, need) for need in package.requirements(row, LIMITS)}
    return {**found, "deep": {"requires": limits, "source": SOURCE}} if limits else found


def _specifier(snapshot: Snapshot, needed: Requirement) -> str:
    target = snapshot.package(needed.name)
    return target.spec_text(needed.spec) if target else ""


def _lines(snapshot: Snapshot, package: Package, row: int) -> Iterator[str]:
    for extra in ("", *sorted(package.extras(row))):
        for needed in package.requirements(row, extra):
            extras = f"[{','.join(needed.extras)}]" if needed.extras else ""
            marker = _condition(snapshot.marker(needed.marker) if needed.marker >= 0 else None, extra)
            yield f"{needed.name}{extras}{_specifier(snapshot, needed)}{marker}"


def _condition(tree: Any, extra: str) -> str:
    parts = [] if tree is None else [marker_text(tree)]
    if extra:
        parts = [f"({part})" for part in parts] + [f'extra == "{extra}"']
    return f"; {' and '.join(parts)}" if parts else ""


def marker_text(tree: Any) -> str:
    """Return a marker tree as the marker that it was made from."""
    if tree[0] in ("and", "or"):
        parts = [
            f"({marker_text(part)})" if part[0] in ("and", "or") else marker_text(part) for part in tree[1:]
        ]
        return f" {tree[0]} ".join(parts)
    left, operator, right = tree
    return f"{_side(left)} {operator} {_side(right)}"


def _side(side: str) -> str:
    return side[1:] if side.startswith("$") else f'"{side}"'
