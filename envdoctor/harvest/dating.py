"""Which releases a traceback ran in: its quoted lines, looked for where they stand in each release's files.

Where they stand in none as they were seen, a commit between two releases ran, or a changed file: then those
count in which most of them stand, and nearest, with their neighbours. The index is read for the few files
that a traceback names, bounded, and what was read is kept in the cache.
"""

from __future__ import annotations

import ast
import io
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher
from envdoctor.files import replace_file
from envdoctor.harvest.index_pages import IndexFile, read_releases
from envdoctor.harvest.remote_archive import RemoteZip, read_sdist_members
from envdoctor.python_source import parse_python

WHOLE = 2 << 20
"""Wheels up to this many bytes are read whole, which is one request."""
RELEASES = 260
"""The newest releases that are looked through."""
FILES = 4
"""Files of one library that are looked at: the innermost frames'."""
AT_ONCE = 8
FAR = 100
"""Lines by which those of a commit are moved on average, at most, in the nearest release."""
QUOTED = 180
"""Letters of a quoted line that are compared."""
_MISSING = b"\x00"
"""Kept for a file that a release does not have."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A frame inside a library: the file's path in its wheel, line, function, and the quoted line."""

    path: str
    line: int
    function: str
    code: str
    built: bool = False
    """It ran where it was built: any commit may be checked out there."""


@dataclass(frozen=True, slots=True)
class Stood:
    """The releases in which lines stand, in order; `on`: the newest is one of them, so later ones may be."""

    releases: Sequence[str]
    on: bool = False
    near: bool = False
    """No release has them at these numbers: these are the nearest."""

    @property
    def told(self) -> str:
        """The range in words."""
        first, last = self.releases[0], self.releases[-1]
        return f"{first} or later" if self.on else f"{first} to {last}" if first != last else first

    @property
    def specifier(self) -> str:
        """The range as a requirement writes it."""
        first, last = self.releases[0], self.releases[-1]
        return f">={first}" if self.on else f">={first},<={last}" if first != last else f"=={first}"

    def has(self, version: Version) -> bool:
        """True for a release in which the lines stand, or may."""
        first, last = Version(self.releases[0]), Version(self.releases[-1])
        between = version.is_prerelease and first < version < last
        return version in map(Version, self.releases) or between or (self.on and version > last)


@dataclass(frozen=True)
class Dater:
    """Reads files of releases from one index until a deadline (seconds of `time.monotonic`)."""

    fetcher: Fetcher
    index: str
    cache: Path
    deadline: float

    def releases(self, library: str, sights: Sequence[Sight]) -> Stood:
        """Return the releases in which every sight stands as it was seen, else those nearest to them.

        None where too few of the lines stand in any.

        Raises Unavailable when the index cannot be read, or the time is over before all were looked at.
        """
        known = read_releases(self.fetcher, self.index, library)
        final = sorted((v for v in known if not Version(v).is_prerelease), key=Version)[-RELEASES:]
        chosen = _chosen(sights)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            fits = list(pool.map(lambda v: self._fits(library, v, known[v], chosen), final))
        stood = _without_gaps(final, fits)
        if not stood:
            told = {version: self._offsets(library, version, known[version], chosen) for version in final}
            near = _nearest(told) if told and chosen else []
            return Stood(_with_neighbours(final, near), on=final[-1:] == near[-1:] != [], near=True)
        if any(sight.built for sight in sights):
            stood = _with_neighbours(final, stood)
        return Stood(stood, on=stood[-1] == final[-1])

    def _fits(
        self, library: str, version: str, files: Sequence[IndexFile], sights: Mapping[str, list[Sight]]
    ) -> bool | None:
        """Return whether all sights stand in a release; None for one that cannot be read."""
        texts = self._texts(library, version, files, list(sights))
        if texts is None:
            return None
        return all(
            path in texts and all(_stands(texts[path], sight) for sight in some)
            for path, some in sights.items()
        )

    def _offsets(
        self, library: str, version: str, files: Sequence[IndexFile], sights: Mapping[str, list[Sight]]
    ) -> list[int | None]:
        """Return how many lines further down each sight stands; None for one that does not."""
        texts = self._texts(library, version, files, list(sights)) or {}
        lines = ((path, sight) for path, some in sights.items() for sight in dict.fromkeys(some))
        return [_offset(texts.get(path, ""), sight) for path, sight in lines]

    def _texts(
        self, library: str, version: str, files: Sequence[IndexFile], paths: Sequence[str]
    ) -> dict[str, str] | None:
        kept = {path: self._kept(library, version, path) for path in paths}
        missing = [path for path, body in kept.items() if body is None]
        if missing:
            if time.monotonic() > self.deadline:
                raise Unavailable(f"the time was over before all releases of {library} were looked at")
            read = _read(self.fetcher, files, missing)
            if read is None:
                return None
            for path in missing:
                kept[path] = read.get(path, _MISSING)
                target = self._place(library, version, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                replace_file(target, zlib.compress(kept[path] or b"", 6))
        return {
            path: body.decode("utf-8", "replace") for path, body in kept.items() if body and body != _MISSING
        }

    def _kept(self, library: str, version: str, path: str) -> bytes | None:
        try:
            return zlib.decompress(self._place(library, version, path).read_bytes())
        except (OSError, zlib.error):
            return None

    def _place(self, library: str, version: str, path: str) -> Path:
        return self.cache / library / version / f"{path.replace('/', '+')}.z"


def _without_gaps(versions: Sequence[str], fits: Sequence[bool | None]) -> list[str]:
    """Return the versions that fit; one that cannot be read counts where it touches one that does."""
    told = list(fits)
    for _ in range(len(told)):
        open_ = [n for n, fit in enumerate(told) if fit is None and True in told[max(0, n - 1) : n + 2]]
        if not open_:
            break
        for n in open_:
            told[n] = True
    return [version for version, fit in zip(versions, told, strict=True) if fit]


def _with_neighbours(versions: Sequence[str], stood: Sequence[str]) -> list[str]:
    """Return what a commit with these lines may call itself: one of these releases, or one beside them."""
    places = [place for place, version in enumerate(versions) if version in stood]
    return list(versions[max(0, places[0] - 1) : places[-1] + 2]) if places else []


def _nearest(offsets: Mapping[str, Sequence[int | None]]) -> list[str]:
    """Return the releases that need the lines least moved; where none has all, those that lack fewest.

    None where half of the lines lack, or are far; nor the oldest release: what ran may be older still.
    """
    most = min(each.count(None) for each in offsets.values())
    moved = {
        version: sum(abs(one) for one in each if one is not None)
        for version, each in offsets.items()
        if each.count(None) == most
    }
    standing = len(next(iter(offsets.values()))) - most
    least = min(moved.values())
    found = [version for version, far in moved.items() if most or far == least]
    told = standing > most and least <= FAR * standing and found[0] != next(iter(offsets))
    return found if told else []


def _chosen(sights: Sequence[Sight]) -> dict[str, list[Sight]]:
    """Return the sights of the first few files, by file."""
    chosen: dict[str, list[Sight]] = {}
    for sight in sights:
        if sight.path in chosen or len(chosen) < FILES:
            chosen.setdefault(sight.path, []).append(sight)
    return chosen


def _stands(text: str, sight: Sight) -> bool:
    """True when the quoted line stands at its number; without one, when the function spans the number."""
    lines = text.split("\n")
    if sight.line > len(lines):
        return False
    if sight.code:
        return lines[sight.line - 1].strip().startswith(sight.code.strip()[:QUOTED])
    return sight.function in ("<module>", "") or sight.function in _around(text, sight.line)


def _offset(text: str, sight: Sight) -> int | None:
    """Return how many lines further down the sight stands, where it is nearest; None where it does not."""
    if _stands(text, sight):
        return 0
    lines = enumerate(text.split("\n"), 1) if sight.code else ()
    code = sight.code.strip()[:QUOTED]
    places = (place - sight.line for place, line in lines if line.strip().startswith(code))
    return min(places, key=abs, default=None)


def _around(text: str, line: int) -> set[str]:
    try:
        tree = parse_python(text)
    except SyntaxError:
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return {node.name for node in nodes if node.lineno <= line <= (node.end_lineno or node.lineno)}


def _read(fetcher: Fetcher, files: Sequence[IndexFile], paths: Sequence[str]) -> dict[str, bytes] | None:
    """Return those of the paths that a release's files have; None where none can be read."""
    usable = [f for f in files if not f.yanked] or list(files)
    wheels = [f for f in usable if f.is_wheel]
    pure = [f for f in wheels if f.filename.endswith("-none-any.whl")]
    linux = [f for f in wheels if "linux" in f.filename and "x86_64" in f.filename]
    try:
        if wheels:
            return _from_wheel(fetcher, (pure or linux or wheels)[0], paths)
        return _from_source(fetcher, usable[0], paths) if usable else None
    except (Unavailable, zipfile.BadZipFile):
        return None


def _from_source(fetcher: Fetcher, file: IndexFile, paths: Sequence[str]) -> dict[str, bytes]:
    ends = tuple(f"/{path}" for path in paths)
    found = read_sdist_members(fetcher, file.url, lambda name: name.endswith(ends), lambda _: False)
    return {path: body for name, body in found.items() for path in paths if name.endswith(f"/{path}")}


def _from_wheel(fetcher: Fetcher, file: IndexFile, paths: Sequence[str]) -> dict[str, bytes]:
    if (file.size or WHOLE + 1) <= WHOLE:
        archive = zipfile.ZipFile(io.BytesIO(fetcher.get(file.url, cap=2 * WHOLE).body))
        names = set(archive.namelist())
        return {path: archive.read(path) for path in paths if path in names}
    remote = RemoteZip(fetcher, file.url)
    return {path: remote.read(path) for path in paths if path in remote.members}
