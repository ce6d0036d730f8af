"""Which releases of two packages were there at the same time: days of upload out of the package facts."""

from __future__ import annotations

import time
from collections.abc import Iterator

from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.matrix.interface_records import recorded_libraries
from envdoctor.matrix.snapshot import STACK, Package, load_snapshot
from envdoctor.rules.view import View


def package_facts(view: View, name: str) -> Package | None:
    """Return what is recorded of a package's releases; None where nothing is."""
    try:
        package = load_snapshot(view.matrix.folder).package(name)
    except Unavailable:
        return None
    return package if package and package.crawled else None


def is_recorded(view: View, name: str) -> bool:
    """True for a distribution of that name in the recorded facts, even where its releases were not read."""
    try:
        return load_snapshot(view.matrix.folder).package(name) is not None
    except Unavailable:
        return False


def day_of(view: View, name: str, version: str) -> int | None:
    """Return the day (from 1970-01-01) on which a release was first uploaded; None where it is not known."""
    package = package_facts(view, name)
    place = place_of(package, version) if package else None
    return package.days[place] if package and place is not None else None


def day_here(view: View, name: str) -> int | None:
    """Return the day (from 1970-01-01) of the release that is listed; None where it is not known."""
    version = view.version(name)
    return day_of(view, name, version.public) if version else None


def place_of(package: Package, version: str) -> int | None:
    """Return where a release stands, also where the last zero of its number is left out."""
    return package.position.get(version, package.position.get(f"{version}.0"))


def told_day(day: int) -> str:
    """Return a day as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime(day * 86400))


def newest_on(view: View, name: str, day: int) -> str | None:
    """Return the newest final release of a package that was there on a day."""
    return next((v for v, uploaded in finals(view, name) if uploaded <= day), None)


def first_after(view: View, name: str, day: int) -> str | None:
    """Return the lowest final release of a package from which on all are later than a day."""
    later = None
    for version, uploaded in finals(view, name):
        if uploaded <= day:
            break
        later = version
    return later


def has_newer(view: View, name: str, version: Version) -> bool:
    """True where a final release of a package is newer than a version."""
    return any(Version(final) > version for final, _ in finals(view, name))


def finals(view: View, name: str) -> Iterator[tuple[str, int]]:
    """Yield the final releases of a package with their days, newest first."""
    package = package_facts(view, name)
    for place in reversed(range(len(package.versions))) if package else ():
        if package and package.finals >> place & 1:
            yield package.versions[place], package.days[place]


def standing_on_none(view: View, libraries: set[str]) -> set[str]:
    """Return those of some libraries that require no other of them: what several have is theirs."""
    return {one for one in libraries if libraries.isdisjoint(required_by(view, one))}


def required_by(view: View, library: str) -> set[str]:
    """Return what the newest release of a library requires."""
    package = package_facts(view, library)
    row = package.row_of(len(package.versions) - 1) if package else -1
    return {one.name for one in package.requirements(row)} if package and row >= 0 else set()


def users_of(view: View, owner: str) -> list[str]:
    """Return what is listed, known and requires the owner, maybe in an extra: what is older first.

    Where no traceback tells who asks it is one of these, as a rule; of torch all of them would be.
    """
    days, known = {}, {*STACK, *recorded_libraries(view.matrix.folder)}
    for name in view.facts.environment.distributions.keys() & known if owner != "torch" else ():
        package, version = package_facts(view, name), view.version(name)
        place = place_of(package, version.base_version) if package and version else None
        row = package.row_of(place) if package and place is not None else -1
        if package is None or place is None or row < 0 or name == owner:
            continue
        asked = (one.name for extra in ("", *package.extras(row)) for one in package.requirements(row, extra))
        if owner in asked:
            days[name] = package.days[place]
    own = day_here(view, owner)
    return sorted(days, key=lambda name: (own is not None and days[name] > own, -days[name], name))


def askers_before(view: View, asker: str, library: str, version: str) -> dict[str, str]:
    """Return the releases of `asker` from before a release of `library`, which cannot ask for its news."""
    day = day_of(view, library, version)
    later = first_after(view, asker, day) if day is not None else None
    return {asker: f"<{later}"} if later and newest_on(view, asker, day or 0) else {}


def askers_after(view: View, asker: str, library: str, version: str) -> dict[str, str]:
    """Return the releases of `asker` from after a release of `library`, which may know what went with it."""
    day = day_of(view, library, version)
    later = first_after(view, asker, day) if day is not None else None
    return {asker: f">={later}"} if later else {}


def told_release(view: View, name: str) -> str:
    """Return a package with its version, as far as that is told."""
    version = view.version_text(name)
    return f"{name} {version}" if version else name
