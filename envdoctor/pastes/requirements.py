"""Requirement lines with ranges (`torch>=2.1,<3`), constraints, and `pylock.toml`."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.facts import Distribution
from envdoctor.facts.names import normalise
from envdoctor.inputs import is_requirements
from envdoctor.pastes.distributions import parse_told
from envdoctor.pastes.sightings import Paste, Sighting, told_sightings

_RANGE = re.compile(
    r"^\W{0,12}?([A-Za-z0-9][A-Za-z0-9._-]{0,80})(?:\[[\w,. -]{0,80}\])?\s?((?:<=|>=|~=|!=|<|>)"
    r"\s?\d[\w.*+]{0,40}(?:\s?,\s?(?:<=|>=|~=|!=|<|>|==)\s?\d[\w.*+]{0,40}){0,8})[\"', ]{0,4}"
    r"(?:[;#].{0,300})?$"
)
_BARE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]{0,80})(?:\[[\w,. -]{0,80}\])?\s*(?:#.{0,200})?$")
_LOCK_NAME = re.compile(r"^name\s?=\s?\"([\w.-]{1,100})\"")
_LOCK_VERSION = re.compile(r"^version\s?=\s?\"([\w.+!-]{1,100})\"")


def parse_requirements(paste: Paste) -> Iterator[Sighting]:
    """Yield what requirement lines ask for; a range becomes a specifier, a lock file's packages versions."""
    if any(line.startswith("[[packages]]") or line.startswith("lock-version") for line in paste.lines):
        yield from _parse_lock(paste)
    required = is_requirements(paste.file_name)
    for index, line in paste.unclaimed():
        match = _RANGE.match(line) if ("<" in line or ">" in line or "~=" in line or "!=" in line) else None
        if match and (required or normalise(match[1]) in paste.packages.names):
            told = parse_told(match[2])
            if told:
                paste.claimed.add(index)
                yield from told_sightings(match[1], told, paste.at("requirements", index))
        elif required and (match := _BARE.match(line)):
            paste.claimed.add(index)
            source = paste.at("requirements", index)
            yield Sighting("distribution", Distribution(normalise(match[1]), source), source)


def _parse_lock(paste: Paste) -> Iterator[Sighting]:
    """Read names and versions line by line: a lock file may be cut, and TOML readers refuse a part."""
    name = ""
    for index, line in enumerate(paste.lines):
        if line.startswith("[["):
            name = ""
        elif match := _LOCK_NAME.match(line):
            name = match[1]
            paste.claimed.add(index)
        elif name and (match := _LOCK_VERSION.match(line)):
            paste.claimed.add(index)
            told = parse_told(match[1], exact=True)
            if told:
                yield from told_sightings(name, told, paste.at("pylock.toml", index))
            name = ""
