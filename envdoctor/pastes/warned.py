"""Warnings that programs print: behind a level, a class or a place in a file, or bare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import WarningSeen
from envdoctor.pastes.sightings import HEAD, Paste, Sighting

KEPT = 12
_STARTING = "<frozen "
LEAST = 24
"""Letters of a line that says something."""
_OF_PYTHON = re.compile(r"(?:(\S{1,400}\.py):\d{1,7}: )?\b[A-Z]\w{0,40}Warning: (?=\S)")
_OF_A_LOGGER = re.compile(
    r"^[^A-Za-z\n]{0,60}(?:\([^()\n]{1,60}\) ?)?(?:[\w.]{1,60} - )?\[?(?:WARNING|WARN)\b"
    r"(?:[^\]\n]{0,60}\]|\|[^\]\n]{0,60}\])?[^A-Za-z`'\"\n]{0,60}"
)
_WARNS = re.compile(
    r"(?i)\bdeprecat|\bwill be (?:removed|ignored)|\bis incompatible with\b|\bfalling back\b|\bsetting `|"
    r"\bdefault(?:s|ing) to\b|\bwe (?:recommend|detected|will use)|\bnot used when\b|\bno longer\b|"
    r"\bignor(?:ed|ing)\b|\byou (?:should|are (?:using|passing|not running))\b|\bnewly initialized|"
    r"\bhas no effect\b|\brecommended\b"
)
"""Words of warnings that stand alone on a line."""


_INFORMS = re.compile(
    r"[\s>`*-]{0,6}(?:(?:\d{4}-\d\d-\d\d [\d:.]{8,15}: )?I(?:\d{4} \d\d:\d\d:\d\d| (?:tensorflow|external)/)|"
    r"(?:\([^()\n]{1,60}\) ?)?(?:INFO|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d|"
    r"[\w.-]{1,60}:\d{1,9}:\d{1,9} \[\d{1,3}\] NCCL INFO "
    r"(?:dl\w{1,5} failed|\w{3,8}/Plugin|Failed to open lib))"
)


def informs(line: str) -> bool:
    """True for what glog, TensorFlow, vLLM, or NCCL of parts it can do without, mark as information."""
    return bool(_INFORMS.match(line))


def parse_warned(paste: Paste, lines: Sequence[str]) -> Iterator[Sighting]:
    """Yield the lines that read like a warning, each once."""
    seen: set[str] = set()
    for index, line in enumerate(lines[:HEAD]):
        text, file, logged = _message(line.strip().lstrip("> "))
        if sum(map(str.isalpha, text)) >= LEAST and text not in seen and len(seen) < KEPT:
            seen.add(text)
            yield Sighting("warning", WarningSeen(text, paste.at("", index), file, logged))


def is_logged(line: str) -> bool:
    """True for a line by which a program warns, behind a class or a level."""
    return bool(_OF_PYTHON.search(line) or _OF_A_LOGGER.search(line))


def _message(line: str) -> tuple[str, str, bool]:
    """Return what a line warns of, the file that does, and whether it is marked as a warning.

    Empty where it does not read like one, and of Python's own start of a module.
    """
    if line.startswith(_STARTING):
        return "", "", False
    if match := _OF_PYTHON.search(line):
        return line[match.end() :], match[1] or "", True
    if match := _OF_A_LOGGER.search(line):
        return line[match.end() :], "", True
    return (line, "", False) if _WARNS.search(line) else ("", "", False)
