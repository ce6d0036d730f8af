"""Brings a package store up to date from an index: only what is new is read, and each package whole.

A package whose page or files cannot be had or trusted keeps its former record and is named as a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from datetime import date

from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher, NotFound
from envdoctor.harvest.closure import ALWAYS_READ, CORE, FLOOR, FLOOR_REASON, FOLLOW_SINCE, followed
from envdoctor.harvest.extract import extractor_of
from envdoctor.harvest.index_pages import IndexFile, ProjectPage, checked_name, read_project_page
from envdoctor.harvest.metadata import Requirements, Routes, read_requirements
from envdoctor.harvest.store import SCHEMA, PackageStore, Record
from envdoctor.harvest.workers import Workers
from envdoctor.specifiers import SpecifierSet

PRERELEASE_REASON = "a pre-release that a final release has followed: its metadata is not read"
HOPELESS = 6
"""So many failures and no success, and the index is taken for down."""
_STORED = ("filename", "requires_python", "yanked", "uploaded", "size", "sha256")


@dataclass(frozen=True, slots=True)
class PackageOutcome:
    """What became of one package: how many releases were read, or the problem that left it as it was."""

    name: str
    read: int = 0
    problem: str | None = None
    absent: bool = False
    requires: frozenset[str] = frozenset()
    """What those of its releases ask for whose requirements are followed."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """An update's outcome, package by package."""

    outcomes: tuple[PackageOutcome, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each package that kept its former record."""
        return tuple(f"{o.name}: {o.problem}" for o in self.outcomes if o.problem)

    @property
    def read(self) -> int:
        """How many releases were read."""
        return sum(outcome.read for outcome in self.outcomes)


@dataclass(slots=True)
class Updater:
    """One update of one store.

    `known_deep` gives the releases whose deep facts are recorded already; `progress` is told of each package;
    `reread` names packages whose known releases within a specifier are read again too.
    """

    fetcher: Fetcher
    index: str
    store: PackageStore
    today: str = field(default_factory=lambda: date.today().isoformat())
    known_deep: Callable[[str], Collection[str]] = lambda name: ()
    progress: Callable[[PackageOutcome, int, int], None] = lambda outcome, done, total: None
    reread: Mapping[str, SpecifierSet] = field(default_factory=dict)
    known: Callable[[str, Record | None], Record | None] = lambda _, former: former
    """What is known of a package beside its record."""
    routes: Routes = field(init=False)

    def __post_init__(self) -> None:
        """Start with every route of the index open."""
        self.routes = Routes(self.index)

    def run(
        self,
        roots: Iterable[str] = CORE,
        *,
        follow: bool = True,
        covered: Callable[[str], bool] = lambda name: False,
    ) -> UpdateReport:
        """Update `roots` and, with `follow`, what they require that is not `covered` already.

        Raises Unavailable when the store is held.
        """
        with self.store.locked(), Workers(8) as packages, Workers(8) as releases:
            return _Walk(self, packages, releases, follow, covered).run(roots)

    def update_package(self, name: str, releases: Executor) -> PackageOutcome:
        """Bring one package up to date; what goes wrong is in the outcome, and the former record stays."""
        former = self.known(name, self.store.read(name))
        known = _required(former) if former else frozenset()
        try:
            etag = former.get("etag") if former and name not in self.reread else None
            page = read_project_page(self.fetcher, self.index, name, etag)
            if page is None:
                return PackageOutcome(name, requires=known)
            return self._store(page, former, releases)
        except NotFound as missing:
            return PackageOutcome(name, 0, str(missing) if former else None, True, known)
        except Unavailable as error:
            left = self.store.read(name)
            return PackageOutcome(name, problem=str(error), requires=_required(left) if left else known)

    def _store(self, page: ProjectPage, former: Record | None, pool: Executor) -> PackageOutcome:
        old = former["releases"] if former else {}
        grouped = page.releases()
        if 2 * len(old.keys() & grouped.keys()) < len(old):
            raise Unavailable(f"the index lists {len(grouped)} releases where {len(old)} were known")
        skipped = _skipped(page.name, grouped)
        wanted = [v for v in grouped if self._wants(page.name, v, old.get(v), v in skipped)]
        read = pool.map(lambda v: read_requirements(self.fetcher, self.routes, page.name, grouped[v]), wanted)
        found = dict(zip(wanted, read, strict=True))
        releases = {
            v: release_record(files, old.get(v), found.get(v), skipped.get(v)) for v, files in grouped.items()
        }
        record = page_record(page, self.today, releases)
        if not former or {**former, "fetched": self.today} != record:
            self.store.write(page.name, record)
        self._deepen(record, grouped, pool)
        return PackageOutcome(page.name, read=len(wanted), requires=_required(record))

    def _wants(self, name: str, version: str, old: Record | None, skipped: bool) -> bool:
        if not settled(old):
            return not skipped
        again = self.reread.get(name)
        return again is not None and again.contains(version, prereleases=True)

    def _deepen(self, record: Record, grouped: Mapping[str, tuple[IndexFile, ...]], pool: Executor) -> None:
        """Read the deep facts that releases lack, and keep those that came even when others fail."""
        extractor = extractor_of(record["name"])
        if extractor is None:
            return
        known = self.known_deep(record["name"])
        jobs = {
            version: pool.submit(extractor.read, self.fetcher, grouped[version])
            for version, release in record["releases"].items()
            if _lacks_deep(release) and version not in known and extractor.covers(version)
        }
        failures: list[Unavailable] = []
        for version, job in jobs.items():
            try:
                record["releases"][version]["deep"] = job.result()
            except Unavailable as error:
                failures.append(error)
        if jobs:
            record["etag"] = None if failures else record["etag"]
            self.store.write(record["name"], record)
        if failures:
            raise failures[0]


def _skipped(name: str, grouped: Mapping[str, tuple[IndexFile, ...]]) -> dict[str, str]:
    """Return the releases, of those given oldest first, whose metadata need not be read, with the reason."""
    finals = [version for version in grouped if not Version(version).is_prerelease]
    final = Version(finals[-1]) if finals else Version("0.dev0")
    newest = set(finals[-ALWAYS_READ:])
    reasons: dict[str, str] = {}
    for version, files in grouped.items():
        uploaded = min((f.uploaded for f in files if f.uploaded), default=FLOOR)
        if Version(version).is_prerelease and Version(version) < final:
            reasons[version] = PRERELEASE_REASON
        elif name not in CORE and uploaded < FLOOR and version not in newest:
            reasons[version] = FLOOR_REASON
    return reasons


def _lacks_deep(release: Record) -> bool:
    return release.get("requires") is not None and "deep" not in release


def release_record(
    files: Iterable[IndexFile], old: Record | None, found: Requirements | None, skipped: str | None
) -> Record:
    """Return a release's record: what was found now, else what was settled, else why it is not read."""
    listed = [{key: getattr(file, key) for key in _STORED} for file in files]
    if found is not None:
        deep = {key: old[key] for key in ("deep",) if old and key in old}
        return {"files": listed, **_requirement_fields(found), **deep}
    if old is not None and settled(old):
        return {**old, "files": listed}
    return {"files": listed, "requires": None, "requires_reason": skipped}


def settled(release: Record | None) -> bool:
    """True when a stored release needs no further reading: it was read, or its own files are to blame."""
    if release is None:
        return False
    return release.get("requires") is not None or release.get("requires_source") is not None


def _requirement_fields(found: Requirements) -> Record:
    fields: Record = {
        "requires": None if found.lines is None else list(found.lines),
        "requires_reason": found.reason,
        "requires_source": found.source,
    }
    return fields | ({"unusable": dict(found.unusable)} if found.unusable else {})


def page_record(page: ProjectPage, today: str, releases: Record) -> Record:
    """Return the record of a package with its releases."""
    core = page.name in CORE
    return {
        "schema": SCHEMA,
        "name": page.name,
        "fetched": today,
        "etag": page.etag,
        "core": core,
        "floor": None if core else FLOOR,
        "floor_reason": None if core else FLOOR_REASON,
        "releases": releases,
    }


@dataclass(slots=True)
class _Walk:
    """The packages still to do, done, and the extras asked of each."""

    updater: Updater
    packages: Executor
    releases: Executor
    follow: bool
    covered: Callable[[str], bool]
    running: set[Future[PackageOutcome]] = field(default_factory=set)
    outcomes: dict[str, PackageOutcome] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    extras: dict[str, frozenset[str]] = field(default_factory=dict)

    def run(self, roots: Iterable[str]) -> UpdateReport:
        for root in roots:
            self._submit(checked_name(root))
        while self.running:
            finished, self.running = wait(self.running, return_when=FIRST_COMPLETED)
            for job in finished:
                outcome = job.result()
                self.outcomes[outcome.name] = outcome
                self._give_up_on_a_dead_index()
                if self.follow:
                    self._follow(outcome.name)
                self.updater.progress(outcome, len(self.outcomes), len(self.seen))
        return UpdateReport(tuple(self.outcomes[name] for name in sorted(self.outcomes)))

    def _give_up_on_a_dead_index(self) -> None:
        """Raise Unavailable when nothing but failures has come: the rest would only fail as slowly."""
        problems = [outcome.problem for outcome in self.outcomes.values()]
        if len(problems) >= HOPELESS and all(problems):
            raise Unavailable(f"no package could be read, and nothing was changed: {problems[0]}")

    def _submit(self, name: str) -> None:
        if name not in self.seen:
            self.seen.add(name)
            self.running.add(self.packages.submit(self.updater.update_package, name, self.releases))

    def _follow(self, name: str) -> None:
        todo = {name}
        while todo:
            current = todo.pop()
            for required, asked in self._required_by(current):
                before = self.extras.get(required, frozenset())
                self.extras[required] = before | asked
                if not self.covered(required):
                    self._submit(required)
                if asked - before and required in self.outcomes:
                    todo.add(required)

    def _required_by(self, name: str) -> set[tuple[str, frozenset[str]]]:
        outcome = self.outcomes.get(name)
        return set(followed(outcome.requires if outcome else (), self.extras.get(name, frozenset())))


def _required(record: Record) -> frozenset[str]:
    """Return what a record's releases ask for whose requirements are followed."""
    return frozenset(line for one in _in_use(record["releases"]) for line in one.get("requires") or ())


def _in_use(releases: Record) -> list[Record]:
    """Return the releases whose requirements are followed: those since `FOLLOW_SINCE`, and the newest."""
    listed = list(releases.values())
    recent = [
        r for r in listed if max((f["uploaded"] or "9999" for f in r["files"]), default="") >= FOLLOW_SINCE
    ]
    return [*recent, *listed[-ALWAYS_READ:]]
