"""The package facts of one answer: the snapshot, and what is read from the index where it does not reach."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from envdoctor import lazy_re as re
from envdoctor.errors import EnvdoctorError, nearest
from envdoctor.matrix.snapshot import Snapshot
from envdoctor.solve.requests import Request, Stated

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from envdoctor.harvest.lookup import Lookup
    from envdoctor.harvest.module_reader import ModuleReader
    from envdoctor.harvest.store import Record

FURTHER = (12, 100)
"""So many times as many releases are read of a package whose unread ones stand in the way, and still do."""
_STRANGER = "built from its repository: what the index has of that name, if anything, is another project's"
_LABEL = re.compile(r"\+[^,]*")


class Coverage:
    """Package facts that grow; `offline` keeps to the snapshot and to what was kept of look-ups.

    `until` (as `2026-01-31`) is the last day on which a release that is looked up may have come out. Of
    `strangers` nothing is looked up: the index has other projects of these names.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        index_url: str | None = None,
        offline: bool = False,
        until: str | None = None,
        stated: Sequence[Stated] = (),
        strangers: Iterable[str] = (),
    ) -> None:
        self.snapshot, self.index_url, self.offline, self.until = snapshot, index_url, offline, until
        self._stated = stated
        self.read: dict[str, str] = {}
        """The packages that were looked up, with the day of each."""
        self.problems: dict[str, str] = dict.fromkeys(strangers, _STRANGER)
        self._read_on: dict[str, int] = {}
        """How often a package was read on."""

    def knows(self, name: str) -> bool:
        """True when the facts know releases of a package."""
        package = self.snapshot.package(name)
        return package is not None and package.crawled

    def why(self, name: str) -> str:
        """Return why nothing is known of a package."""
        why = self.problems.get(name, f"not among the package facts of {self.snapshot.date}")
        return f"{why}{nearest(name, (other for other in self.snapshot.names() if other != name))}"

    def cover(self, requests: Iterable[Request]) -> None:
        """Look up what is asked for and not covered."""
        wanted: dict[str, list[str]] = {}
        for request in requests:
            if not self.knows(request.name) and request.name not in self.problems:
                wanted.setdefault(request.name, []).append(_LABEL.sub("", request.spec))
        self._find({name: {",".join(filter(None, specs))} for name, specs in wanted.items()})

    def widen(self, required: Mapping[str, Collection[str]]) -> bool:
        """Look up what others require (specifiers by name); False when nothing came of it."""
        before = self.snapshot
        self._find({n: s for n, s in required.items() if n not in self.problems and not self.knows(n)})
        return self.snapshot is not before

    def read_on(self, unread: Mapping[str, Collection[str]]) -> bool:
        """Read what releases (specifiers by name) require that the facts list without; False for none."""
        before = self.snapshot
        for further in FURTHER:
            wanted = {n: specs for n, specs in unread.items() if self._read_on.get(n, 0) < further}
            self._read_on |= dict.fromkeys(wanted, further)
            self._find(wanted, further)
            if self.snapshot is not before:
                return True
        return False

    def undated(self, names: Iterable[str]) -> list[str]:
        """Return which of these were looked up as of a day on an index that tells none of their releases'."""
        looked_up = (self.snapshot.package(name) for name in names if self.until and name in self.read)
        return [one.name for one in looked_up if one is not None and not any(one.days)]

    def _find(self, wanted: Mapping[str, Collection[str]], further: int = 1) -> None:
        if not wanted:
            return
        from envdoctor.harvest.overlay import completed, extended

        try:
            found = self._lookup.find(wanted, further)
        except EnvdoctorError as error:
            self.problems |= dict.fromkeys(wanted, str(error))
            return
        self.problems |= found.problems
        new = {n: record for n, record in found.records.items() if n not in self.read or n in wanted}
        if new:
            self.read |= {name: str(record["fetched"]) for name, record in new.items()}
            records = [self._as_stated(completed(self.snapshot, one)) for one in new.values()]
            self.snapshot = extended(self.snapshot, records)

    def take_what_is_stated(self) -> None:
        """Take what is stated of packages that the facts know for what they require."""
        from envdoctor.harvest.overlay import extended
        from envdoctor.harvest.seed import package_record

        named = sorted({one.name for one in self._stated})
        known = [self.snapshot.package(name) for name in named if self.knows(name)]
        records = [package_record(self.snapshot, one) for one in known if one is not None]
        self.snapshot = extended(self.snapshot, map(self._as_stated, records))

    def _as_stated(self, record: Record) -> Record:
        releases = dict(record["releases"])
        for one in self._stated:
            for version in releases if one.name == record["name"] else ():
                if one.version in ("", version):
                    releases[version] = {**releases[version], "requires": list(one.requires)}
        return {**record, "releases": releases}

    def modules(self) -> AbstractContextManager[ModuleReader]:
        """Give what reads which modules releases have; offline what was kept of them."""
        from envdoctor.harvest.module_reader import module_reader

        return module_reader(self.index_url, self.offline)

    @property
    def _lookup(self) -> Lookup:
        from envdoctor.harvest.refresh import lookup_for

        return lookup_for(self.index_url, self.offline, self.knows, self.until)
