"""Which keys a framework's settings had at a version, from facts read out of its releases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from envdoctor.matrix import Matrix
from envdoctor.values import dataclass, replace

if TYPE_CHECKING:
    from envdoctor.target.stack import Stack


Fields = Mapping[str, list[list[int]]]
"""Keys with the ranges of releases that have them."""


@dataclass(frozen=True)
class KeyFacts:
    """The keys of one framework's releases, as ranges of positions in `versions`.

    `fields` maps keys (`section.key` in sections whose keys are all known; a `flat` framework does not tell
    sections apart), `outside` inherited classes of other packages that may take further keys, `trainers` the
    keys of each class of which a run takes one, `common` what all of them share. Where no file tells the
    trainer, `fields` are those of the `usual` ones.
    """

    framework: str
    versions: tuple[str, ...]
    fields: Fields
    outside: Fields = field(default_factory=dict)
    flat: bool = False
    trainers: Mapping[str, Fields] = field(default_factory=dict)
    common: Fields = field(default_factory=dict)
    usual: tuple[str, ...] = ()

    @cached_property
    def _positions(self) -> dict[Version, int]:
        return {Version(version): place for place, version in enumerate(self.versions)}

    @cached_property
    def _sections(self) -> Fields:
        """The sections whose keys are known, with the releases for which they are."""
        found: dict[str, list[list[int]]] = {}
        for key, ranges in self.fields.items():
            if parent := key.rpartition(".")[0]:
                found.setdefault(parent, []).extend(ranges)
        return found

    def position(self, version: str | None) -> int | None:
        """Return the place of a release (None: the newest); None for one that was not read."""
        if version is None:
            return len(self.versions) - 1
        try:
            return self._positions.get(Version(Version(version).public))
        except InvalidVersion:
            return None

    def nearest(self, version: str | None) -> str | None:
        """Return the newest release read that is not newer: the best guess for one that was not read."""
        try:
            wanted = Version(version) if version else None
        except InvalidVersion:
            return None
        older = [known for known in self._positions if wanted and known <= wanted]
        return str(max(older)) if older else None

    def has(self, key: str, version: str | None = None) -> bool | None:
        """Whether that release has the key; None when the release was not read."""
        return self._within(self.fields.get(key, ()), version)

    def for_file(self, keys: Collection[str], version: str | None = None) -> KeyFacts:
        """Return the facts for a file with these keys: those of the trainers that take most of them.

        A key that none of these trainers ever had counts where any other has it.
        """
        if not self.trainers:
            return self
        mine = [self.trainers[name] for name in self._trainers_taking(keys, version)]
        fields = union(self.trainers.values()) | union(mine)
        return replace(self, fields=union([self.common, fields]), trainers={})

    def _trainers_taking(self, keys: Collection[str], version: str | None) -> list[str]:
        """Return the trainers that take most of these keys in a release."""
        counts = {
            name: sum(self._within(fields.get(key, ()), version) is True for key in keys)
            for name, fields in self.trainers.items()
        }
        return [name for name, count in counts.items() if count == max(counts.values())]

    def without_unusual(self, key: str, keys: Collection[str], version: str | None = None) -> KeyFacts | None:
        """Return the facts by which a key is gone: a usual trainer that takes the file's others had it once.

        None where that is not so, or where no trainer has the key any more.
        """
        others = set(keys) - {key}
        for name in self._trainers_taking(others, version) if self.trainers and others else ():
            facts = replace(self, fields=self.trainers[name], trainers={})
            if name in self.usual and facts.span(key) and facts.has(key, version) is False:
                return facts
        return None

    def knows_section(self, key: str, version: str | None = None) -> bool:
        """True when all keys that may stand under this one in that release are known."""
        return self._within(self._sections.get(key, ()), version) is True

    def may_take_more(self, version: str | None = None) -> bool:
        """True when the release inherits from a package whose keys are not known here."""
        return any(self._within(ranges, version) is not False for ranges in self.outside.values())

    def _within(self, ranges: Iterable[Sequence[int]], version: str | None) -> bool | None:
        position = self.position(version)
        if position is None:
            return None
        return any(first <= position <= last for first, last in ranges)

    def span(self, key: str) -> tuple[str, str | None] | None:
        """Return the first release with the key and the first one without it again (None: it stands)."""
        ranges = self.fields.get(key)
        if not ranges:
            return None
        first, after = min(start for start, _ in ranges), max(end for _, end in ranges) + 1
        return self.versions[first], self.versions[after] if after < len(self.versions) else None

    def gone_since(self, key: str, new: Version, old: Version | None) -> str:
        """Return the release since which a key is gone; empty where it stands, or stood in none before."""
        span = self.span(key)
        if span is None or self.has(key, str(new)) is not False:
            return ""
        unknown = old is not None and self.has(key, str(old)) is False
        return "" if unknown else span[1] or ""


def key_facts(matrix: Matrix, framework: str) -> KeyFacts | None:
    """Return what the releases of a framework tell; None where none were read."""
    data: Mapping[str, Any] = matrix.generated(f"fields/{framework}")
    if not data:
        return None
    trainers, common = data["trainers"], data["fields"]
    fields = union([common, *(trainers[name] for name in data["usual"])])
    versions = tuple(data["versions"])
    usual = tuple(data["usual"])
    return KeyFacts(framework, versions, fields, data["outside"], data["flat"], trainers, common, usual)


def union(parts: Iterable[Fields]) -> dict[str, list[list[int]]]:
    """Return the keys of all parts, each with all its ranges."""
    found: dict[str, list[list[int]]] = {}
    for part in parts:
        for key, ranges in part.items():
            found[key] = [*found.get(key, ()), *ranges]
    return found


@dataclass(frozen=True)
class Names:
    """The key names of the examined versions, or of the newest releases where no version is known."""

    matrix: Matrix
    stack: Stack

    def has(self, framework: str, key: str) -> bool:
        """True when the framework's release (or one that it inherits from) has the key."""
        return any(
            facts.has(key, facts.nearest(self.stack.versions.get(name))) is True
            for name in self.matrix.frameworks.with_bases(framework)
            if (facts := key_facts(self.matrix, name))
        )

    def pick(self, framework: str, *candidates: str) -> str:
        """Return the first of the candidates (newest name first) that the release has, else the first."""
        return next((key for key in candidates if self.has(framework, key)), candidates[0])

    def keep(self, framework: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings whose keys the release has."""
        return {key: value for key, value in settings.items() if self.has(framework, key)}
