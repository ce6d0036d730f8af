"""What a release is recorded to require, for distributions of which a paste tells the version only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from envdoctor.errors import Unavailable
from envdoctor.facts import Distribution, Facts
from envdoctor.matrix.snapshot import Package, Requirement, Snapshot, load_snapshot
from envdoctor.rules.ranges import parse_version

if TYPE_CHECKING:
    from envdoctor.rules.view import View

FEW = 3
SHARE = 0.04
"""How many of the distributions that a whole environment asks for may be missing: it is broken, not cut."""


def recorded_requirements(view: View, distribution: Distribution) -> list[str]:
    """Return the unconditional requirements that the release is recorded with; empty when it is not."""
    snapshot = _snapshot(view)
    if snapshot is None:
        return []
    found = [(r, snapshot.package(r.name)) for r in _unconditional(snapshot, distribution)]
    return [f"{r.name}{required.spec_text(r.spec)}" for r, required in found if required]


def is_closed(view: View) -> bool:
    """True when a listing holds nearly all that its members require, as an excerpt does not."""
    snapshot = _snapshot(view)
    if snapshot is None:
        return False
    facts: Facts = view.facts
    listed = facts.environment.distributions
    asked = {r.name for d in listed.values() for r in _unconditional(snapshot, d)}
    missing = {name for name in asked if name not in listed and not name.startswith(("nvidia-", "cuda-"))}
    return bool(asked) and len(missing) <= max(FEW, SHARE * len(asked))


def _snapshot(view: View) -> Snapshot | None:
    try:
        return load_snapshot(view.matrix.folder)
    except Unavailable:
        return None


def _unconditional(snapshot: Snapshot, distribution: Distribution) -> Iterator[Requirement]:
    package: Package | None = snapshot.package(distribution.name)
    version = parse_version(distribution.version or "")
    if package is None or version is None or version.public not in package.position:
        return
    row = package.raw["r"][package.position[version.public]]
    if row >= 0:
        yield from (r for r in package.requirements(row) if r.marker < 0)
