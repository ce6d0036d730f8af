"""Package facts under a person's overrides: what packages require of some others is as good as unsaid.

An override stands in the place of every requirement on a package, whatever its marker, as uv takes it; what
it asks itself is a constraint. What a release checks when it runs goes on to hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from envdoctor.matrix.snapshot import LIMITS, Package, Requirement, Snapshot
from envdoctor.solve.requests import Request
from envdoctor.values import dataclass

Extras = Mapping[str, tuple[str, ...] | None]
"""By overridden name: the extras that are asked of it in each place; None where nobody is to have it."""


def overridden(snapshot: Snapshot, overrides: Iterable[Request], environment: Mapping[str, str]) -> Snapshot:
    """Return the facts as overrides leave them on a target; the facts themselves where there are none."""
    extras: dict[str, tuple[str, ...] | None] = {}
    for one in overrides:
        known = extras.setdefault(one.name, None)
        if one.holds(environment):
            extras[one.name] = tuple(dict.fromkeys((*(known or ()), *one.extras)))
    return _Facts(**vars(snapshot), extras=extras) if extras else snapshot


@dataclass(frozen=True)
class _Facts(Snapshot):
    extras: Extras = field(default_factory=dict)
    _own: dict[str, Package | None] = field(default_factory=dict, repr=False)

    def package(self, name: str) -> Package | None:
        if name not in self._own:
            plain = Snapshot.package(self, name)
            self._own[name] = plain and _Loosened(plain.name, self._open(plain), plain.tables, self)
        return self._own[name]

    def _open(self, package: Package) -> dict[str, str]:
        """Return what is known of a package; one that is overridden has a last specifier that all meet."""
        if package.name not in self.extras:
            return package.raw
        return {**package.raw, "S": ";".join((*package.specs, f"0,{len(package.versions)} "))}

    def loosened(self, told: Requirement) -> Requirement | None:
        """Return a requirement as it counts; None for one on what nobody is to have."""
        if told.name not in self.extras:
            return told
        package, extras = self.package(told.name), self.extras[told.name]
        if package is None or extras is None:
            return None
        return Requirement(told.name, len(package.specs) - 1, -1, extras)


@dataclass(frozen=True)
class _Loosened(Package):
    facts: _Facts = field(repr=False)

    def numbers(self, row: int, extra: str = "") -> list[str]:
        told = Package.numbers(self, row, extra)
        if extra == LIMITS:
            return told
        counted: dict[Requirement | None, str] = {None: ""}
        for number in told:
            counted.setdefault(self.wanted(number), number)
        return [number for number in counted.values() if number]

    def wanted(self, number: str) -> Requirement | None:
        return self.facts.loosened(self.requirement(number))
