"""What a Dockerfile installs with pip or uv."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from envdoctor.pastes.sightings import Paste, Sighting, told_sightings
from envdoctor.pastes.versions import Told, parse_told

_NAMED = re.compile(r"(?i)^(?:[\w.-]{1,80}\.)?(?:docker|container)file(?:[.-][\w.-]{1,80})?$")
_INSTALL = re.compile(r"\bpip3?\s{1,8}install\b")
_END = re.compile(r"[;&|]")
_WITH_VALUE = frozenset(
    (
        *("-i", "--index-url", "--extra-index-url", "-r", "--requirement", "-c", "--constraint", "-f"),
        *("--find-links", "-t", "--target", "--prefix", "--root", "--python", "-p", "--torch-backend", "-e"),
    )
)
_QUOTED = r"\"[^\"]{0,300}\"|'[^']{0,300}'"
_WORD = re.compile(rf"{_QUOTED}|[^\s\"']{{1,500}}")


def parse_dockerfile(paste: Paste) -> Iterator[Sighting]:
    """Yield the requirements that `pip install` names, a command that runs over several lines included."""
    if not _NAMED.match(paste.file_name):
        return
    inside, passed_over = False, False
    for index, line in enumerate(paste.lines):
        if line.lstrip().startswith("#"):
            continue
        started = _INSTALL.search(line)
        if started or inside:
            words = (line[started.end() :] if started else line).rstrip("\\ ")
            ended = _END.search(_unquoted(words))
            passed_over = passed_over and not started
            for word in _WORD.findall(words[: ended.start() if ended else None]):
                if not passed_over and not word.startswith("-"):
                    yield from _required(word.strip("\"'"), paste.at("Dockerfile", index))
                passed_over = word in _WITH_VALUE
            paste.claimed.add(index)
            inside = not ended
        inside = inside and line.rstrip().endswith("\\")


def _unquoted(text: str) -> str:
    """Return the text with blanks for what stands in quotes: what ends a command does not end it there."""
    return re.sub(_QUOTED, lambda match: " " * len(match[0]), text)


def _required(word: str, source: str) -> Iterator[Sighting]:
    try:
        required = Requirement(word)
    except InvalidRequirement:
        return
    exact = [one.version for one in required.specifier if one.operator == "==" and "*" not in one.version]
    told = parse_told(exact[0], exact=True) if exact else Told(None, str(required.specifier))
    if told is not None and not required.url:
        yield from told_sightings(required.name, told, source)
