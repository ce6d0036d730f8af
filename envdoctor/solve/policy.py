"""What makes one answer better than another: the levels, their order and their weights.

Levels, first to last:

1. CHANGED   installed packages whose version changes (least-change only; torch's CUDA libraries
             follow torch and do not count), one that goes years back as several: what is there beside
             it was written for none of that time; of as many, those that go back weigh, then those to
             another major version, and those that go far;
2. STALE     for each package asked for: days between its version and the newest possible on the target under
             its own request, at most STALE_CAP, so that one hopeless package cannot outweigh the rest;
             with least-change, of what changes;
3. VARIANT   builds from PyTorch's own index, so that the default index is preferred when it serves as well;
             of those the one for the CUDA of the torch that is installed;
4. NEWEST    days behind and releases behind, uncapped, of what was asked for, and of torch, which decides
             what the card can do, whoever needs it;
5. FRESH     the same of everything else; of torch's CUDA libraries, which follow it, only whether they are
             the newest.

Days count from the release's own date, or an older one's if that came later (a patch of an old line).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

from envdoctor.matrix.snapshot import major_of
from envdoctor.solve.nodes import TORCH, Node
from envdoctor.solve.problem import bits_of
from envdoctor.solve.variants import OWN_RUNTIME
from envdoctor.values import dataclass

CHANGED, STALE, VARIANT, NEWEST, FRESH = LEVELS = (5, 4, 3, 2, 1)
"""The levels' numbers as the engine takes them: the highest is decided first."""

STALE_CAP = 730
"""Days after which an asked-for release counts as simply stale, and which gone back weigh a change more."""

RUNTIME_CHANGE = 365
"""Days that changing one of torch's CUDA libraries weighs on the last level: not for nothing."""

ONE_CHANGE = 10_000
"""What a change weighs on the first level: more than all going back together ever does."""

GOING_BACK = 100
"""What going back weighs beside the way: more than any way forward."""

FAR = 180
"""Days between two releases that weigh one more: what is near was written for the same neighbours."""

ANOTHER_MAJOR = 4
"""What another major version weighs beside the way: what was written for one breaks at the next."""

WINDOWS = (0, 180, STALE_CAP)
"""Days of staleness searched first; a wider search follows unless the answer found proves it needless."""

OTHER_VARIANT = 2
"""What a build for another CUDA than the one that stands there weighs: the driver may not take it."""

Cost = tuple[int, int, int, int, int]
STALE_PLACE = LEVELS.index(STALE)
"""Where a `Cost` holds the staleness."""


@dataclass(frozen=True)
class Policy:
    """The goal: whether change counts, and which packages were asked for, with the best bit of each."""

    least_change: bool
    asked: dict[str, int]
    """By name: the candidates that the request and the target admit."""

    def cost(self, node: Node, bit: int) -> Cost:
        """Return a candidate's cost on every level, first level first."""
        runtime = node.name.startswith(OWN_RUNTIME)
        kept = self.least_change and bool(node.installed >> bit & 1)
        changed = self.least_change and bool(node.installed) and not kept
        asked = node.name in self.asked
        weighty = asked or node.name == TORCH
        days, releases = behind(node, bit, self.asked.get(node.name, node.allowed & ~node.reserved))
        stale = min(days, STALE_CAP) if asked and not kept else 0
        behind_by = days + releases
        newest = 0 if kept else min(behind_by, 1) if runtime and not asked else behind_by
        newest += RUNTIME_CHANGE if changed and runtime else 0
        variant = 0 if kept else _of_an_index(node, bit)
        return (
            _moved(node, bit) if changed and not runtime else 0,
            stale,
            variant,
            newest if weighty else 0,
            0 if weighty else newest,
        )

    def within(self, node: Node, days: int) -> int:
        """Return the candidates of an asked-for package that are at most so many days stale."""
        possible = self.asked[node.name]
        if not possible:
            return 0
        newest = node.days[node.places[possible.bit_length() - 1]]
        first = bisect_left(node.places, bisect_left(node.days, newest - days))
        return possible >> first << first


def _moved(node: Node, bit: int) -> int:
    """Return what changing an installed package to a candidate weighs."""
    place, stood = node.places[bit], node.places[node.installed.bit_length() - 1]
    far = abs(node.days[place] - node.days[stood]) // FAR
    versions = node.package.versions
    major = ANOTHER_MAJOR if major_of(versions[place]) != major_of(versions[stood]) else 0
    back = GOING_BACK + ONE_CHANGE * years_back(node, bit) if place < stood else 0
    return ONE_CHANGE + far + major + back


def _of_an_index(node: Node, bit: int) -> int:
    """Return what a build from an index of its own weighs: less for the CUDA that stands there."""
    label = node.variant(bit)
    if label is None:
        return 0
    stood = node.variant(node.installed.bit_length() - 1) if node.installed else None
    return OTHER_VARIANT if stood is not None and label != stood else 1


def years_back(node: Node, bit: int) -> int:
    """Return how many times over a candidate is older than what is installed by all that is still fresh."""
    place, stood = node.places[bit], node.places[node.installed.bit_length() - 1]
    return max(0, (node.days[stood] - node.days[place]) // STALE_CAP) if place < stood else 0


def behind(node: Node, bit: int, possible: int) -> tuple[int, int]:
    """Return how many days and releases a candidate is behind the newest of `possible`."""
    if not possible >> (bit + 1):
        return 0, 0
    best = node.places[possible.bit_length() - 1]
    place = node.places[bit]
    newer = possible >> (bit + 1)
    releases = (
        len({node.places[bit + 1 + b] for b in bits_of(newer)} - {place})
        if node.builds
        else newer.bit_count()
    )
    return max(0, node.days[best] - node.days[place]), releases


def total(costs: Collection[Cost]) -> Cost:
    """Return the sum of costs, level by level."""
    sums = tuple(map(sum, zip(*costs, strict=True)))
    return sums if costs else (0,) * 5  # type: ignore[return-value]
