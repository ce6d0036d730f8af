"""Packages that the snapshot does not cover, read from the index while someone waits.

Only what a solve can use is read: the page, and the requirements of the newest releases that were asked for
and that were out on the day of the question.
Records are kept, renewed by their ETag once a day, and serve alone where there is no network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import date
from time import monotonic

from packaging.requirements import Requirement
from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher, NotFound
from envdoctor.harvest.closure import followed
from envdoctor.harvest.index_pages import ProjectPage, checked_name, read_project_page
from envdoctor.harvest.metadata import Routes, read_requirements
from envdoctor.harvest.store import PackageStore, Record
from envdoctor.harvest.update import page_record, release_record, settled
from envdoctor.harvest.workers import Workers
from envdoctor.specifiers import SpecifierSet

NEWEST = 6
"""So many of the newest releases that the request admits are read of each package."""
MOST_SPECIFIERS = 8
ALWAYS = "9999-12-31"
ROUNDS, MOST = 4, 150
"""How far requirements are followed, and to how many packages in all."""
PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Found:
    """What a look-up brought: records by name, and why the others were not had."""

    records: Mapping[str, Record]
    problems: Mapping[str, str]


@dataclass(slots=True)
class Lookup:
    """Looks packages up. `open_fetcher` None: no network may be used, only what was kept serves.

    `covered` tells what need not be followed.
    """

    open_fetcher: Callable[[], Fetcher] | None
    index: str
    store: PackageStore
    covered: Callable[[str], bool]
    cutoff: str = ALWAYS
    """The last day (as `2026-01-31`) on which a release that is read may have come out."""
    today: str = field(default_factory=lambda: date.today().isoformat())
    _records: dict[str, Record] = field(default_factory=dict)
    _problems: dict[str, str] = field(default_factory=dict)

    def find(self, wanted: Mapping[str, Collection[str]], further: int = 1) -> Found:
        """Return the records of `wanted` (specifiers by name) and of what they require, where not covered.

        `further` times as many releases as else are read of each.
        """
        if self.open_fetcher is None:
            return self._find(wanted, None, further)
        with self.open_fetcher() as fetcher:
            return self._find(wanted, fetcher, further)

    def _find(self, wanted: Mapping[str, Collection[str]], fetcher: Fetcher | None, further: int) -> Found:
        started = monotonic()
        todo: Mapping[str, Collection[str]] = {
            name: specs for name, specs in wanted.items() if not self._settled(name)
        }
        routes = Routes(self.index)
        with Workers(8) as packages, Workers(16) as releases:
            job = _Job(self, fetcher, routes, releases, NEWEST * further)
            for _ in range(ROUNDS):
                room = MOST - len(self._records)
                late = monotonic() - started > PATIENCE_S
                if not todo or room <= 0 or late:
                    break
                read = list(packages.map(job.read, list(todo)[:room], list(todo.values())[:room]))
                self._keep(read)
                todo = self._required(r for r in read if isinstance(r, dict))
                job = replace(job, count=NEWEST)
        return Found(dict(self._records), dict(self._problems))

    def _settled(self, name: str) -> bool:
        return name in self._records or name in self._problems

    def _keep(self, read: Iterable[Record | tuple[str, str]]) -> None:
        for one in read:
            if isinstance(one, dict):
                self._records[one["name"]] = one
            else:
                self._problems[one[0]] = one[1]

    def _required(self, records: Iterable[Record]) -> dict[str, set[str]]:
        lines = {
            line
            for record in records
            for version in out_by(_days(record["releases"]), self.cutoff)
            for line in record["releases"][version]["requires"] or ()
        }
        found: dict[str, set[str]] = {}
        for line in sorted(lines):
            for name, _ in followed((line,), ()):
                if not self.covered(name) and not self._settled(name):
                    found.setdefault(name, set()).add(str(Requirement(line).specifier))
        return found


@dataclass(frozen=True, slots=True)
class _Job:
    """Reading one package; `releases` runs the reading of its releases."""

    lookup: Lookup
    fetcher: Fetcher | None
    routes: Routes
    releases: Executor
    count: int
    """So many of the newest releases are read of each."""

    def read(self, name: str, specs: Collection[str]) -> Record | tuple[str, str]:
        """Return the package's record, or its name and why there is none."""
        kept = self._kept(name)
        if self.fetcher is None:
            return kept or (name, "no network may be used (--offline), and nothing is kept of it")
        if kept and kept["fetched"] == self.lookup.today and self._enough(kept, specs):
            return kept
        try:
            return self._fetched(checked_name(name), specs, kept, self.fetcher)
        except NotFound:
            return (name, "the index has no such package")
        except Unavailable as error:
            return kept or (name, str(error))

    def _kept(self, name: str) -> Record | None:
        try:
            return self.lookup.store.read(name)
        except Unavailable:
            return None

    def _enough(self, kept: Record, specs: Collection[str]) -> bool:
        """True when a kept record has read the releases that the specifiers want."""
        wanted = newest(out_by(_days(kept["releases"]), self.lookup.cutoff), specs, self.count)
        return all(settled(kept["releases"][version]) for version in wanted)

    def _fetched(self, name: str, specs: Collection[str], kept: Record | None, fetcher: Fetcher) -> Record:
        etag = kept["etag"] if kept and self._enough(kept, specs) else None
        page = read_project_page(fetcher, self.lookup.index, name, etag)
        if page is None and kept is not None:
            return self._stored({**kept, "fetched": self.lookup.today})
        assert page is not None
        return self._stored(self._record(page, specs, kept, fetcher))

    def _record(
        self, page: ProjectPage, specs: Collection[str], kept: Record | None, fetcher: Fetcher
    ) -> Record:
        grouped = page.releases()
        old = kept["releases"] if kept else {}
        days = {version: min(f.uploaded or "" for f in files) for version, files in grouped.items()}
        there = out_by(days, self.lookup.cutoff)
        wanted = [v for v in newest(there, specs, self.count) if not settled(old.get(v))]
        read = self.releases.map(
            lambda version: read_requirements(fetcher, self.routes, page.name, grouped[version]), wanted
        )
        found = dict(zip(wanted, read, strict=True))
        releases = {v: release_record(files, old.get(v), found.get(v), None) for v, files in grouped.items()}
        return page_record(page, self.lookup.today, releases)

    def _stored(self, record: Record) -> Record:
        try:
            self.lookup.store.folder.mkdir(parents=True, exist_ok=True)
            self.lookup.store.write(record["name"], record)
        except (Unavailable, OSError):
            pass  # a folder that cannot be written only costs the next look-up its time
        return record


def _days(releases: Record) -> dict[str, str]:
    return {version: min(f["uploaded"] or "" for f in r["files"]) for version, r in releases.items()}


def out_by(days: Mapping[str, str], cutoff: str) -> list[str]:
    """Return the releases (with the time of each's first file; "" unknown) that were out on a day."""
    return [version for version, time in days.items() if time[:10] <= cutoff]


def newest(releases: Collection[str], specs: Collection[str], count: int = NEWEST) -> list[str]:
    """Return the newest releases that each specifier admits: finals, or pre-releases where there are none."""
    ordered = sorted(releases, key=Version)
    finals = [version for version in ordered if not Version(version).is_prerelease]
    chosen = {
        version
        for spec in sorted(specs)[:MOST_SPECIFIERS]
        for version in (_admitted(finals, spec) or _admitted(ordered, spec))[-count:]
    }
    return [version for version in ordered if version in chosen]


def _admitted(versions: Collection[str], spec: str) -> list[str]:
    admitted = SpecifierSet(spec)
    return [version for version in versions if admitted.contains(version, prereleases=True)]
