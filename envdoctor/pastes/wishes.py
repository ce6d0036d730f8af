"""Texts that ask for something new: an error in them is an example, not what happened to the writer."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.facts import WISH
from envdoctor.pastes.errors import HEADER
from envdoctor.pastes.sightings import Paste, Sighting

_TITLE = re.compile(
    r"^[\W_]{0,6}(?:\[?(?:feature(?: request)?|rfc|proposal|enhancement|roadmap|new model)\b[\]: ]|"
    r"(?:add|support|allow|implement|introduce|expose) (?!.{0,80}\b(?:fails?|error|crash|broken|doesn.t)\b))",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^#{1,5} [\W_]{0,4}(?:the feature, motivation and pitch|feature request|your contribution|"
    r"is your feature request related|describe the solution you.d like)",
    re.IGNORECASE,
)
_LINES = 60


def parse_wish(paste: Paste) -> Iterator[Sighting]:
    """Yield a note where the text is a request for a feature and shows no traceback."""
    lines = paste.lines[:_LINES]
    first = next((line for line in lines if line.strip()), "")
    headed = first.startswith("#") and _TITLE.search(first) and not first.startswith("#!")
    wishes = headed or any(line.startswith("#") and _HEADING.search(line) for line in lines)
    if wishes and not any(HEADER in line for line in paste.lines):
        yield Sighting("note", WISH)
