"""The file and line that evidence was read from, as annotations want them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from envdoctor.findings import Evidence

# What a reader of an examined file cites: `line 3`, `pip list, line 3`, `reqs.txt: requirements, line 3`.
_LINE = re.compile(r"(?:^|[,:] )line ([0-9]{1,9})$")
# A file that a text names, `train.yaml:12`: a part without colon or comma that holds a dot or a slash;
# each class ends where the next thing begins.
_NAMED = re.compile(r"(?:^|[:,])(?P<file>[^:,./]*[./][^:,]*)(?:, line |:)(?P<line>[0-9]{1,9})\b")


class Place(NamedTuple):
    """A file as it was named, and a line from 1 on."""

    file: str
    line: int


def find_place(evidence: Sequence[Evidence], files: Sequence[str] = ()) -> Place | None:
    """Return the first place that evidence names: a line of an examined file, or of another."""
    return next((place for e in evidence if (place := _examined(e.source, files) or _named(e.source))), None)


def _examined(source: str, files: Sequence[str]) -> Place | None:
    match = _LINE.search(source[-200:])
    if match is None:
        return None
    told = source[: len(source) - len(match.group())].partition(": ")[0]
    named = [file for file in files if PurePath(file).name == told] or list(files)
    return Place(named[0], max(1, int(match[1]))) if len(named) == 1 else None


def _named(source: str) -> Place | None:
    match = _NAMED.search(source)
    return Place(match["file"].strip(), max(1, int(match["line"]))) if match else None
