"""`pip list`, `pip freeze`, `uv pip list`, `conda list`: what is installed, and whether that is all of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from envdoctor import lazy_re as re
from envdoctor.facts import Distribution
from envdoctor.facts.names import normalise
from envdoctor.inputs import is_requirements
from envdoctor.pastes.distributions import VERSION, parse_told
from envdoctor.pastes.sightings import Paste, Sighting, distribution_sightings, told_sightings

WHOLE = 25
"""Rows below which a listing never counts as all that is installed."""
FREEZE_WHOLE = 40
"""The same for a freeze, which has no header that would show where it begins."""

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_HEADER = re.compile(r"^\W{0,4}Package\s{1,64}\|?\s{0,64}Version\b")
_RULE = re.compile(r"^[-\s|:+=]{6,}$")
_ROW = re.compile(rf"^\|?\s{{0,4}}`?({_NAME})`?\s*\|?\s+({VERSION})(?:\s+\|?\s*(\S.{{0,300}}?))?\s*\|?$")
_CONDA_HEADER = re.compile(r"^#\s*(?:packages in environment at\b|Name\s+Version\s+Build)")
_CONDA_ROW = re.compile(rf"^(_?{_NAME})\s+(\d[\w.+!]*)\s+(\S+)(?:\s+(\S+))?\s*$")
_PINNED = re.compile(
    rf"^\W{{0,6}}?({_NAME})(?:\[[\w,.-]{{0,60}}\])?\s?===?\s?(\d[\w.+!*-]{{0,99}})`?[,;]?(?:\s*[;#].{{0,300}})?$"
)
_LOCATED = re.compile(rf"^({_NAME})\s?@\s?(\w[\w+]*)://(\S{{0,1000}})")
_EDITABLE = re.compile(r"^-e\s+\S{0,1000}?(?:#egg=([\w.-]{1,100}))")
_ELLIPSIS = re.compile(r"^\W{0,3}(?:\.\.\.+|…|\[\.\.\.\]|<snip>|etc\b)", re.IGNORECASE)
_WHEEL_VERSION = re.compile(rf"/({_NAME})-(\d[\w.]*(?:(?:\+|%2[Bb])[\w.]+)?)-[\w.]+-[\w.]+-[\w.]+\.whl")


def parse_listings(paste: Paste) -> Iterator[Sighting]:
    """Yield what tables and freezes of distributions tell, and `complete` for a whole one."""
    lines = paste.lines
    for index, line in enumerate(lines):
        if index in paste.claimed:
            continue
        if _HEADER.match(line):
            yield from _parse_table(paste, index)
        elif line.startswith("#") and _CONDA_HEADER.match(line):
            yield from _parse_conda(paste, index)
    yield from _parse_freeze(paste)


def _parse_table(paste: Paste, header: int) -> Iterator[Sighting]:
    kind, rows, whole = "pip list", 0, True
    names: list[str] = []
    paste.claimed.add(header)
    index = header
    for index in range(header + 1, len(paste.lines)):
        line = paste.lines[index].rstrip()
        if _RULE.match(line):
            paste.claimed.add(index)
        elif match := _ROW.match(line):
            rows += 1
            names.append(_key(match[1]))
            paste.claimed.add(index)
            yield from _installed(match[1], match[2], paste.at(kind, index), match[3])
        elif _ELLIPSIS.match(line):
            whole = False
        elif line.strip() or rows:
            break
    if rows >= WHOLE:
        proven = whole and "pip" in names and _mostly_sorted(names) and not _cut(paste, index)
        yield Sighting("complete", proven, paste.at(kind, header))


def _cut(paste: Paste, index: int) -> bool:
    """Return whether an ellipsis follows within the next lines."""
    return any(_ELLIPSIS.match(line) for line in paste.lines[index : index + 3])


def _key(name: str) -> str:
    return name.lower().replace("_", "-")


def _installed(name: str, version: str, source: str, location: str | None = None) -> list[Sighting]:
    told = parse_told(version, exact=True)
    if told is None:
        return []
    editable = bool(location and ("/" in location or "\\" in location))
    return told_sightings(name, told, source, editable=editable)


def _parse_conda(paste: Paste, header: int) -> Iterator[Sighting]:
    rows, whole, python = 0, True, False
    for index in range(header, len(paste.lines)):
        line = paste.lines[index].rstrip()
        if match := _CONDA_ROW.match(line):
            python = python or match[1] == "python"
            if index not in paste.claimed:
                rows += 1
                paste.claimed.add(index)
                name, version, build, channel = match.groups()
                source = paste.at("conda list", index)
                yield from conda_sightings(name, version, build, channel or "", source)
        elif line.startswith("#"):
            paste.claimed.add(index)
        elif _ELLIPSIS.match(line):
            whole = False
        elif line.strip() or rows:
            break
    if rows >= WHOLE:
        yield Sighting("complete", whole and python, paste.at("conda list", header))


def conda_sightings(name: str, version: str, build: str, channel: str, source: str) -> Iterator[Sighting]:
    """Yield what a package of a conda environment tells, under the name that it has on an index."""
    key = {"pytorch": "torch", "pytorch-gpu": "torch"}.get(normalise(name), normalise(name))
    if key == "python":
        yield Sighting("environment.python", version, source)
        yield Sighting("environment.kind", "conda", source)
        return
    if name.startswith("_") or key.startswith("lib") or key in ("cudatoolkit", "cuda-toolkit"):
        return
    told = parse_told(version, exact=True)
    if told is not None:
        origin = None if channel == "pypi" else "conda"
        yield from told_sightings(key, told, source, origin=origin, installer=origin)
    if key == "torch":
        yield from _conda_torch_build(build, source)


def _conda_torch_build(build: str, source: str) -> Iterator[Sighting]:
    if match := re.search(r"cuda_?(\d{2})\.?(\d)", build):
        yield Sighting("build", ("torch", {"cuda": f"{match[1]}.{match[2]}"}), source)
    elif "cpu" in build:
        yield Sighting("build", ("torch", {"cuda": None, "variant": "cpu"}), source)


def _parse_freeze(paste: Paste) -> Iterator[Sighting]:
    run: list[str] = []
    cut = False
    kind = "requirements" if is_requirements(paste.file_name) else "pip freeze"
    for index, line in paste.unclaimed():
        if "=" not in line and "@" not in line:
            cut = cut or _ELLIPSIS.match(line) is not None
            continue
        if match := _PINNED.match(line):
            run.append(_key(match[1]))
            paste.claimed.add(index)
            yield from _pinned(match, paste.at(kind, index))
        elif match := _LOCATED.match(line):
            run.append(_key(match[1]))
            paste.claimed.add(index)
            yield from _located(match, paste.at(kind, index))
        elif match := _EDITABLE.match(line):
            paste.claimed.add(index)
            yield Sighting(
                "distribution",
                Distribution(normalise(match[1]), paste.at(kind, index), editable=True),
            )
    if kind == "pip freeze" and not cut and len(run) >= FREEZE_WHOLE and _mostly_sorted(run):
        yield Sighting("complete", True, kind)


def _pinned(match: re.Match[str], source: str) -> list[Sighting]:
    name, version = match[1], match[2]
    exact = "*" not in version
    return distribution_sightings(name, version, source, exact=exact)


def _located(match: re.Match[str], source: str) -> list[Sighting]:
    scheme, rest = match[2].lower(), match[3]
    origin = "vcs" if "+" in scheme or rest.endswith(".git") else "file" if scheme == "file" else "url"
    wheel = _WHEEL_VERSION.search("/" + rest.rpartition("/")[2])
    version = wheel[2].replace("%2B", "+").replace("%2b", "+") if wheel else ""
    told = parse_told(version, exact=True) if version else parse_told("installed")
    return told_sightings(match[1], told, source, origin=origin) if told else []


def _mostly_sorted(names: list[str]) -> bool:
    if names[0] == names[-1]:
        return False
    falls = sum(a > b for a, b in pairwise(names))
    return falls * 20 <= len(names)
