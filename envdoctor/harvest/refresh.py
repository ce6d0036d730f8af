"""The two ways to bring package facts up to date: a user's own data, and a maintainers' build store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from envdoctor.errors import Unavailable
from envdoctor.fact_files import SNAPSHOT, user_folder
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import write_folder
from envdoctor.harvest.closure import CORE
from envdoctor.harvest.index_pages import checked_name
from envdoctor.harvest.index_settings import IndexSettings, read_index_settings
from envdoctor.harvest.lookup import ALWAYS, Lookup
from envdoctor.harvest.overlay import extended_bytes
from envdoctor.harvest.release_tables import release_tables
from envdoctor.harvest.seed import seed_store, seeded
from envdoctor.harvest.snapshot_compile import Compiler
from envdoctor.harvest.store import PackageStore
from envdoctor.harvest.update import PackageOutcome, Updater, UpdateReport
from envdoctor.matrix.load import Matrix
from envdoctor.matrix.snapshot import Snapshot, load_snapshot
from envdoctor.specifiers import SpecifierSet

Progress = Callable[[PackageOutcome, int, int], None]
Reread = Mapping[str, SpecifierSet]
NOTHING: Reread = {}


@dataclass(frozen=True, slots=True)
class Refreshment:
    """What an update did: the report, and the files made from the store."""

    report: UpdateReport
    written: tuple[Path, ...]


def fetcher_for(settings: IndexSettings, patience: FetchSettings | None = None) -> Fetcher:
    """Return a fetcher that trusts what pip and uv were told to trust."""
    return Fetcher(
        replace(
            patience or FetchSettings(),
            certificates=settings.certificates,
            proxy=settings.proxy,
            trusted_hosts=settings.trusted_hosts,
        )
    )


WAITED_FOR = FetchSettings(connections=16, timeout=8.0, deadline=15.0, tries=2, longest_wait=2.0)
"""How patient a look-up is, for which someone waits."""


def lookup_for(
    index_url: str | None, offline: bool, covered: Callable[[str], bool], until: str | None = None
) -> Lookup:
    """Return a look-up on the index that this machine uses, as of a day; raises InputError or Unavailable."""
    cutoff = until or ALWAYS
    store = PackageStore(Path(user_folder(), "lookups"))
    if offline:
        return Lookup(None, "", store, covered, cutoff)
    settings = read_index_settings(index_url)
    return Lookup(lambda: fetcher_for(settings, WAITED_FOR), settings.url, store, covered, cutoff)


def refresh_store(
    folder: Path, settings: IndexSettings, roots: Iterable[str], progress: Progress, reread: Reread = NOTHING
) -> UpdateReport:
    """Update a build store from nothing but the index; raises Unavailable when it is held or unwritable.

    With `reread` what these releases require is read again, and nothing else is followed.
    """
    with fetcher_for(settings) as fetcher:
        updater = Updater(fetcher, settings.url, PackageStore(folder), progress=progress, reread=reread)
        return updater.run([*roots, *reread] or CORE, follow=not reread)


def refresh_user_data(
    matrix: Matrix,
    folder: Path,
    settings: IndexSettings,
    roots: Iterable[str],
    progress: Progress,
    reread: Reread = NOTHING,
) -> Refreshment:
    """Update the user's facts, starting from those in force, and make snapshot and tables of them.

    With `reread` what these releases require is read again, and nothing else is followed.
    Packages that fail keep their former facts. Raises Unavailable when nothing could be written.
    """
    store = PackageStore(folder / "packages")
    snapshot = _snapshot_in_force(matrix)
    named = [checked_name(name) for name in (*roots, *reread)]
    with fetcher_for(settings) as fetcher:
        known_deep = _known_deep(matrix)
        updater = Updater(
            fetcher, settings.url, store, known_deep=known_deep, progress=progress, reread=reread
        )
        if snapshot is not None:
            updater.known = partial(seeded, snapshot)
        covered = _covered_by(snapshot if named else None)
        report = updater.run(named or CORE, follow=not reread, covered=covered)
    if snapshot is not None:
        read = {outcome.name for outcome in report.outcomes if not outcome.problem}
        seed_store(store, snapshot, [name for name in named or snapshot.names() if name not in read])
    releases = folder / "releases"
    stale = bool(report.read) or not (releases / SNAPSHOT).is_file()
    whole = snapshot is not None or not report.problems
    if not stale or not whole:
        return Refreshment(report, ())
    if snapshot is None or not named:
        return Refreshment(report, tuple(publish(store, releases, matrix)))
    return Refreshment(report, tuple(publish_some(store, releases, matrix, snapshot, report)))


def _covered_by(snapshot: Snapshot | None) -> Callable[[str], bool]:
    def covered(name: str) -> bool:
        package = snapshot.package(name) if snapshot is not None else None
        return package is not None and package.crawled

    return covered


def publish_some(
    store: PackageStore, folder: Path, matrix: Matrix, snapshot: Snapshot, report: UpdateReport
) -> list[Path]:
    """Write the snapshot in force with the packages of a report renewed; raises Unavailable."""
    read = (store.read(outcome.name) for outcome in report.outcomes)
    data = extended_bytes(snapshot, [record for record in read if record is not None])
    return _written(folder, data, release_tables(store.records(), matrix.generated))


def publish(store: PackageStore, folder: Path, matrix: Matrix | None = None) -> list[Path]:
    """Write the snapshot and the tables of a store into `folder`, all or none; raises Unavailable."""
    compiler = Compiler()
    former = matrix.generated if matrix else lambda name: {}
    tables = release_tables(compiler.compiled(store.records()), former)
    return _written(folder, compiler.bytes(compiler.newest), tables)


def _written(folder: Path, snapshot: bytes, tables: Mapping[str, str]) -> list[Path]:
    files: dict[str, str | bytes] = {SNAPSHOT: snapshot}
    files |= {f"{name}.json": text for name, text in tables.items()}
    write_folder(folder, files)
    return [folder / name for name in files]


def _snapshot_in_force(matrix: Matrix) -> Snapshot | None:
    try:
        return load_snapshot(matrix.folder)
    except Unavailable:
        return None


def _known_deep(matrix: Matrix) -> Callable[[str], Collection[str]]:
    return lambda name: matrix.generated(name).get("releases", {}).keys()
