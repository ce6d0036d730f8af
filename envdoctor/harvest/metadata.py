"""What one release requires, read with as few bytes as the index allows.

Routes, cheapest first: the metadata file beside the wheel (when the index offers it, checked against its
hash), the JSON of a release that has one wheel (of several it tells one, and not which), the METADATA member
by ranged reads of the wheel; for a release without any wheel the record inside the sdist. What cannot be had
is None with its reason.
Files of one release may differ: what is read is what a machine would install, the wheel for the newest
CPython 3 on x86_64 Linux; without it the plainest wheel, then the sdist. A file for Python 2 is never read:
torch 1.1 to 1.3.1 require `future` there and nowhere else. Where the wheel for the oldest Python from 3.9 on
says otherwise (onnxruntime 1.16 asks for another numpy on each), all are read and markers tell them apart.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher, NotFound, TooLarge
from envdoctor.harvest.index_pages import IndexFile, project_json_url
from envdoctor.harvest.python_variants import merged, minor_of, other_pythons
from envdoctor.harvest.remote_archive import BadArchive, RemoteZip, read_sdist_members
from envdoctor.harvest.setup_choices import as_built_alone


class WrongMetadata(Unavailable):
    """A metadata text that is not of the release it was read for."""


SMALL = 4 * 1024 * 1024
"""Of an sdist of so many bytes `setup.py` is read, too."""
_LONGEST_LINE = 2000
_MOST_LINES = 2000


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of a release: usable lines in modern syntax, unusable ones with what is wrong.

    `lines` is None when they could not be had, and `reason` says why; `source` is `wheel:FILENAME`,
    `sdist:FILENAME` or `release JSON`.
    """

    lines: tuple[str, ...] | None
    unusable: tuple[tuple[str, str], ...] = ()
    source: str | None = None
    reason: str | None = None


def parse_headers(text: str) -> list[tuple[str, str]]:
    """Return the header fields of a METADATA or PKG-INFO text: folded lines joined, any line ending."""
    fields: list[tuple[str, str]] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            break
        if line[0] in " \t":
            if fields:
                fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip()}")
            continue
        name, colon, value = line.partition(":")
        if colon:
            fields.append((name.strip().lower(), value.strip()))
    return fields


def parse_metadata(text: str, name: str, version: str, source: str) -> Requirements:
    """Return what a METADATA text requires; raises WrongMetadata when it is another release's."""
    fields = parse_headers(text)
    _check_identity(dict(reversed(fields)), name, version)
    return parse_requirements([value for key, value in fields if key == "requires-dist"], source)


def _check_identity(fields: dict[str, str], name: str, version: str) -> None:
    stated = fields.get("name", ""), fields.get("version", "")
    try:
        same = canonicalize_name(stated[0]) == name and Version(stated[1]).public == Version(version).public
    except InvalidVersion:
        same = False
    if not same:
        raise WrongMetadata(f"its metadata is of {stated[0][:60]!r} {stated[1][:60]!r}")


def parse_requirements(lines: Iterable[str], source: str) -> Requirements:
    """Return requirement lines in modern syntax, the unusable ones apart with their reasons."""
    usable: list[str] = []
    unusable: list[tuple[str, str]] = []
    for line in list(lines)[:_MOST_LINES]:
        modern, problem = modern_requirement(line)
        if problem:
            unusable.append((line[:_LONGEST_LINE], problem))
        else:
            usable.append(modern)
    return Requirements(tuple(usable), tuple(unusable), source)


@lru_cache(maxsize=65536)
def modern_requirement(line: str) -> tuple[str, str]:
    """Return the line in modern syntax (`torch (==2.1)` becomes `torch==2.1`) and what is wrong with it."""
    if len(line) > _LONGEST_LINE:
        return "", "longer than any requirement"
    try:
        return str(Requirement(line)), ""
    except InvalidRequirement as error:
        return "", str(error).splitlines()[0][:200]
    except (ValueError, RecursionError) as error:
        return "", f"not a requirement: {type(error).__name__}"


_CPYTHON = re.compile(r"cp3(\d+)")


def wheel_rank(file: IndexFile) -> tuple[int, bool, int, str]:
    """Return the order in which a release's wheels are read: x86_64 Linux, plain, other Linux, the rest.

    Among those of one platform CPython's own ABI comes before others, and the newest Python first.
    """
    python, abi, platform = file.filename[:-4].split("-")[-3:]
    minors = [int(minor) for minor in _CPYTHON.findall(python)]
    unusual = abi.endswith("t") or python.startswith("pp")
    return (_platform_rank(platform), unusual, -max(minors, default=0), file.filename)


def _platform_rank(platform: str) -> int:
    linux = "linux" in platform
    if linux and "x86_64" in platform:
        return 1 if "musllinux" in platform else 0
    return 2 if platform == "any" else 3 if linux else 4


def runs_on_python3(file: IndexFile) -> bool:
    """False for a wheel whose tag names Python 2 alone."""
    return bool(re.search(r"(?:^|\.)(?:py3|cp3|pp3|pypy3)", file.filename[:-4].split("-")[-3]))


@dataclass(slots=True)
class Routes:
    """Which optional routes an index serves: one that misses five times in a row is not tried again."""

    index: str
    misses: dict[str, int] = field(default_factory=dict)

    def open(self, route: str) -> bool:
        """True while the route may still answer."""
        return self.misses.get(route, 0) < 5

    def note(self, route: str, *, found: bool) -> None:
        """Remember whether the route answered."""
        self.misses[route] = 0 if found else self.misses.get(route, 0) + 1


def read_requirements(
    fetcher: Fetcher, routes: Routes, name: str, files: Sequence[IndexFile]
) -> Requirements:
    """Return what the release that owns `files` requires, by the cheapest route that answers.

    A file that is broken, gone or another's gives `lines=None` and the reason. Raises Unavailable for a
    break of trust or of the line (a wrong hash, a server that fails): then nothing of it may be kept.
    """
    chosen = chosen_file(files)
    if chosen is None:
        return Requirements(None, source=files[0].source, reason="none of its files is for Python 3")
    alone = len([file for file in files if file.is_wheel]) < 2
    found = _read_file(fetcher, routes, name, chosen, alone)
    others = other_pythons(files, chosen)
    if found.lines is None or not others:
        return found
    oldest = _read_file(fetcher, routes, name, next(iter(others.values())), alone)
    if oldest.lines is None or set(oldest.lines) == set(found.lines):
        return found
    read = {minor: _read_file(fetcher, routes, name, file, alone).lines for minor, file in others.items()}
    known = {minor: lines for minor, lines in read.items() if lines is not None}
    return replace(found, lines=merged({**known, minor_of(chosen): found.lines}))


def _read_file(fetcher: Fetcher, routes: Routes, name: str, file: IndexFile, alone: bool) -> Requirements:
    try:
        return (
            _beside_the_wheel(fetcher, routes, name, file)
            or (_of_release_json(fetcher, routes, name, file) if alone else None)
            or (_inside_the_wheel if file.is_wheel else _inside_the_sdist)(fetcher, name, file)
        )
    except (BadArchive, NotFound, TooLarge, WrongMetadata) as problem:
        return Requirements(None, source=file.source, reason=f"{file.filename}: {problem}")


def chosen_file(files: Sequence[IndexFile]) -> IndexFile | None:
    """Return the file whose requirements are the release's; None where all are for Python 2."""
    wheels = sorted((f for f in files if f.is_wheel and runs_on_python3(f)), key=wheel_rank)
    return next(iter(wheels or [f for f in files if not f.is_wheel]), None)


def _beside_the_wheel(fetcher: Fetcher, routes: Routes, name: str, file: IndexFile) -> Requirements | None:
    if not file.is_wheel or file.metadata_sha256 is None or not routes.open("metadata"):
        return None
    try:
        body = fetcher.get(f"{file.url}.metadata").body
    except NotFound:
        routes.note("metadata", found=False)
        return None
    routes.note("metadata", found=True)
    check_sha256(body, file.metadata_sha256, f"{file.filename}.metadata")
    return parse_metadata(_text(body), name, file.version, file.source)


def check_sha256(body: bytes, expected: str | None, what: str) -> None:
    """Raise Unavailable when `body` is not what the index's hash says; no hash is no promise."""
    if expected and hashlib.sha256(body).hexdigest() != expected:
        raise Unavailable(f"{what}: wrong hash: not the file that the index describes")


def _of_release_json(fetcher: Fetcher, routes: Routes, name: str, file: IndexFile) -> Requirements | None:
    url = project_json_url(routes.index, name, file.version)
    if url is None or not routes.open("release"):
        return None
    try:
        body = fetcher.get(url, accept="application/json").body
    except NotFound:
        routes.note("release", found=False)
        return None
    routes.note("release", found=True)
    return parse_release_json(body, name, file.version)


def parse_release_json(body: bytes, name: str, version: str) -> Requirements | None:
    """Return what a release's JSON says it requires, or None when it does not say."""
    try:
        info = json.loads(body)["info"]
        lines = info["requires_dist"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return None
    _check_identity({k: str(info.get(k)) for k in ("name", "version")}, name, version)
    return parse_requirements(lines, "release JSON")


def _inside_the_wheel(fetcher: Fetcher, name: str, wheel: IndexFile) -> Requirements:
    archive = RemoteZip(fetcher, wheel.url)
    members = [m for m in archive.members if re.fullmatch(r"[^/]+\.dist-info/METADATA", m)]
    if len(members) != 1:
        raise BadArchive(f"{len(members)} METADATA members where one must be")
    return parse_metadata(_text(archive.read(members[0])), name, wheel.version, wheel.source)


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


_SOURCES = ".egg-info/SOURCES.txt"


def _tells_requirements(member: str) -> bool:
    """True for the core metadata of an sdist, and for what setuptools lists in an `egg-info` folder."""
    folders = member.split("/")
    if folders[1:] == ["PKG-INFO"]:
        return True
    return len(folders) > 2 and member.endswith((".egg-info/requires.txt", _SOURCES))


def _is_setup(member: str) -> bool:
    return member.split("/")[1:] == ["setup.py"]


def _inside_the_sdist(fetcher: Fetcher, name: str, sdist: IndexFile) -> Requirements:
    whole = (sdist.size or SMALL + 1) <= SMALL
    members = read_sdist_members(
        fetcher,
        sdist.url,
        lambda member: _tells_requirements(member) or (whole and _is_setup(member)),
        lambda found: not whole and any(_stated(member, body) for member, body in found.items()),
    )
    setup = next((_text(body) for member, body in members.items() if _is_setup(member)), "")
    members = {member: body for member, body in members.items() if not _is_setup(member)}
    for member, body in members.items():
        lines = _stated(member, body)
        if lines:
            return parse_requirements(as_built_alone(lines, setup), sdist.source)
    if any(_states_none(member, body, name) for member, body in members.items()):
        return Requirements((), source=sdist.source)
    return Requirements(
        None, source=sdist.source, reason="the sdist states no requirements: only a build tells"
    )


def _states_none(member: str, body: bytes, name: str) -> bool:
    """True when a member of an sdist that lists no requirement says that there is none.

    setuptools lists every source it saw and writes no `requires.txt` where nothing is required; core metadata
    from 2.2 on names what a build may still change.
    """
    if member.endswith(_SOURCES):
        return canonicalize_name(member.removesuffix(_SOURCES).rpartition("/")[2]) == name
    if not member.endswith("PKG-INFO"):
        return True
    fields = parse_headers(_text(body))
    version = next((value for key, value in fields if key == "metadata-version"), "")
    dynamic = {value.lower() for key, value in fields if key == "dynamic"}
    return re.fullmatch(r"2\.([2-9]|\d\d)|[3-9]\.\d+", version) is not None and "requires-dist" not in dynamic


def _stated(member: str, body: bytes) -> list[str]:
    if member.endswith(_SOURCES):
        return []
    if member.endswith("PKG-INFO"):
        return [value for key, value in parse_headers(_text(body)) if key == "requires-dist"]
    return parse_requires_txt(_text(body))


def parse_requires_txt(text: str) -> list[str]:
    """Return setuptools' `requires.txt` (sections `[extra:marker]`) as requirement lines."""
    lines: list[str] = []
    condition = ""
    for line in (raw.strip() for raw in text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
            parts = [f"({marker})"] * bool(marker) + [f'extra == "{extra}"'] * bool(extra)
            condition = " and ".join(parts)
        elif line and not line.startswith("#"):
            lines.append(f"{line} ; {condition}" if condition else line)
    return lines
