"""What one line of a paste told: a value, the place in Facts it belongs to, and where it was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.utils import canonicalize_name

from envdoctor.facts import Distribution
from envdoctor.pastes.versions import Told, parse_told


@dataclass(frozen=True, slots=True)
class Sighting:
    """A value seen. `place` is a field of Facts (`driver.version`) or a collection (`distribution`, `gpus`)."""

    place: str
    value: Any
    source: str = ""


@dataclass(slots=True)
class Paste:
    """The plain lines of one paste, and which of them a reader has already understood."""

    lines: list[str]
    name: str = ""
    file_name: str = ""
    claimed: set[int] = field(default_factory=set)

    def at(self, kind: str, index: int) -> str:
        """Return the source to cite for the line of that index (0-based)."""
        place = f"{kind}, line {index + 1}" if kind else f"line {index + 1}"
        return f"{self.name}: {place}" if self.name else place

    def unclaimed(self) -> Iterable[tuple[int, str]]:
        """Yield index and text of each line that is not empty and that no reader has understood so far."""
        claimed = self.claimed
        return ((i, line) for i, line in enumerate(self.lines) if line and i not in claimed)


def distribution_sightings(name: str, text: str, source: str, exact: bool = False) -> list[Sighting]:
    """Return what `text` tells of the distribution `name`: `2.3.1+cu121`, `<0.46`, `0.14.x`, `2.1 (CPU)`.

    `exact`: `2.4` is the whole version (a listing), not a prefix that someone typed.
    """
    told = parse_told(text, exact)
    return [] if told is None else told_sightings(name, told, source)


def told_sightings(name: str, told: Told, source: str, **extra: Any) -> list[Sighting]:
    """Return the sightings that a version as told makes for the distribution `name`."""
    key = canonicalize_name(name)
    found = []
    if told.version or told.specifier or not told.build:
        distribution = Distribution(key, source, version=told.version, specifier=told.specifier, **extra)
        found.append(Sighting("distribution", distribution, source))
    if told.build:
        found.append(build_sighting(key, told.build, source))
    return found


def build_sighting(name: str, build: Mapping[str, Any], source: str) -> Sighting:
    """Return the sighting of build facts (`{"cuda": "12.1"}`) of the distribution `name`."""
    return Sighting("build", (name, dict(build)), source)
