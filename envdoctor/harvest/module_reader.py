"""Reads which modules pinned releases have and what these import, many at once, while someone waits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from envdoctor.errors import EnvdoctorError
from envdoctor.fact_files import user_folder
from envdoctor.fetch import Fetcher
from envdoctor.harvest.index_pages import Listing, read_listing
from envdoctor.harvest.release_modules import KeptModules, ReleaseModules, open_release
from envdoctor.harvest.workers import Workers

PATIENCE_S = 20.0
"""After so long spent on reading no further release is opened: what is not read is not judged."""
Release = tuple[str, str]
"""A package's name and version."""


@dataclass(slots=True)
class ModuleReader:
    """Releases by name and version, opened as they are asked for. `fetcher` None: only what was kept."""

    fetcher: Fetcher | None
    index: str
    kept: KeptModules
    unread: set[str] = field(default_factory=set)
    """The packages that were not opened any more."""
    _releases: dict[Release, ReleaseModules | None] = field(default_factory=dict)
    _waited: float = 0.0
    _listings: dict[str, Listing] = field(default_factory=dict)
    _grown: set[Release] = field(default_factory=set)
    """Of which more was read than is kept."""

    def release(self, name: str, version: str) -> ReleaseModules | None:
        """Return a release; None for one that cannot be read."""
        self.open([(name, version)])
        return self._releases.get((name, version))

    def wait_anew(self) -> None:
        """Take as long again: what serves for what was found to be lacking is a few releases more."""
        self._waited = 0.0

    def open(self, wanted: Iterable[Release]) -> None:
        """Open releases side by side."""
        self._each(self._open, [one for one in dict.fromkeys(wanted) if one not in self._releases])

    def read(self, wanted: Mapping[Release, Collection[str]]) -> None:
        """Read modules of releases that are open, by name and version."""
        todo = {
            one: some
            for one, modules in wanted.items()
            if (release := self._releases.get(one))
            if (some := [m for m in modules if m not in release.told and release.file_of(m)])
        }
        self._each(lambda one: self._read(one, todo[one]), list(todo))

    def _each(self, way: Callable[[Release], None], todo: list[Release]) -> None:
        if not todo:
            return
        began = monotonic()
        with Workers(min(16, len(todo))) as workers:
            list(workers.map(way, todo))
        self._waited += monotonic() - began

    def _open(self, one: Release) -> None:
        self._releases[one] = self.kept.read(*one) or self._opened(one)

    def _opened(self, one: Release) -> ReleaseModules | None:
        name, version = one
        if self.fetcher is None:
            return None
        if self._waited > PATIENCE_S:
            self.unread.add(name)
            return None
        try:
            if name not in self._listings:
                self._listings[name] = read_listing(self.fetcher, self.index, name)
            files = self._listings[name].release(version)
            release = open_release(self.fetcher, name, version, files) if files else None
        except EnvdoctorError:
            return None
        self._grown.add(one)
        return release

    def _read(self, one: Release, modules: Collection[str]) -> None:
        release = self._releases[one]
        if release is not None and release.source is None:
            opened = self._opened(one)
            if opened is not None:
                opened.told.update(release.told)
                release = self._releases[one] = opened
        if release is None or self.fetcher is None:
            return
        try:
            release.read(modules, self.fetcher)
        except EnvdoctorError:
            return
        self._grown.add(one)

    def keep(self) -> None:
        """Keep what was read."""
        for one in sorted(self._grown):
            if release := self._releases.get(one):
                self.kept.write(release)


@contextmanager
def module_reader(index_url: str | None, offline: bool) -> Iterator[ModuleReader]:
    """Give a reader of the index that this machine uses; raises InputError or Unavailable."""
    from envdoctor.harvest.index_settings import read_index_settings
    from envdoctor.harvest.refresh import WAITED_FOR, fetcher_for

    kept = KeptModules(Path(user_folder(), "modules"))
    if offline:
        yield ModuleReader(None, "", kept)
        return
    settings = read_index_settings(index_url)
    with fetcher_for(settings, WAITED_FOR) as fetcher:
        reader = ModuleReader(fetcher, settings.url, kept)
        try:
            yield reader
        finally:
            reader.keep()
