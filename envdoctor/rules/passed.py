"""Lines that a program prints where it goes on without what failed above: that failure ended nothing."""

from __future__ import annotations

from envdoctor import lazy_re as re
from envdoctor.matrix import tables
from envdoctor.patterns import glob_matches
from envdoctor.rules.view import View

_LINE = re.compile(r"\bline (\d{1,9})$")


def went_on(view: View, identity: str, line: int) -> bool:
    """True where below a line of the text one stands that puts the finding of that id behind the run."""
    past = {
        symptom
        for row in view.matrix.rows(tables.ReachedRow)
        if any(glob_matches(identity, one) for one in row.past)
        for symptom in row.symptoms
    }
    return bool(line) and any(one.id in past and line_of(one.source) > line for one in view.facts.symptoms)


def line_of(source: str) -> int:
    """Return the number of the line that a source names; zero for none."""
    match = _LINE.search(source)
    return int(match[1]) if match else 0
