"""A lock file as facts: what an installation from it would put in."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor.facts import Distribution, Facts
from envdoctor.locks.reading import read_lock
from envdoctor.locks.values import Lock, Locked
from envdoctor.pastes.assemble import assemble
from envdoctor.pastes.distributions import Told, parse_build
from envdoctor.pastes.listings import conda_sightings
from envdoctor.pastes.sightings import Sighting, told_sightings


def read_lock_facts(path: str, name: str) -> Facts:
    """Return the facts that a lock file tells; `name` stands before each source. Raises InputError."""
    return assemble(_sightings(read_lock(path), f"{name}: " if name else ""))


def _sightings(lock: Lock, before: str) -> Iterator[Sighting]:
    for package in lock.packages:
        source = f"{before}{lock.kind}, line {package.line}" if package.line else f"{before}{lock.kind}"
        yield from _package(package, source)
    if lock.platform:
        yield Sighting("host.os", _system(lock.platform), f"{before}{lock.kind}")
    yield Sighting("complete", lock.whole and bool(lock.packages), f"{before}{lock.kind}")
    left_out = "extras and groups for development are left out"
    yield Sighting("note", f"{before}{lock.kind}: read for {lock.read_for}; {left_out}")
    yield from (Sighting("note", f"{before}{lock.kind}: {note}") for note in lock.notes)


def _package(package: Locked, source: str) -> Iterator[Sighting]:
    if package.origin == "conda" and package.version:
        yield from conda_sightings(package.name, package.version, package.build, "conda", source)
    elif package.version:
        told = Told(package.version, "", parse_build(package.version))
        yield from told_sightings(
            package.name, told, source, origin=package.origin, editable=package.editable
        )
    else:
        distribution = Distribution(package.name, source, origin=package.origin, editable=package.editable)
        yield Sighting("distribution", distribution, source)


def _system(platform: str) -> str:
    return {"osx": "macos", "win": "windows"}.get(platform.partition("-")[0], "linux")
