"""Does the matrix still hold? What the index, and the files on it, say today against what is recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher
from envdoctor.harvest.extract import FAMILIES, extractor_of
from envdoctor.harvest.index_pages import ProjectPage, read_project_page
from envdoctor.harvest.index_settings import IndexSettings
from envdoctor.harvest.refresh import fetcher_for
from envdoctor.harvest.sample import Draw, read_again
from envdoctor.harvest.store import PackageStore
from envdoctor.harvest.workers import Workers
from envdoctor.matrix.load import Matrix, load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.matrix.status import crawled_packages

CHECKED_RELEASES = 3


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something recorded that the index no longer bears out; `what` is a package, a release or a row id."""

    kind: str
    what: str
    text: str


@dataclass(slots=True)
class Verifier:
    """Reads the index and compares; pages are read once and shared by all checks."""

    fetcher: Fetcher
    index: str
    progress: Callable[[str, int, int], None] = lambda what, done, total: None

    def pages(self, names: Iterable[str]) -> dict[str, ProjectPage]:
        """Return the page of each package; raises Unavailable when one cannot be read."""
        wanted = sorted(set(names))
        found: dict[str, ProjectPage] = {}
        with Workers(8) as pool:
            for page in pool.map(lambda name: read_project_page(self.fetcher, self.index, name), wanted):
                if page is not None:
                    found[page.name] = page
                    self.progress(page.name, len(found), len(wanted))
        return found

    def rederived(
        self, pages: Mapping[str, ProjectPage], tables: Callable[[str], Mapping[str, Any]], newest: int | None
    ) -> Iterator[Mismatch]:
        """Give the releases of the generated tables whose files say otherwise; `newest` limits how many."""
        for family in FAMILIES:
            recorded = tables(family).get("releases", {})
            if family in pages and recorded:
                chosen = sorted(recorded, key=Version)[-newest if newest else 0 :]
                yield from self._family(pages[family], family, {v: recorded[v] for v in chosen})

    def _family(self, page: ProjectPage, family: str, recorded: Mapping[str, Any]) -> Iterator[Mismatch]:
        extractor = extractor_of(family)
        grouped = page.releases()
        for version, facts in recorded.items():
            if extractor is None or version not in grouped:
                yield Mismatch("release", f"{family} {version}", "is no longer on the index")
                continue
            self.progress(f"{family} {version}", 0, 0)
            yield from compare_facts(
                f"{family} {version}", facts, extractor.read(self.fetcher, grouped[version])
            )


def compare_facts(what: str, recorded: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Give each recorded field that a fresh reading of the same files contradicts."""
    for key, value in found.items():
        if key in ("source", "declared"):
            continue
        if key == "reason":
            yield Mismatch("release", what, f"could not be read again: {value}")
        elif key not in recorded:
            yield Mismatch("release", what, f"{key} is not recorded, and is {value!r}")
        elif recorded[key] != value:
            yield Mismatch("release", what, f"{key} is recorded as {recorded[key]!r}, and is {value!r}")


def missing_versions(
    pages: Mapping[str, ProjectPage], known: Mapping[str, Iterable[str]]
) -> Iterator[Mismatch]:
    """Give each version that the index has and the snapshot lacks."""
    for name, versions in known.items():
        have = set(versions)
        listed = pages[name].releases() if name in pages else {}
        for version in listed:
            if version not in have:
                uploaded = min((f.uploaded for f in listed[version] if f.uploaded), default="a day unknown")
                yield Mismatch(
                    "version", f"{name} {version}", f"on the index since {uploaded[:10]}, not in the facts"
                )


def verify_matrix(
    settings: IndexSettings,
    store: str | None,
    only: Sequence[str],
    progress: Callable[[str, int, int], None],
    *,
    every_release: bool,
    draw: Draw,
) -> list[Mismatch]:
    """Return what no longer holds, of the packages `only` (default: all); raises Unavailable.

    Checked: the versions of every package of the snapshot (or of the build store), the generated tables
    (their newest releases, or with `every_release` all), that rows' source wheels are still on the index, and
    where nothing is chosen some of the releases whose interfaces and messages are recorded, as `verify_draw`.
    """
    matrix = load_matrix()
    known = {n: v for n, v in _known_versions(matrix, store).items() if not only or n in only}
    wheels = {i: w for i, w in wheels_of_rows(_tables_by_id(matrix)).items() if not only or w[0] in only}
    recorded = [family for family in FAMILIES if matrix.generated(family).get("releases")]
    families = [family for family in recorded if not only or family in only]
    with fetcher_for(settings) as fetcher:
        verifier = Verifier(fetcher, settings.url, progress)
        pages = verifier.pages([*known, *families, *(name for name, _ in wheels.values())])
        newest = None if every_release else CHECKED_RELEASES
        found = [
            *missing_versions(pages, known),
            *verifier.rederived(pages, matrix.generated, newest),
            *missing_sources(pages, wheels),
        ]
    return found if only else [*found, *verify_draw(settings, progress, draw)]


def verify_draw(
    settings: IndexSettings, progress: Callable[[str, int, int], None], draw: Draw
) -> list[Mismatch]:
    """Return the recorded releases, of those that are drawn, whose files say otherwise."""
    with fetcher_for(settings) as fetcher:
        folder = Path(load_matrix().folder)
        told = read_again(fetcher, settings.url, folder, progress, draw)
        return [Mismatch("sample", what, text) for what, text in told]


def _known_versions(matrix: Matrix, store: str | None) -> dict[str, list[str]]:
    if store:
        records = PackageStore(Path(store))
        return {name: list((records.read(name) or {"releases": ()})["releases"]) for name in records.names()}
    snapshot = load_snapshot(matrix.folder)
    return {package.name: package.versions for package in crawled_packages(snapshot)}


def _tables_by_id(matrix: Matrix) -> dict[str, Mapping[str, Any]]:
    return {identity: row for identity, (_, row) in matrix.by_id.items()}


_WHEEL_SOURCE = re.compile(r"wheel:([^\s/]+\.whl)")


def wheels_of_rows(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return the package and file name of each row, by id, whose source is a wheel; raises Unavailable."""
    found = {}
    for identity, row in rows.items():
        match = _WHEEL_SOURCE.fullmatch(str(row.get("source", "")))
        if match:
            try:
                found[identity] = str(parse_wheel_filename(match.group(1))[0]), match.group(1)
            except (InvalidWheelFilename, ValueError):
                raise Unavailable(f"row {identity}: {match.group(1)} is no name of a wheel") from None
    return found


def missing_sources(
    pages: Mapping[str, ProjectPage], wheels: Mapping[str, tuple[str, str]]
) -> Iterator[Mismatch]:
    """Give each row whose source is a wheel that the index no longer has."""
    for identity, (name, filename) in sorted(wheels.items()):
        listed = {file.filename for file in pages[name].files} if name in pages else set()
        if filename not in listed:
            yield Mismatch("row", identity, f"its source, {filename}, is not on the index")
