"""`uv.lock`: what `uv sync --no-dev` installs, reached from the project as uv walks there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envdoctor.facts.names import normalise
from envdoctor.locks.values import (
    Lock,
    Locked,
    Markers,
    Unreadable,
    header_lines,
    named,
    table_of,
    tables_of,
    text_of,
)

Node = tuple[int, str]
"""A package by its place, and one of its extras (none: itself)."""

_LOCAL = ("virtual", "editable", "directory", "path")


def read_uv(document: Mapping[str, Any], text: str) -> Lock:
    """Return what the lock installs without groups and extras; raises Unreadable."""
    markers = Markers(text_of(document.get("requires-python")))
    packages = named(tables_of(document.get("package")), header_lines(text, "[[package]]"))
    walk = _Walk(packages, markers)
    places = walk.reach(_roots(document, walk))
    found = (_locked(*packages[place]) for place in sorted(places))
    kept = tuple(one for one in found if one)
    return Lock("uv.lock", kept, markers.read_for, notes=tuple(_unread_groups(packages)))


def _locked(name: str, table: Mapping[str, Any], line: int) -> Locked | None:
    source = table_of(table.get("source"))
    if "virtual" in source:
        return None
    origin = "vcs" if "git" in source else "url" if "url" in source else None
    origin = "file" if any(kind in source for kind in _LOCAL) else origin
    return Locked(name, text_of(table.get("version")) or None, line, origin, "editable" in source)


def _unread_groups(packages: Iterable[tuple[str, Mapping[str, Any], int]]) -> Iterator[str]:
    """Say which groups the project has: only its pyproject.toml tells those that are installed by default."""
    here = (table for _, table, _ in packages if _is_here(table))
    names = {name for table in here for name in table_of(table.get("dev-dependencies"))} - {"dev"}
    if names:
        yield (
            f"the groups {', '.join(sorted(names))} are not read: whether one is installed by default,"
            " pyproject.toml says"
        )


def _roots(document: Mapping[str, Any], walk: _Walk) -> Iterator[Node]:
    """Yield the project, else the workspace's members, and what a script or manifest requires itself."""
    manifest = table_of(document.get("manifest"))
    project = [place for place, (_, table, _) in enumerate(walk.packages) if _is_here(table)]
    members = manifest.get("members")
    names = {normalise(text_of(one)) for one in members} if isinstance(members, list) else set()
    yield from ((place, "") for place in project)
    if not project:
        yield from ((place, "") for place, (name, _, _) in enumerate(walk.packages) if name in names)
    yield from walk.followed(tables_of(manifest.get("requirements")))


def _is_here(table: Mapping[str, Any]) -> bool:
    return any(table_of(table.get("source")).get(kind) == "." for kind in _LOCAL)


class _Walk:
    """From packages to those that they require, where the markers hold."""

    def __init__(self, packages: list[tuple[str, Mapping[str, Any], int]], markers: Markers) -> None:
        self.packages = packages
        self._markers = markers
        self._places: dict[str, list[int]] = {}
        for place, (name, _, _) in enumerate(packages):
            self._places.setdefault(name, []).append(place)

    def reach(self, roots: Iterable[Node]) -> set[int]:
        """Return the places of all packages that are installed for some roots."""
        queue = [*roots]
        seen = set(queue)
        while queue:
            for node in self._next(*queue.pop()):
                if node not in seen:
                    seen.add(node)
                    queue.append(node)
        return {place for place, _ in seen}

    def _next(self, place: int, extra: str) -> Iterator[Node]:
        table = self.packages[place][1]
        optional = table_of(table.get("optional-dependencies"))
        wanted = optional.get(extra) if extra else table.get("dependencies")
        yield from self.followed(tables_of(wanted))

    def followed(self, wanted: Iterable[Mapping[str, Any]]) -> Iterator[Node]:
        """Yield the packages and extras that entries lead to."""
        for entry in wanted:
            if self._markers.hold(entry.get("marker")):
                extras = entry.get("extra", entry.get("extras"))
                for place in self._meant(entry):
                    yield place, ""
                    yield from ((place, text_of(one)) for one in (extras if isinstance(extras, list) else ()))

    def _meant(self, entry: Mapping[str, Any]) -> list[int]:
        """Return the package that an entry means: of several releases the one it names, or of its fork."""
        name = normalise(text_of(entry.get("name")))
        places = self._places.get(name, [])
        if not places:
            raise Unreadable(f"{name[:60] or 'a package'} is required and not in it")
        if len(places) > 1:
            same = [place for place in places if self._same(entry, self.packages[place][1])]
            places = [place for place in same if self._of_this_fork(self.packages[place][1])] or same[:1]
        return places[:1]

    def _same(self, entry: Mapping[str, Any], table: Mapping[str, Any]) -> bool:
        return all(entry[key] == table.get(key) for key in ("version", "source") if key in entry)

    def _of_this_fork(self, table: Mapping[str, Any]) -> bool:
        forks = table.get("resolution-markers")
        return not isinstance(forks, list) or any(self._markers.hold(fork) for fork in forks)
