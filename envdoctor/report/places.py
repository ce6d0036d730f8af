"""The file and line that evidence was read from, as annotations want them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from envdoctor.findings import Evidence, Finding
from envdoctor.values import NamedTuple

# What a reader of an examined file cites: `line 3`, `pip list, line 3`, `reqs.txt: requirements, line 3`.
_LINE = re.compile(r"(?:^|[,:] )line ([0-9]{1,9})$")
# A file that a text names, `train.yaml:12`: a part without colon or comma that holds a dot or a slash;
# each class ends where the next thing begins.
_NAMED = re.compile(r"(?:^|[:,])(?P<file>[^:,./]*[./][^:,]*)(?:, line |:)(?P<line>[0-9]{1,9})\b")


class Place(NamedTuple):
    """A file as it was named, and a line from 1 on."""

    file: str
    line: int


def place_of(finding: Finding, files: Sequence[str] = ()) -> Place | None:
    """Return the place to annotate: of what the first remedy changes, else of the first evidence with one."""
    changed = finding.remedies[0].pins if finding.remedies else ()
    return find_place(sorted(finding.evidence, key=lambda e: e.fact not in changed), files)


def find_place(evidence: Sequence[Evidence], files: Sequence[str] = ()) -> Place | None:
    """Return the first place that evidence names: a line of an examined file, or of another."""
    return next(iter(find_places(evidence, files)), None)


def find_places(evidence: Sequence[Evidence], files: Sequence[str] = ()) -> dict[Place, Evidence]:
    """Return every place that evidence names, in its order, with what was seen there."""
    places: dict[Place, Evidence] = {}
    for one in evidence:
        if place := _examined(one.source, files) or _named(one.source):
            places.setdefault(place, one)
    return places


def _examined(source: str, files: Sequence[str]) -> Place | None:
    match = _LINE.search(source[-200:])
    if match is None:
        return None
    told = source[: len(source) - len(match.group())].partition(": ")[0]
    named = [file for file in files if told in (file, PurePath(file).name)] or list(files)
    named = [file for file in named if file == told] or named
    return Place(named[0], max(1, int(match[1]))) if len(named) == 1 else None


def _named(source: str) -> Place | None:
    match = _NAMED.search(source)
    return Place(match["file"].strip(), max(1, int(match["line"]))) if match else None
