"""The file and line that evidence was read from: `train.yaml:12` or `reqs.txt, line 3`."""

from __future__ import annotations

import re

from envdoctor.findings import Evidence

# A part without colon or comma that holds a dot or a slash; each class ends where the next thing begins.
_PLACE = re.compile(r"(?:^|[:,])(?P<file>[^:,./]*[./][^:,]*)(?:, line |:)(?P<line>[0-9]{1,9})\b")


def file_and_line(evidence: tuple[Evidence, ...]) -> tuple[str, int] | None:
    """Return the first file and line that evidence was read from, if any."""
    for entry in evidence:
        match = _PLACE.search(entry.source)
        if match:
            return match["file"].strip(), int(match["line"])
    return None
