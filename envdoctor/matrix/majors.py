"""When each major version of a package came: a release of long before cannot have been tried with it."""

from __future__ import annotations

from envdoctor.matrix.snapshot import Majors, Package, major_of

SLACK = 90
"""Days after a release's time in which it may still have been tried with what was new then."""
_DATED = 3
"""So many of the newest major numbers must be years for all of them to count as such."""


def first_untried(majors: Majors, version: str, day: int) -> int | None:
    """Return the first major that came long after a day, where the version is of that one or of a later one.

    None where the majors are years, which tell of no break, and where none is older.
    """
    beyond = [major for major, (came, _) in majors.items() if came > day + SLACK]
    if major_of(version) not in beyond or len(beyond) == len(majors) or _are_years(majors):
        return None
    return min(beyond)


def newer_finals(package: Package, place: int) -> int:
    """Return the mask of the final releases that sort after the one in a place."""
    return package.finals & ~((1 << (place + 1)) - 1)


def superseded_on(package: Package, place: int) -> int | None:
    """Return the day from which the release in a place was not the newest final one; None for the newest."""
    newer = newer_finals(package, place)
    if not newer:
        return None
    days = (day for at, day in enumerate(package.days[place:], place) if newer >> at & 1)
    return max(min(days), package.days[place])


def is_open(specifier: str) -> bool:
    """True for a requirement that sets no upper bound."""
    return not any(sign in specifier for sign in ("<", "==", "~="))


def _are_years(majors: Majors) -> bool:
    newest = sorted(majors)[-_DATED:]
    years = [(n if n >= 1900 else 2000 + n, 1970 + majors[n][0] / 365.2425) for n in newest]
    return all(abs(told - came) < 1.5 for told, came in years)
