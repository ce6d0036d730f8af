"""What pip says of one package: `pip show`, what it installed or found, names of its files and folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts.names import normalise
from envdoctor.pastes.distributions import VERSION
from envdoctor.pastes.sightings import Paste, Sighting, distribution_sightings

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}?"
_SHOWN = re.compile(rf"^\W{{0,6}}Name:\s?({_NAME})\W{{0,3}}$")
_SHOWN_VERSION = re.compile(rf"^\W{{0,6}}Version:\s?({VERSION})\W{{0,3}}$")
_FOUND = re.compile(
    rf"Requirement already satisfied: ({_NAME})(?:\[[^\]]{{0,80}}\])?[^\w.-][^()]{{0,400}}\(({VERSION})\)"
)
_INSTALLED = re.compile(r"\bSuccessfully installed (\S.{0,900})")
_PAIR = re.compile(rf"({_NAME})-({VERSION})$")
_FOLDER = re.compile(rf"packages[/\\]({_NAME})-({VERSION})\.(?:dist|egg)-info\b")
_WHEEL = re.compile(rf"(?:Downloading|Using cached) ({_NAME})-({VERSION})-(?:cp|py)\d[\w.-]{{2,120}}\.whl")


def parse_installers(paste: Paste) -> Iterator[Sighting]:
    """Yield the versions that pip's own lines tell; of one that it fetched in several releases nothing."""
    fetched: dict[str, dict[str, int]] = {}
    for index, line in enumerate(paste.lines):
        if line.startswith("Version:") and index:
            yield from _told_below(paste, index)
        elif "Name:" in line and (match := _SHOWN.match(line)):
            yield from _shown(paste, match[1], index)
        elif "already satisfied" in line and (match := _FOUND.search(line)):
            yield from distribution_sightings(match[1], match[2], paste.at("pip", index), exact=True)
        elif "Successfully installed" in line and (match := _INSTALLED.search(line)):
            yield from _installed(match[1].split(), paste.at("pip", index))
        elif "-info" in line and (match := _FOLDER.search(line)):
            yield from distribution_sightings(match[1], match[2], paste.at("", index), exact=True)
        elif ".whl" in line and (match := _WHEEL.search(line)):
            fetched.setdefault(normalise(match[1]), {})[match[2]] = index
    for name, found in fetched.items():
        for version, index in found.items() if len(found) == 1 else ():
            yield from distribution_sightings(name, version, paste.at("pip", index), exact=True)


def _shown(paste: Paste, name: str, index: int) -> Iterator[Sighting]:
    """Yield the version that `pip show` gives in the line after a package's name."""
    following = paste.lines[index + 1] if index + 1 < len(paste.lines) else ""
    if match := _SHOWN_VERSION.match(following):
        paste.claimed.update((index, index + 1))
        yield from distribution_sightings(name, match[1], paste.at("pip show", index + 1), exact=True)


def _told_below(paste: Paste, index: int) -> Iterator[Sighting]:
    """Yield the version that stands below a package's bare name."""
    name = paste.packages.find(paste.lines[index - 1].strip())
    match = _SHOWN_VERSION.match(paste.lines[index])
    if name and match and index - 1 not in paste.claimed:
        paste.claimed.update((index - 1, index))
        yield from distribution_sightings(name, match[1], paste.at("pip show", index), exact=True)


def _installed(words: Sequence[str], source: str) -> Iterator[Sighting]:
    for word in words:
        if match := _PAIR.match(word):
            yield from distribution_sightings(match[1], match[2], source, exact=True)
