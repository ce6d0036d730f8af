"""Which keys a framework's settings had at a version, from facts read out of its releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from envdoctor.matrix import Matrix

if TYPE_CHECKING:
    from envdoctor.profile.workload import Stack

BASES: Mapping[str, tuple[str, ...]] = {
    "trl": ("transformers",),
    "llamafactory": ("transformers",),
    "ms-swift": ("transformers", "trl"),
}
"""Frameworks whose settings classes inherit another's."""


@dataclass(frozen=True)
class KeyFacts:
    """The keys of one framework's releases: `fields` maps a key to ranges of positions in `versions`."""

    framework: str
    versions: tuple[str, ...]
    fields: Mapping[str, list[list[int]]]

    @cached_property
    def _parsed(self) -> tuple[Version, ...]:
        return tuple(Version(version) for version in self.versions)

    def position(self, version: str | None) -> int | None:
        """Return the last release read that is not newer (None: the newest); None for one too old to know."""
        if version is None:
            return len(self.versions) - 1
        try:
            wanted = Version(version)
        except InvalidVersion:
            return len(self.versions) - 1
        older = [n for n, known in enumerate(self._parsed) if known <= wanted]
        return older[-1] if older else None

    def has(self, key: str, version: str | None = None) -> bool | None:
        """Whether that release has the key; None when the release is older than what was read."""
        position = self.position(version)
        if position is None:
            return None
        return any(first <= position <= last for first, last in self.fields.get(key, ()))

    def span(self, key: str) -> tuple[str, str | None] | None:
        """Return the first release with the key and the first one without it again (None: it stands)."""
        ranges = self.fields.get(key)
        if not ranges:
            return None
        after = ranges[-1][1] + 1
        return self.versions[ranges[0][0]], self.versions[after] if after < len(self.versions) else None


def key_facts(matrix: Matrix, framework: str) -> KeyFacts | None:
    """Return what the releases of a framework tell; None where none were read."""
    data: Mapping[str, Any] = matrix.generated(f"fields/{framework}")
    if not data:
        return None
    return KeyFacts(framework, tuple(data["versions"]), data["fields"])


@dataclass(frozen=True)
class Names:
    """The key names of the examined versions, or of the newest releases where no version is known."""

    matrix: Matrix
    stack: Stack

    def has(self, framework: str, key: str) -> bool:
        """True when the framework's release (or one that it inherits from) has the key."""
        return any(
            facts.has(key, self.stack.versions.get(name)) is True
            for name in (framework, *BASES.get(framework, ()))
            if (facts := key_facts(self.matrix, name))
        )

    def pick(self, framework: str, *candidates: str) -> str:
        """Return the first of the candidates (newest name first) that the release has, else the first."""
        return next((key for key in candidates if self.has(framework, key)), candidates[0])

    def keep(self, framework: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings whose keys the release has."""
        return {key: value for key, value in settings.items() if self.has(framework, key)}
